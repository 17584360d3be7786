"""Counters of a container that are added up from its processes, and never go backwards. Pure.

A process that ends takes its own counters with it; its parent, once it has waited for it, has them among those of its
children (proc(5), cutime). So a container has used what its processes show, those of ended children included. Only a
process without a parent in the container (the first of an exec session) leaves nothing: what it showed last is kept.
Where a parent ignores its children's ends (SIGCHLD) the kernel keeps nothing: then the sum would fall, and the counter
stands still instead. It is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple


class Counters(NamedTuple):
    """Since the begin of a process or container."""

    user_ticks: int = 0
    system_ticks: int = 0
    page_faults: int = 0
    major_page_faults: int = 0


NOTHING: Final = Counters()


class Process(NamedTuple):
    """One process as it was read; its counters have those of children that have ended and were waited for."""

    pid: int
    start_ticks: int
    parent: int
    threads: int
    counters: Counters
    resident_pages: int = 0


def plus(one: Counters, other: Counters) -> Counters:
    """Sum of both."""
    return Counters(*map(int.__add__, one, other))


def total(several: Iterable[Counters]) -> Counters:
    """Sum of all."""
    return Counters(*map(sum, zip(NOTHING, *several, strict=True)))


class ProcessAccount:
    """Counters of one container."""

    def __init__(self, known: Counters = NOTHING) -> None:
        """``known``: as they were told before, and below which they do not fall."""
        self.total = known
        self._ended = NOTHING
        """Use of processes that nobody in the container has waited for."""
        self._seen: Mapping[int, Process] = {}

    def add(self, processes: Iterable[Process]) -> Counters:
        """Counters of the container, whose processes are these now."""
        now = {process.pid: process for process in processes}
        gone = [p for p in self._seen.values() if not _is_same(now.get(p.pid), p)]
        lost = [p.counters for p in gone if not self._has_ancestor(p, now)]
        self._ended = total([self._ended, *lost])
        shown = total([self._ended, *(process.counters for process in now.values())])
        missing = Counters(*(max(0, before - after) for before, after in zip(self.total, shown, strict=True)))
        self._ended = plus(self._ended, missing)
        self.total = plus(shown, missing)
        self._seen = now
        return self.total

    def forget_processes(self) -> None:
        """Nobody looks for a while. The counters stay."""
        self._seen = {}

    def _has_ancestor(self, process: Process, now: Mapping[int, Process]) -> bool:
        """Whether one of its ancestors in the container lives, which has waited for it."""
        visited = {process.pid}
        while (parent := self._seen.get(process.parent)) is not None and parent.pid not in visited:
            if _is_same(now.get(parent.pid), parent):
                return True
            visited.add(parent.pid)
            process = parent
        return False


def _is_same(now: Process | None, before: Process) -> bool:
    return now is not None and now.start_ticks == before.start_ticks
