"""The events on disk, so that their counts go on after a restart of the agent.

Format: lines of JSON. The first one says the version, each of the others is a v1 Event as it was at some time; the last
one of a name counts. What changed is appended; when the file has become twice as large as what it says, it is written
anew, whole or not at all. So a kill loses nothing that was written: it leaves at most a last line without its end.

Appending is not synced: what a power cut takes away is the last half minute of a history.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import UntrustedFile
from ipc.host.clock import parse_rfc3339
from ipc.host.state_file import load_state
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.api.v1.event import Event
from supervisor.state.appended_file import AppendedFile

VERSION: Final = 1
"""Version of the format. Another version is not trusted, whatever it says."""
MAX_LIVE_BYTES: Final = 16 << 20
"""Most that a rewritten file has; the events that were not seen for longest are left out."""
MIN_ROOM_BYTES: Final = 1 << 20
"""A file that is smaller than this is not worth rewriting."""
MAX_FILE_BYTES: Final = 3 * MAX_LIVE_BYTES
"""Largest file that is read: more than one ever has."""


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int


class EventLog:
    """One file. Its methods block: for a thread, and only one at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = AppendedFile(path, MIN_ROOM_BYTES, is_synced=False)

    def load(self) -> tuple[Event, ...]:
        """The events as they were written, longest unseen first; none without a file.

        Raises StateUnusable.
        """
        return load_state(self._path, MAX_FILE_BYTES, _decode, "events") or ()

    def write(self, changed: Sequence[Event], everything: Sequence[Event]) -> None:
        """Add what changed; or write everything, if that is due. Raises OSError; what was there can still be loaded."""
        if not self._file.append(b"".join(map(_line, changed))):
            self._file.rewrite(_encode(everything))


def _decode(data: bytes) -> tuple[Event, ...]:
    lines = io.BytesIO(data)  # one after the other: millions of empty ones are refused with the first
    version = msgspec.json.decode(lines.readline(), type=_Header).version
    if version != VERSION:
        raise UntrustedFile(f"it is of version {version}, not {VERSION}")
    events: dict[str, Event] = {}
    for number, line in enumerate(lines, 2):
        if not line.endswith(b"\n"):
            break  # it was being written when its writer died
        event = _decoded(number, line)
        events.pop(event.metadata.name, None)
        events[event.metadata.name] = event
    return tuple(events.values())


def _decoded(number: int, line: bytes) -> Event:
    try:
        event = msgspec.json.decode(line, type=Event)
        parse_rfc3339(event.last_timestamp or "")
    except UNDECODABLE as error:
        raise UntrustedFile(f"line {number}: {error}") from error
    return event


def _encode(events: Sequence[Event]) -> bytes:
    """The newest that fit. One by one: the master's loop runs in between."""
    lines, size = [], 0
    for event in reversed(events):
        line = _line(event)
        size += len(line)
        if size > MAX_LIVE_BYTES:
            break
        lines.append(line)
    return b"".join((_line(_Header(VERSION)), *reversed(lines)))


def _line(value: Event | _Header) -> bytes:
    return msgspec.json.encode(value) + b"\n"
