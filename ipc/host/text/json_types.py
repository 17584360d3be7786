"""Types of JSON that passes through unchanged: any kind of object, fields of any version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

UNDECODABLE: Final = (ValueError, RecursionError)
"""Errors of a JSON decoder for any bytes. msgspec's own is a ValueError, and so is that for bytes that are no UTF-8."""

Json: TypeAlias = Mapping[str, Any]
"""An object that is only read."""
JsonObject: TypeAlias = dict[str, Any]
"""An object that is being made or changed."""
JsonValue: TypeAlias = Any
"""A value of any kind: object, list, text, number, truth or null."""
