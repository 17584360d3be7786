"""Ends of containers' processes: one file descriptor (a pidfd) for each that runs, infra containers among them.

A pidfd becomes readable 1 to 5 ms before conmon has written the exit code, from when on Podman's API shows the end, and
150 ms before its event arrives (measured on 4.3.1). What conmon has written is read there, without Podman: that would
have the container's state to save first, and then work on the clean-up which conmon starts. While the pidfd is not
readable, what was inspected of the running container is still true. When it is, and Podman goes on saying that the
container runs, the pidfd is right: a container whose monitor is dead runs for Podman for ever.
"""

from __future__ import annotations

import asyncio
import os
import resource
import select
from collections.abc import Callable, Set
from typing import Final, Protocol

import msgspec

from ipc.host.clock import Clock, Instant
from workers.kubecontainer.runtime import InspectedContainer, RecordedEnd

SETTLE_S: Final = 0.005
"""From the end of a process until Podman shows it, in seconds: conmon writes the exit code first, within 5 ms of it.

Not longer: some 30 ms after the end comes `podman container cleanup`, which conmon starts, and holds the container's
lock for 50 to 100 ms. A look that comes in time does not wait for that."""
RECORD_PAUSES_S: Final = (0.001, 0.001, 0.002, 0.004, 0.008, 0.016)
"""From the end of a process until its monitor's note of it is looked for, and then from one such look to the next, in
seconds. A look costs 0.1 ms. When there is no note after all of them, Podman is asked."""
MAX_PAUSE_S: Final = 2.0
"""Between two looks at a container that Podman says runs, while its process has ended, in seconds. The first pause is
SETTLE_S, each next one twice as long."""
PATIENCE_S: Final = 10.0
"""How long a monitor may take to tell Podman of an end, in seconds. Then its exit code counts as lost."""
RESERVED_FDS: Final = 256
"""File descriptors left for everything else in the process."""
MAX_FDS: Final = 65_536
"""As many file descriptors as a node worker asks for, at the most: twenty thousand pods."""


class Processes(Protocol):
    """What is needed of the runtime."""

    def open_process(self, container: InspectedContainer) -> int | None: ...

    def has_monitor(self, container: InspectedContainer) -> bool: ...

    def recorded_end(self, container: InspectedContainer) -> RecordedEnd | None: ...


class _Watch(msgspec.Struct, frozen=True):
    container: InspectedContainer
    uid: str
    fd: int


class _End(msgspec.Struct, frozen=True):
    pid: int
    seen: Instant
    monitored: bool
    """Whether somebody was there to tell Podman, when that was last looked at."""
    looks: int = 0
    """How often Podman was asked since."""
    final: bool = False
    """Podman will not notice any more."""
    record: RecordedEnd | None = None
    """What the monitor has noted."""


