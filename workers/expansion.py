"""References to variables in commands: ``$(NAME)``.

Mirrors Expand (third_party/forked/golang/expansion/expand.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
"""A dollar sign that is escaped by another one, or a reference."""


def expand(text: str, values: Mapping[str, str]) -> str:
    """The text with every ``$(NAME)`` replaced that has a value; ``$$`` becomes ``$``, all else stays as it is."""

    def replacement(found: re.Match[str]) -> str:
        name = found[1]
        return "$" if name is None else values.get(name, found[0])

    return _REFERENCE.sub(replacement, text)
