"""The newest inspects, in a file in memory: the next node worker need not ask again for what a list shows unchanged.

Nothing is believed because it is in the file: it says what Podman has said, and counts where a list says that container
and run are the same (`workers.containers.runs.is_as_remembered`), as an inspect by the same process does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Never

import msgspec

from ipc.host.atomic_file import write_atomically
from ipc.host.private_directories import make_private
from ipc.host.state_file import usable_state
from ipc.link.eventloop.loop_clock import loop_time
from workers.kubecontainer.runtime import InspectedContainer

KEEP_S: Final = 5.0
"""From a change until it is in the file, in seconds."""
WRITING_SHARE: Final = 0.01
"""Part of the time that writing may take."""
MAX_BYTES: Final = 128 * 1024**2
"""Bytes of a file that is read: some hundred thousand containers."""

log = logging.getLogger(__name__)


class _Content(msgspec.Struct, frozen=True):
    fields: tuple[str, ...]
    """Field names of a container. A file that another version of the agent has written with others is not read."""
    containers: tuple[InspectedContainer, ...]


_FIELDS: Final = InspectedContainer.__struct_fields__


def _decode(data: bytes) -> dict[str, InspectedContainer]:
    content = msgspec.msgpack.decode(data, type=_Content)
    return {c.id: c for c in content.containers} if content.fields == _FIELDS else {}


class InspectFile:
    """Has one writer, the node worker. With an empty ``path`` nothing is kept."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._changed = asyncio.Event()
        self._is_failing = False

    def read(self) -> dict[str, InspectedContainer]:
        """Inspects that an earlier process has saved, by id; none when there is no file that can be read."""
        if self._path is None:
            return {}
        return usable_state(self._path, MAX_BYTES, _decode, "what was inspected", log) or {}

    def note_change(self) -> None:
        """The file is out of date."""
        if self._path is not None:
            self._changed.set()

    async def keep(self, containers: Callable[[], Iterable[InspectedContainer]]) -> Never:
        """Write what ``containers`` gives after each change, soon and not too often, for ever."""
        pause_s = KEEP_S
        while True:
            await self._changed.wait()
            await asyncio.sleep(pause_s)
            self._changed.clear()
            began = loop_time()
            # No variable here has the bytes: this frame waits for the next change for as long as nothing happens.
            await self._write(msgspec.msgpack.encode(_Content(_FIELDS, tuple(containers()))))
            pause_s = max(KEEP_S, (loop_time() - began) / WRITING_SHARE)

    async def _write(self, data: bytes) -> None:
        """A file that cannot be written costs the next worker an inspect of each container."""
        assert self._path is not None
        try:
            await asyncio.to_thread(make_private, self._path.parent)
            await asyncio.to_thread(write_atomically, self._path, data, durable=False)
        except OSError as error:
            level = logging.DEBUG if self._is_failing else logging.WARNING
            log.log(level, "cannot keep what was inspected: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False
