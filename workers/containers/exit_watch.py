"""Watches containers' processes for their ends, by one pidfd for each that runs, infra containers included.

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
from ipc.link.eventloop.backoff import Backoff
from workers.kubecontainer.runtime import ContainerProcess, InspectedContainer, RecordedEnd

SETTLE_S: Final = 0.005
"""From the end of a process until Podman shows it, in seconds: conmon writes the exit code first, within 5 ms of it.

Not longer: some 30 ms after the end comes `podman container cleanup`, which conmon starts, and holds the container's
lock for 50 to 100 ms. An observation that comes in time does not wait for that."""
RECORD_PAUSES_S: Final = (0.001, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032)
"""Pauses before each read of the monitor's record of an end, the first one counted from the end, in seconds. A read
costs 0.1 ms."""
RECORD_WAIT_S: Final = 3.0
"""How long a monitor that lives is waited for after that, with the last of these pauses between two reads, in seconds:
on a busy host it takes longer, and an inspect, which reads the same record, would make it busier. Then, or at once
where no monitor will record anything, Podman is asked."""
RECORD_HOLDS_S: Final = 10.0
"""How long a record stands beside what Podman said before the end, in seconds. Later it counts as an inspect: most
containers were removed by then, and Podman, which has cleaned up after all others, says the same."""
CHECKS: Final = Backoff(SETTLE_S, 2.0)
"""Between two checks at a container that Podman says runs, while its process has ended."""
PATIENCE_S: Final = 10.0
"""How long a monitor may take to report an end to Podman, in seconds. Then the exit code counts as lost."""
RESERVED_FDS: Final = 256
"""File descriptors left for everything else in the process."""
MAX_FDS: Final = 65_536
"""As many file descriptors as a node worker asks for, at the most: twenty thousand pods."""


class Processes(Protocol):
    """Methods of `Runtime` that the watch uses."""

    def open_process(self, container: InspectedContainer) -> int | None: ...

    def has_monitor(self, process: ContainerProcess) -> bool: ...

    def will_record(self, process: ContainerProcess) -> bool: ...

    def recorded_end(self, process: ContainerProcess) -> RecordedEnd | None: ...


class _Watch(msgspec.Struct, frozen=True):
    container: InspectedContainer
    uid: str
    fd: int


class _End(msgspec.Struct, frozen=True):
    container: InspectedContainer
    seen: Instant
    monitored: bool
    """Whether the container's monitor lived when that was last checked."""
    checks: int = 0
    """Inspects since the end."""
    final: bool = False
    """Podman will not learn of the end any more."""
    record: RecordedEnd | None = None
    """How the process has ended, as its monitor has recorded it."""


class ExitWatch:
    """Pidfds of running containers, and ends that Podman does not show yet. Belongs to the running event loop."""

    def __init__(
        self,
        processes: Processes,
        clock: Clock,
        on_exit: Callable[[str], None],
        max_watches: int | None = None,
        *,
        on_record: Callable[[str], None] | None = None,
    ) -> None:
        """``on_exit`` gets, in the loop, the uid of a pod to observe; ``on_record`` that of a pod with a container that
        has ended and has a `record_of`. Without ``on_record`` no records are read."""
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
        """Ids of containers that run without a pidfd, for lack of file descriptors. Relists find their ends."""
        return self._unwatched

    @property
    def unconfirmed(self) -> Set[str]:
        """Ids of containers whose processes have ended, and whose end Podman has not confirmed."""
        return {id for id, end in self._ends.items() if not end.final}

    @property
    def noted(self) -> Set[str]:
        """Ids of containers that have a `record_of`."""
        return {id for id, end in self._ends.items() if end.record is not None}

    def watch(self, container: InspectedContainer, uid: str) -> None:
        """Watch a container that was inspected as running just now. A second call costs nothing."""
        id = container.id
        if self.is_running(id, container.pid):
            return
        end = self._ends.pop(id, None)
        self._close(id)
        if end is not None and end.container.pid == container.pid:
            self._recheck(container, uid, end)
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
        """Whether that process is watched and has not ended."""
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
        """When that process ended, in epoch seconds, if Podman will not learn of it any more."""
        end = self._ends.get(container_id)
        return end.seen.wall if end is not None and end.final and end.container.pid == pid else None

    def record_of(self, container_id: str, pid: int) -> RecordedEnd | None:
        """How that process ended, if its monitor has recorded it and Podman does not show it yet."""
        end = self._ends.get(container_id)
        return end.record if end is not None and end.container.pid == pid else None

    def is_reported(self, container_id: str) -> bool:
        """Whether the monitor has recorded that end so lately that nobody has to ask Podman. Reads the record if nobody
        has yet."""
        end = self._ends.get(container_id)
        if end is None or self._clock.now().mono - end.seen.mono >= RECORD_HOLDS_S:
            return False
        if end.record is None:
            end = self._ends[container_id] = msgspec.structs.replace(
                end, record=self._processes.recorded_end(end.container.process)
            )
        return end.record is not None

    def forget(self, container_id: str) -> None:
        """Stop watching a container that has ended or is gone."""
        self._close(container_id)
        self._ends.pop(container_id, None)

    def retain(self, container_ids: Set[str]) -> None:
        """Forget all containers but these, which exist."""
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
        monitored = self._processes.has_monitor(container.process)
        self._ends[container.id] = _End(container, self._clock.now(), monitored)
        if self._on_record is not None:
            # A sandbox's end is told by an observation: it is the end of what runs in it, too.
            on_record = self._on_exit if container.is_infra else self._on_record
            self._loop.call_later(RECORD_PAUSES_S[0], self._read_record, container, uid, on_record, 1)
        else:
            self._loop.call_later(SETTLE_S, self._on_exit, uid)

    def _read_record(
        self, container: InspectedContainer, uid: str, on_record: Callable[[str], None], checks: int
    ) -> None:
        """Read the monitor's record for the ``checks``-th time, unless Podman has confirmed the end meanwhile."""
        end = self._ends.get(container.id)
        if end is None or end.container.pid != container.pid:
            return
        record = end.record or self._processes.recorded_end(container.process)
        if record is not None:
            self._ends[container.id] = msgspec.structs.replace(end, record=record)
            on_record(uid)
        elif checks < len(RECORD_PAUSES_S) or self._is_worth_waiting(end):
            pause_s = RECORD_PAUSES_S[min(checks, len(RECORD_PAUSES_S) - 1)]
            self._loop.call_later(pause_s, self._read_record, container, uid, on_record, checks + 1)
        else:
            self._on_exit(uid)

    def _is_worth_waiting(self, end: _End) -> bool:
        waited_s = self._clock.now().mono - end.seen.mono
        return waited_s < RECORD_WAIT_S and self._processes.will_record(end.container.process)

    def _recheck(self, container: InspectedContainer, uid: str, end: _End) -> None:
        """Podman was asked once more and shows the container as running. A monitor that was dead before the inspect
        will never report the end."""
        late = self._clock.now().mono - end.seen.mono >= PATIENCE_S
        final = end.final or late or not end.monitored
        monitored = final or self._processes.has_monitor(container.process)
        self._ends[container.id] = msgspec.structs.replace(end, checks=end.checks + 1, final=final, monitored=monitored)
        if not final:
            pause_s = CHECKS.pause_s(end.checks + 2)
            self._loop.call_later(pause_s, self._on_exit, uid)


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one, up to MAX_FDS."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = MAX_FDS if hard == resource.RLIM_INFINITY else min(hard, MAX_FDS)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _room_for_watches() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_FDS if soft == resource.RLIM_INFINITY else max(0, soft - RESERVED_FDS)
