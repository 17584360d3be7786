"""Reads Podman's events from the file in which all Podmans of a user write them (libpod/events/logfile.go).

While a client has a stream of events open, the service looks at that file four times a second, and decodes what anybody
does in it (nxadm/tail polls; no setting changes that). Read here, it costs nothing while nothing is written. Where it
lies depends on settings and on Podman's database, and the API does not tell; but a service that streams events has it
open.

Tried on Podman 4.3.1, 5.4.2, 5.8.6 and 6.1.1, by tests/contract/test_events_contract.py. Where there is no such file
(journald, another name, a service in another mount namespace) or it cannot be read, the service's own stream is
followed. A line of another shape is no event: the next relist sees what it was about.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import orjson

from ipc.host.libpod.go_json import GoObject, decode_value
from ipc.host.text.json_types import UNDECODABLE
from ipc.host.text.lines import LineSplitter
from workers.fs.growth_watch import GrowthWatch
from workers.fs.regular_file import open_regular
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import RuntimeEvent
from workers.proc.pidfd import open_pidfd

NAME: Final = "events.log"
"""Podman's own. A file that its settings call otherwise is not found."""
OPENED_POLLS: Final = 10
"""So often is it asked whether the service has opened the file, which it does after the head of its answer."""
OPENED_POLL_S: Final = 0.1
"""Pause between two of these questions, in seconds."""
LOOK_S: Final = 0.25
"""From the first write to the look at it, in seconds: events come in groups, and the service looks as often."""
READ_BYTES: Final = 256 * 1024
"""Most that is read at a time, and of what was written before the file was opened."""
REPEATED_S: Final = 1.0
"""When another file has taken its place, with copies of its last half, events are told again that are so much older
than the newest, in seconds: those of several Podmans may be out of order."""


class _Logged(GoObject, frozen=True):
    """A line of the file (libpod/events/config.go)."""

    status: str
    time: Annotated[datetime, msgspec.Meta(tz=True)]
    type: str
    """Such as ``container`` or ``pod``."""
    id: str = msgspec.field(default="", name="ID")
    attributes: dict[str, str] | None = None


async def find_log(pid: int) -> str:
    """The file from which that process reads events, as soon as it does; empty when there is none."""
    for _ in range(OPENED_POLLS):
        if path := _open_log(pid):
            return path
        await asyncio.sleep(OPENED_POLL_S)
    return ""


def _open_log(pid: int) -> str:
    with contextlib.suppress(OSError):  # it has ended, or is somebody else's
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # it was closed meanwhile, or has another place here
                path = os.readlink(entry)
                if path.endswith(f"/{NAME}") and os.path.samestat(os.stat(entry), os.lstat(path)):
                    return path
    return ""


class EventLog:
    """Podman's file of events, followed. Belongs to the running loop. Lives until `close`."""

    def __init__(self, path: str, service_pid: int, instance: str, since: float) -> None:
        """Events are told from ``since`` on, epoch seconds. Raises OSError."""
        self._path, self._instance, self._newest = path, instance, since
        self._label = b"%s:%s" % (orjson.dumps(labels.INSTANCE), orjson.dumps(instance))
        self._stir = asyncio.Event()
        """Something was written, the file was replaced, or the service has ended."""
        self._has_ended = self._is_armed = False
        self._loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as stack:
            pidfd = open_pidfd(service_pid)
            if pidfd is None:
                raise ProcessLookupError(f"no process {service_pid}")
            stack.callback(os.close, pidfd)
            self._watch = GrowthWatch(lambda _: self._stir.set(), and_links=True)
            stack.callback(self._watch.close)
            self._tail = _Tail(path)
            stack.callback(lambda: self._tail.close())
            self._pidfd = pidfd
            self._loop.add_reader(pidfd, self._end)
            stack.callback(self._loop.remove_reader, pidfd)
            self._stack = stack.pop_all()

    def close(self) -> None:
        self._stack.close()

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        """Events of this agent as they are written. Raises OSError: the service has ended, or the file has gone."""
        since = self._newest
        while not self._has_ended:
            was_written = False
            for lines in self._tail.read():
                was_written = True
                for event in filter(None, map(self._event, lines)):
                    self._newest = max(self._newest, event.time)
                    if event.time >= since:
                        yield event
                await asyncio.sleep(0)  # others have their turn
            since = 0.0
            if self._tail.is_replaced():
                self._tail, gone = _Tail(self._path), self._tail
                gone.close()
                since, self._is_armed = self._newest - REPEATED_S, False
            else:
                await self._pause(was_written)
        raise ConnectionResetError("Podman's service has ended")

    async def _pause(self, was_written: bool) -> None:
        """Until the next look: a while after the first write since an empty one. One more comes as soon as the file is
        watched, for what was written before that."""
        if was_written or self._is_armed:
            if not was_written:
                await self._stir.wait()
            self._is_armed = False
            await asyncio.sleep(LOOK_S)
        else:
            self._stir.clear()
            self._watch.arm(self._path, self._tail.file)
            self._is_armed = True

    def _event(self, line: bytes) -> RuntimeEvent | None:
        """The event of a line, if it is of this agent. Anything may stand in others."""
        if self._label not in line:
            return None
        try:
            logged = decode_value(_Logged, line)
            time = logged.time.timestamp()
        except UNDECODABLE:
            return None
        attributes = logged.attributes or {}
        if logged.type != "container" or attributes.get(labels.INSTANCE) != self._instance:
            return None
        return RuntimeEvent(action=logged.status, container_id=logged.id, labels=attributes, time=time)

    def _end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self._has_ended = True
        self._stir.set()


class _Tail:
    """The end of the file at that path, as it was opened."""

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self._path = path
        self.file = open_regular(Path(path).parent, Path(path))
        self._at = max(0, os.fstat(self.file).st_size - READ_BYTES)
        self._lines = LineSplitter()

    def close(self) -> None:
        os.close(self.file)

    def read(self) -> Iterator[Iterator[bytes]]:
        """Lines that were written since, in parts. Raises OSError."""
        while data := os.pread(self.file, READ_BYTES, self._at):
            self._at += len(data)
            yield self._lines.feed(data)

    def is_replaced(self) -> bool:
        """Whether another file has taken its place, or another content its own. Raises OSError: none has."""
        here = os.fstat(self.file)
        return here.st_size < self._at or not os.path.samestat(here, os.lstat(self._path))
