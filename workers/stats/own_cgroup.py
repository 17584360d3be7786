"""A container's own cgroup from round to round: of one in which nothing runs only what could say so is read.

A whole reading opens fifteen files, which is several times the cost of its processes' figures. Without CPU time nothing
is allocated, forked, faulted or sent to a device. What the kernel does meanwhile on a cgroup's behalf (it writes back,
ages and reclaims pages) shows after some rounds, and until then its figures have the date of their reading.
"""

from __future__ import annotations

import os
from typing import Final

from ipc.stats.values import Pressure
from workers.stats import cgroup
from workers.stats.measured import Measured

ROUNDS: Final = 6
"""In one of so many rounds everything is read."""
SIGNS: Final = (cgroup.CPU_STAT, cgroup.MEMORY_CURRENT, cgroup.MEMORY_MAX)
"""Files that are read in each; the limit, because a resize of the pod changes it."""
RARE: Final = (cgroup.MEMORY_PEAK, cgroup.SWAP_MAX)
"""Files that are read in a whole reading only."""


class OwnCgroup:
    """The cgroup of one container."""

    def __init__(self, directory: str, turn: int) -> None:
        """``turn``: different ones have their whole readings in different rounds."""
        self.directory = directory
        self.has_memory = os.path.exists(f"{directory}/{cgroup.MEMORY_CURRENT}")
        """Whether the memory controller is delegated."""
        self._turn = turn
        self._signs: tuple[bytes | None, ...] = ()
        self._idle: Measured | None = None
        """What the last reading has told, where that holds until something runs."""
        self._rare: dict[str, bytes | None] = {}
        self._links = 0
        self._children: list[str] = []

    def read(self, time: float) -> Measured:
        """Figures at that time, in epoch seconds; without the memory controller none of processes."""
        self._turn += 1
        is_whole = self._turn % ROUNDS == 0
        texts = cgroup.Texts(self.directory, {} if is_whole else self._rare)
        signs = tuple(texts[name] for name in SIGNS)
        before = self._idle
        if before is not None and signs == self._signs and not is_whole:
            return before.at(time)
        measured = Measured(
            cpu=cgroup.read_cpu(texts, time),
            memory=cgroup.read_memory(texts, time),
            io=cgroup.read_io(texts, time),
            processes=cgroup.read_processes(texts, self._below()) if self.has_memory else None,
        )
        self._rare = {name: texts[name] for name in RARE if name in texts}
        self._signs, self._idle = signs, measured if _is_calm(measured) else None
        return measured

    def _below(self) -> list[str]:
        """A directory's links tell how many it has in it, in a fraction of the time of listing sixty files."""
        try:
            links = os.stat(self.directory).st_nlink
        except OSError:
            return []
        if links != self._links:
            self._links, self._children = links, cgroup.cgroups_below(self.directory)
        return self._children

    def forget(self) -> None:
        """Nobody looks for a while."""
        self._idle, self._rare, self._links = None, {}, 0


def _is_calm(measured: Measured) -> bool:
    """Whether no average of a pressure falls from now on: those do while nothing runs."""
    groups = (measured.cpu, measured.memory, measured.io)
    return not any(_has_average(group.pressure) for group in groups if group is not None)


def _has_average(pressure: Pressure | None) -> bool:
    stalls = (pressure.some, pressure.full) if pressure is not None else ()
    return any(stall.avg10 or stall.avg60 or stall.avg300 for stall in stalls if stall is not None)
