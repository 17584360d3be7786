"""A container as a sync has seen it right after an act on it, on its way from there to the observer.

The master carries it unread, from `SyncDone` to `Observe`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from workers.kubecontainer.runtime import InspectedContainer


class Look(msgspec.Struct, frozen=True):
    """A container as an inspect of that time would have shown it."""

    container: InspectedContainer
    at: float
    """When the look began, in monotonic seconds: after the act."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Look)


def encode_look(look: Look) -> bytes:
    return _ENCODER.encode(look)


def decode_looks(looks: Iterable[bytes]) -> tuple[Look, ...]:
    """Raises msgspec.DecodeError."""
    return tuple(map(_DECODER.decode, looks))
