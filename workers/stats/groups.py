"""Counters of a group (a pod, all pods) as the sum of its members', those that have gone included. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ipc.stats.values import Cpu, Memory, Source


class Figures(NamedTuple):
    """Counters of a member; None where one is not known."""

    usage_ns: int | None = None
    user_ns: int | None = None
    system_ns: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None


NOTHING: Final = Figures(0, 0, 0, 0, 0)


def figures_of(cpu: Cpu | None, memory: Memory | None) -> Figures:
    """Counters of one member's samples."""
    return Figures(
        usage_ns=cpu.usage_ns if cpu else None,
        user_ns=cpu.user_ns if cpu else None,
        system_ns=cpu.system_ns if cpu else None,
        page_faults=memory.page_faults if memory else None,
        major_page_faults=memory.major_page_faults if memory else None,
    )


class GroupAccount:
    """Counters of one group."""

    def __init__(self, members: Mapping[str, Figures] | None = None, total: Figures = NOTHING) -> None:
        """``members`` as they were last, when their and all earlier ones' sum was ``total``."""
        self._members: Mapping[str, Figures] = members or {}
        self._ended = _minus(total, sum_of(self._members.values())) if members else NOTHING

    def add(self, members: Mapping[str, Figures]) -> Figures:
        """Sum of these and of all that were members before. A figure that a member lacks is lacking."""
        gone = [_known(figures) for name, figures in self._members.items() if name not in members]
        self._ended = sum_of([self._ended, *gone])
        self._members = members
        return sum_of([self._ended, *members.values()])


def sum_of(several: Iterable[Figures]) -> Figures:
    """None for a figure that one of them lacks."""
    return Figures(*(total(column) for column in zip(NOTHING, *several, strict=True)))


def total(values: Sequence[int | None]) -> int | None:
    """None when one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def cpu_of(figures: Figures, time: float) -> Cpu:
    return Cpu(
        source=Source.CONTAINERS,
        time=time,
        usage_ns=figures.usage_ns,
        user_ns=figures.user_ns,
        system_ns=figures.system_ns,
    )


def memory_of(figures: Figures, members: Sequence[Memory | None], time: float) -> Memory:
    """Sizes that all members know, added up."""

    def added(size: Callable[[Memory], int | None]) -> int | None:
        return total([size(member) if member is not None else None for member in members])

    return Memory(
        source=Source.CONTAINERS,
        time=time,
        usage=added(lambda m: m.usage),
        working_set=added(lambda m: m.working_set),
        rss=added(lambda m: m.rss),
        swap=added(lambda m: m.swap),
        page_faults=figures.page_faults,
        major_page_faults=figures.major_page_faults,
    )


def _known(figures: Figures) -> Figures:
    return Figures(*(value or 0 for value in figures))


def _minus(one: Figures, other: Figures) -> Figures:
    return Figures(*(max(0, (a or 0) - (b or 0)) for a, b in zip(one, other, strict=True)))
