"""References to variables: ``$(NAME)`` in values, commands and subPathExpr.

Mirrors Expand (third_party/forked/golang/expansion/expand.go) and what pkg/kubelet/container/helpers.go makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from workers.config_error import ConfigError

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
"""A dollar sign that is escaped by another one, or a reference."""


def expand(text: str, values: Mapping[str, str]) -> str:
    """The text with every ``$(NAME)`` replaced that has a value; ``$$`` becomes ``$``, all else stays as it is."""
    return _replace(text, lambda name: values.get(name, f"$({name})"))


def expand_all(words: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """A command or its arguments (ExpandContainerCommandAndArgs)."""
    return [expand(word, values) for word in words]


def expand_sub_path_expr(expression: str, values: Mapping[str, str]) -> str:
    """A subPathExpr (ExpandContainerVolumeMounts). Raises ConfigError for what has no value, or an empty one."""
    missing: set[str] = set()

    def value_of(name: str) -> str:
        value = values.get(name, "")
        if not value:
            missing.add(name)
        return value

    expanded = _replace(expression, value_of)
    if missing:
        raise ConfigError(f"missing value for {', '.join(sorted(missing))}")
    return expanded


def _replace(text: str, value_of: Callable[[str], str]) -> str:
    def replacement(found: re.Match[str]) -> str:
        name = found[1]
        return "$" if name is None else value_of(name)

    return _REFERENCE.sub(replacement, text)
