"""Meaning of a YAML scalar without quotes to Kubernetes. Pure.

Follows sigs.k8s.io/yaml (goyaml.v2/resolve.go): ``yes``, ``on`` and ``y`` are booleans, ``0644`` and ``0o644`` are
octal, ``1e3`` and ``1_000`` are the number 1000, ``12:30`` and ``2024-01-01`` are strings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

_WORDS: Final[Mapping[str, bool | None]] = {
    spelling: value
    for word, value in {
        "y": True,
        "yes": True,
        "true": True,
        "on": True,
        "n": False,
        "no": False,
        "false": False,
        "off": False,
        "null": None,
        "~": None,
        "": None,
    }.items()
    for spelling in (word, word.capitalize(), word.upper())
}
_INTEGER: Final = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BASES: Final = (16, 2, 8, 10)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
MAX_INTEGER: Final = 2**64 - 1
MIN_INTEGER: Final = -(2**63)
MAX_NUMBER_CHARS: Final = 64
"""Longest text that is looked at as a number."""


def resolve_plain(text: str) -> bool | int | float | str | None:
    """Value of a scalar without quotes and tag (goyaml.v2/resolve.go, resolve). NaN for `.inf` too."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INFINITE.fullmatch(text):
        return math.nan
    plain = text if text[0] == "." else text.replace("_", "")
    if len(plain) > MAX_NUMBER_CHARS:
        return text
    if match := _INTEGER.fullmatch(plain):
        digits, base = next(
            (digits, base) for digits, base in zip(match.groups()[1:], _BASES, strict=True) if digits is not None
        )
        return integer_or_float(int(match[1] + digits, base))
    if _FLOAT.fullmatch(plain) and math.isfinite(value := float(plain)):
        # Go prints a whole float without a fraction: `1e3` is good for an integer field.
        return int(value) if value.is_integer() and abs(value) < -MIN_INTEGER else value
    return text


def integer_or_float(value: int) -> int | float:
    """Go's integers have 64 bits; what is longer is a float to it, and no integer field takes that."""
    return value if MIN_INTEGER <= value <= MAX_INTEGER else float(value)
