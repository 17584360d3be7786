"""Events out of the bytes of a watch: one JSON object after the other, each on a line. Sans I/O."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from workers.kubeclient.protocol import UNREADABLE, WatchEvent

MAX_EVENT_BYTES: Final = 16 << 20
"""Largest event that is taken. An object has 1.5 MiB in etcd, and more as JSON."""


class WatchFormatError(Exception):
    """Bytes without the end of an event."""


class _Frame(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_DECODER: Final = msgspec.json.Decoder(_Frame)


class WatchFrames:
    """Events of one watch. The work is linear in the bytes, however they are cut."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[WatchEvent]:
        """Events that are whole with these bytes; a line that is none is one of type UNREADABLE. Raises
        WatchFormatError."""
        lines = data.split(b"\n")
        events = []
        for line in lines[:-1]:
            self._keep(line)
            text = b"".join(self._kept)
            self._kept, self._size = [], 0
            if text.strip():
                events.append(_event(text))
        self._keep(lines[-1])
        return events

    def _keep(self, part: bytes) -> None:
        if part:
            self._kept.append(part)
            self._size += len(part)
            if self._size > MAX_EVENT_BYTES:
                raise WatchFormatError(f"an event of a watch has more than {MAX_EVENT_BYTES} bytes")


def _event(text: bytes) -> WatchEvent:
    try:
        frame = _DECODER.decode(text)
    except UNDECODABLE:
        return WatchEvent(UNREADABLE, b"")
    return WatchEvent(frame.type, bytes(frame.object))
