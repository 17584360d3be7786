"""Events as they are kept: packed, a quarter of what their objects take, and decoded one at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import msgspec

from ipc.k8s.api.v1.event import Event

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Event)


def pack(event: Event) -> bytes:
    """As a frame for the API server has it."""
    return _ENCODER.encode(event)


def unpack(packed: bytes) -> Event:
    """Made anew each time."""
    return _DECODER.decode(packed)


class PackedEvents(Sequence[Event]):
    """Events of one moment. May be read in another thread."""

    def __init__(self, packed: Iterable[bytes]) -> None:
        self._packed = tuple(packed)

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> PackedEvents: ...
    def __getitem__(self, index: int | slice) -> Event | PackedEvents:
        if isinstance(index, slice):
            return PackedEvents(self._packed[index])
        return unpack(self._packed[index])

    def __iter__(self) -> Iterator[Event]:
        return map(unpack, self._packed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)
