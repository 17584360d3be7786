"""Processes of pods' infra containers, looked up once for each and not for each socket."""

from __future__ import annotations

import os
import select
from typing import Final

from workers.proc import procfs
from workers.proc.pidfd import open_pidfd

MAX_PROCESSES: Final = 512
"""Pidfds kept; beyond it the oldest goes, and is opened anew when it is wanted."""


class AnotherProcess(Exception):
    """The pid has passed to it."""


class InfraProcesses:
    """Pidfds by pid and start. They hold nothing of a process or its namespaces, and never become another one's."""

    def __init__(self) -> None:
        self._pidfds: dict[tuple[int, int], int] = {}
        """By pid and clock tick of the start, the oldest first."""

    def pidfd(self, pid: int, start_ticks: int) -> int:
        """The descriptor stays the cache's. Its process may have ended since, which its user finds.

        Raises ProcessLookupError, AnotherProcess, OSError.
        """
        found = self._pidfds.get((pid, start_ticks))
        if found is None:
            self._forget_ended()
            found = self._pidfds[pid, start_ticks] = _opened(pid, start_ticks)
        return found

    def forget_all(self) -> None:
        """Close all, because their file descriptors are needed elsewhere."""
        while self._pidfds:
            self._forget_oldest()

    def _forget_ended(self) -> None:
        """And so many that there is room for one more."""
        poll = select.poll()
        for pidfd in self._pidfds.values():
            poll.register(pidfd, select.POLLIN)
        ended = {pidfd for pidfd, _ in poll.poll(0)}
        for key, pidfd in tuple(self._pidfds.items()):
            if pidfd in ended:
                del self._pidfds[key]
                os.close(pidfd)
        while len(self._pidfds) >= MAX_PROCESSES:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        os.close(self._pidfds.pop(next(iter(self._pidfds))))


def _opened(pid: int, start_ticks: int) -> int:
    pidfd = open_pidfd(pid)
    if pidfd is None:
        raise ProcessLookupError
    # Looked at when the pidfd is there: had another process got the pid in between, the pidfd would stand for one that
    # has ended.
    if not start_ticks or procfs.start_ticks(pid) != start_ticks:
        os.close(pidfd)
        raise AnotherProcess
    return pidfd
