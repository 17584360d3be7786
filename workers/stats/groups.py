"""Counters of a group (a pod, all pods) as the sum of its members', those that have gone included. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

import msgspec

from workers.statsapi.values import Cpu, Io, Memory, Processes, Source


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a container, from whatever source, without its files."""

    cpu: Cpu | None = None
    memory: Memory | None = None
    io: Io | None = None
    processes: Processes | None = None

    def at(self, time: float) -> Measured:
        """The same CPU time and memory, found again at that time in epoch seconds."""
        return msgspec.structs.replace(self, cpu=_at(self.cpu, time), memory=_at(self.memory, time))


class Figures(NamedTuple):
    """Counters of a member; None where one is not known."""

    usage_ns: int | None = None
    user_ns: int | None = None
    system_ns: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None


NOTHING: Final = Figures(0, 0, 0, 0, 0)
_Sample = TypeVar("_Sample", Cpu, Memory)
_SIZES: Final = attrgetter("usage", "working_set", "rss", "swap")
_NO_SIZES: Final = (0, 0, 0, 0)
_UNKNOWN: Final = (None, None, None, None)


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
        self._sum: Figures | None = None

    def add(self, members: Mapping[str, Figures]) -> Figures:
        """Sum of these and of all that were members before. A figure that a member lacks is lacking."""
        if self._sum is not None and members == self._members:
            return self._sum
        gone = [_known(figures) for name, figures in self._members.items() if name not in members]
        self._ended = sum_of([self._ended, *gone])
        self._members = members
        self._sum = sum_of([self._ended, *members.values()])
        return self._sum


def sum_of(several: Iterable[Figures]) -> Figures:
    """None for a figure that one of them lacks."""
    return Figures(*(total(column) for column in zip(NOTHING, *several, strict=True)))


def total(values: Sequence[int | None]) -> int | None:
    """None when one is not known."""
    return None if None in values else sum(filter(None, values))


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
    sizes = [_SIZES(member) if member is not None else _UNKNOWN for member in members]
    usage, working_set, rss, swap = map(total, zip(_NO_SIZES, *sizes, strict=True))
    return Memory(
        source=Source.CONTAINERS,
        time=time,
        usage=usage,
        working_set=working_set,
        rss=rss,
        swap=swap,
        page_faults=figures.page_faults,
        major_page_faults=figures.major_page_faults,
    )


def _known(figures: Figures) -> Figures:
    return Figures(*(value or 0 for value in figures))


def _minus(one: Figures, other: Figures) -> Figures:
    return Figures(*(max(0, (a or 0) - (b or 0)) for a, b in zip(one, other, strict=True)))


def _at(sample: _Sample | None, time: float) -> _Sample | None:
    return msgspec.structs.replace(sample, time=time) if sample is not None else None