class ExitWatch:
    """Watches processes of containers; belongs to the running event loop."""

    def __init__(
        self,
        processes: Processes,
        clock: Clock,
        on_exit: Callable[[str], None],
        max_watches: int | None = None,
        *,
        on_record: Callable[[str], None] | None = None,
    ) -> None:
        """``on_exit`` gets, in the loop, the uid of the pod to look at; ``on_record`` of one of which a container has
        ended, and `record_of` says how. Without it nobody wants to know."""
        self._processes = processes
        self._clock = clock
        self._on_exit = on_exit
        self._on_record = on_record
        self._loop = asyncio.get_running_loop()
        self._max_watches = _room_for_watches() if max_watches is None else max_watches
        self._watches: dict[str, _Watch] = {}
        self._ends: dict[str, _End] = {}
        self._unwatched: set[str] = set()

    @property
    def unwatched(self) -> Set[str]:
        """Ids of containers that run and have no file descriptor: there are not enough. Relists find their ends."""
        return self._unwatched

    @property
    def doubted(self) -> Set[str]:
        """Ids of containers whose processes have ended, while Podman has not said so, or was not asked since."""
        return {id for id, end in self._ends.items() if not end.final}

    @property
    def noted(self) -> Set[str]:
        """Ids of those of which there is a `record_of`."""
        return {id for id, end in self._ends.items() if end.record is not None}

    def watch(self, container: InspectedContainer, uid: str) -> None:
        """The container was seen running just now. Again is free of cost."""
        id = container.id
        if self.is_running(id, container.pid):
            return
        end = self._ends.pop(id, None)
        self._close(id)
        if end is not None and end.pid == container.pid:
            self._doubt(container, uid, end)
            return
        try:
            fd = self._processes.open_process(container)
        except OSError:
            self._unwatched.add(id)
            return
        if fd is None:
            self._ended(container, uid)
        elif len(self._watches) < self._max_watches:
            self._watches[id] = _Watch(container, uid, fd)
            self._loop.add_reader(fd, self._fired, id)
        else:
            os.close(fd)
            self._unwatched.add(id)

    def is_running(self, container_id: str, pid: int) -> bool:
        """Whether the process that is watched under that pid certainly has not ended."""
        known = self._watches.get(container_id)
        return known is not None and known.container.pid == pid

    def is_alive(self, container_id: str) -> bool:
        """Whether a process of that container is watched and has not ended, asked of the kernel."""
        known = self._watches.get(container_id)
        if known is None:
            return False
        poll = select.poll()
        poll.register(known.fd, select.POLLIN)
        return not poll.poll(0)

    def end_of(self, container_id: str, pid: int) -> float | None:
        """When that process ended, in epoch seconds, if Podman will not notice it any more."""
        end = self._ends.get(container_id)
        return end.seen.wall if end is not None and end.final and end.pid == pid else None

    def record_of(self, container_id: str, pid: int) -> RecordedEnd | None:
        """How that process ended, if its monitor has noted it and Podman has not said so yet."""
        end = self._ends.get(container_id)
        return end.record if end is not None and end.pid == pid else None

    def forget(self, container_id: str) -> None:
        """The container does not run any more, or is gone."""
        self._close(container_id)
        self._ends.pop(container_id, None)

    def retain(self, container_ids: Set[str]) -> None:
        """Every container that exists: the others are forgotten."""
        for gone in sorted((self._watches.keys() | self._ends.keys() | self._unwatched) - container_ids):
            self.forget(gone)

    def close(self) -> None:
        self.retain(frozenset())

    def _close(self, container_id: str) -> None:
        self._unwatched.discard(container_id)
        known = self._watches.pop(container_id, None)
        if known is not None:
            self._loop.remove_reader(known.fd)
            os.close(known.fd)

    def _fired(self, container_id: str) -> None:
        known = self._watches[container_id]
        self._close(container_id)
        self._ended(known.container, known.uid)

    def _ended(self, container: InspectedContainer, uid: str) -> None:
        monitored = self._processes.has_monitor(container)
        self._ends[container.id] = _End(container.pid, self._clock.now(), monitored)
        if self._on_record is not None and not container.is_infra:
            self._loop.call_later(RECORD_PAUSES_S[0], self._look_for_record, container, uid, self._on_record, 1)
        else:
            self._loop.call_later(SETTLE_S, self._on_exit, uid)

    def _look_for_record(
        self, container: InspectedContainer, uid: str, on_record: Callable[[str], None], looks: int
    ) -> None:
        """For the ``looks``-th time, unless Podman has told of the end meanwhile."""
        end = self._ends.get(container.id)
        if end is None or end.pid != container.pid:
            return
        record = self._processes.recorded_end(container)
        if record is not None:
            self._ends[container.id] = msgspec.structs.replace(end, record=record)
            on_record(uid)
        elif looks < len(RECORD_PAUSES_S):
            self._loop.call_later(RECORD_PAUSES_S[looks], self._look_for_record, container, uid, on_record, looks + 1)
        else:
            self._on_exit(uid)

    def _doubt(self, container: InspectedContainer, uid: str, end: _End) -> None:
        """Podman was asked once more and says that it runs. A monitor that was dead before the question has told it
        nothing and never will."""
        late = self._clock.now().mono - end.seen.mono >= PATIENCE_S
        final = end.final or late or not end.monitored
        monitored = final or self._processes.has_monitor(container)
        self._ends[container.id] = msgspec.structs.replace(end, looks=end.looks + 1, final=final, monitored=monitored)
        if not final:
            pause_s = min(SETTLE_S * 2.0 ** min(end.looks + 1, 16), MAX_PAUSE_S)
            self._loop.call_later(pause_s, self._on_exit, uid)


def raise_file_limit() -> None:
    """This process may open as many files as it is allowed to, up to MAX_FDS."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = MAX_FDS if hard == resource.RLIM_INFINITY else min(hard, MAX_FDS)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _room_for_watches() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_FDS if soft == resource.RLIM_INFINITY else max(0, soft - RESERVED_FDS)
