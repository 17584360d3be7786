"""Hints that a container's process has ended: one file descriptor (a pidfd) for each that runs.

A pidfd becomes readable some 20 ms before Podman's API shows the end, and 150 ms before its event arrives (measured on
4.3.1). While it is not readable, what was inspected of the running container is still true.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable, Set
from typing import Final

import msgspec

SETTLE_S: Final = 0.03
"""From the end of a process until Podman shows it, in seconds: conmon writes the exit code first."""
MAX_REPEATS: Final = 6
"""How often a hint is repeated, each time after twice the delay, while Podman still says that the dead process runs.
After that the relist is left with it."""
RESERVED_FDS: Final = 256
"""File descriptors left for everything else in the process."""


class _Watch(msgspec.Struct, frozen=True):
    pid: int
    uid: str
    fd: int


class ExitWatch:
    """Watches processes of containers; belongs to the running event loop. Only hints: a lost one costs time."""

    def __init__(
        self,
        open_process: Callable[[int], int | None],
        on_exit: Callable[[str], None],
        max_watches: int | None = None,
    ) -> None:
        """``open_process`` is the runtime's; ``on_exit`` gets, in the loop, the uid of the pod to look at."""
        self._open_process = open_process
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._max_watches = _room_for_watches() if max_watches is None else max_watches
        self._watches: dict[str, _Watch] = {}
        self._ended: dict[str, tuple[int, int]] = {}
        """Container id: the pid that ended, and how often that was told."""

    def watch(self, container_id: str, pid: int, uid: str) -> None:
        """The container was seen running with that pid. Again is free of cost."""
        known = self._watches.get(container_id)
        if known is not None and known.pid == pid:
            return
        self.forget(container_id)
        if len(self._watches) >= self._max_watches:
            return
        try:
            fd = self._open_process(pid)
        except OSError:
            return  # Out of file descriptors, most likely: then its end is found by an event or a relist.
        if fd is None:
            self._tell(container_id, pid, uid)
            return
        self._watches[container_id] = _Watch(pid, uid, fd)
        self._loop.add_reader(fd, self._end, container_id)

    def is_running(self, container_id: str, pid: int) -> bool:
        """Whether the process that was watched under that pid certainly has not ended."""
        known = self._watches.get(container_id)
        return known is not None and known.pid == pid

    def forget(self, container_id: str) -> None:
        """The container does not run any more."""
        known = self._watches.pop(container_id, None)
        if known is not None:
            self._loop.remove_reader(known.fd)
            os.close(known.fd)

    def retain(self, container_ids: Set[str]) -> None:
        """Every container that exists: the others are forgotten altogether."""
        for gone in (self._watches.keys() | self._ended.keys()) - container_ids:
            self.forget(gone)
            self._ended.pop(gone, None)

    def close(self) -> None:
        self.retain(frozenset())

    def _end(self, container_id: str) -> None:
        known = self._watches[container_id]
        self.forget(container_id)
        self._tell(container_id, known.pid, known.uid)

    def _tell(self, container_id: str, pid: int, uid: str) -> None:
        told_pid, times = self._ended.get(container_id, (pid, 0))
        times = times if told_pid == pid else 0
        self._ended[container_id] = (pid, times + 1)
        if times <= MAX_REPEATS:
            self._loop.call_later(SETTLE_S * 2**times, self._on_exit, uid)


def _room_for_watches() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(0, soft - RESERVED_FDS)
