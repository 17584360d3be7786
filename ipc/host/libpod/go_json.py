"""JSON as Podman's Go programs write it. Pure."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


class GoObject(msgspec.Struct, frozen=True, rename="pascal"):
    """A JSON object of Go's: absent and null fields are its zero values."""


def decode_value(shape: type[T], body: bytes) -> T:
    """A value of that shape. Raises msgspec.DecodeError."""
    return msgspec.json.decode(body, type=shape)


def decode_list(item: type[T], body: bytes) -> tuple[T, ...]:
    """A list of such values; Go's empty slice is null. Raises msgspec.DecodeError."""
    shape: object = tuple[item, ...] | None  # type: ignore[valid-type]
    found: tuple[T, ...] | None = msgspec.json.decode(body, type=shape)
    return found or ()
