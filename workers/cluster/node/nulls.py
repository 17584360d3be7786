"""Nulls in API objects as Go writes them. Pure."""

from __future__ import annotations

from typing import Any


def without_nulls(value: Any) -> Any:
    """Go writes null for a time that is not set, and for a list that is nil."""
    match value:
        case dict():
            return {key: without_nulls(item) for key, item in value.items() if item is not None}
        case list():
            return [without_nulls(item) for item in value]
    return value
