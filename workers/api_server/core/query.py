"""Query parameters, read strictly: a value that is not understood is an error, never a default. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from workers.api_server.core.status_errors import bad_request

MAX_INT64: Final = 2**63 - 1
_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("", "0", "f", "F", "FALSE", "false", "False"), False),
}
"""Texts that Go's strconv.ParseBool takes; an empty value is false, as in the API server's conversion."""
_MAX_SHOWN_CHARS: Final = 64


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean; absent is false. Raises ApiError 400."""
    text = query.get(name, "")
    if text not in _BOOLEANS:
        raise bad_request(f"{name}: {text[:_MAX_SHOWN_CHARS]!r} is not a boolean")
    return _BOOLEANS[text]


def integer(query: Mapping[str, str], name: str, *, low: int = 0, high: int = MAX_INT64) -> int | None:
    """A whole number within bounds, in ASCII digits; absent or empty is None. Raises ApiError 400."""
    text = query.get(name, "")
    if not text:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(MAX_INT64))):
        raise bad_request(f"{name}: {text[:_MAX_SHOWN_CHARS]!r} is not a whole number")
    value = int(text)
    if not low <= value <= high:
        raise bad_request(f"{name}: {value} is not within {low}..{high}")
    return value
