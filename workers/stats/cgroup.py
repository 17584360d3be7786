"""Figures of a container from the files of its own cgroup (v2), as far as there are any.

Every cgroup has cpu.stat and, with PSI in the kernel, pressure files; memory and I/O need controllers, which are
delegated to a user or not (docs/statistics.md). Mirrors cAdvisor (container/libcontainer/handler.go).

A whole reading opens fifteen files, which is several times the cost of its processes' figures. Without CPU time nothing
is allocated, forked, faulted or sent to a device: only what could say so is read then. What the kernel does meanwhile
on a cgroup's behalf (it writes back, ages and reclaims pages) shows after some rounds; until then the figures of I/O
have the date of their reading.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from workers.stats import flat_files
from workers.stats.groups import Measured
from workers.statsapi.values import Cpu, Io, Memory, Pressure, Processes, Source

NS_PER_US: Final = 1000
CPU_STAT: Final = "cpu.stat"
MEMORY_CURRENT: Final = "memory.current"
MEMORY_MAX: Final = "memory.max"
MEMORY_PEAK: Final = "memory.peak"
SWAP_MAX: Final = "memory.swap.max"
ROUNDS: Final = 6
"""In one of so many rounds everything is read."""
SIGNS: Final = (CPU_STAT, MEMORY_CURRENT, MEMORY_MAX)
"""Files that are read in each; the limit, because a resize of the pod changes it."""
RARE: Final = (MEMORY_PEAK, SWAP_MAX)
"""Files that are read in a whole reading only."""
NOTHING: Final[Mapping[str, bytes | None]] = MappingProxyType({})
MAX_ENTRIES: Final = 1000
"""Most entries of a cgroup's directory that are looked at: a container with a cgroup of its own may make some."""


class Texts(dict[str, bytes | None]):
    """Files of a cgroup by name, each read when it is first asked for; None for one that is not there."""

    def __init__(self, directory: str, known: Mapping[str, bytes | None] = NOTHING) -> None:
        """``known``: those that need not be read."""
        super().__init__(known)
        self.directory = directory

    def __missing__(self, name: str) -> bytes | None:
        text = self[name] = flat_files.read_record(f"{self.directory}/{name}")
        return text


def read_cpu(texts: Texts, time: float) -> Cpu | None:
    """None when the cgroup is gone."""
    stat = flat_files.pairs(texts[CPU_STAT])
    usage_ns = _scaled(stat, b"usage_usec")
    if usage_ns is None:
        return None
    return Cpu(
        source=Source.CGROUP,
        time=time,
        usage_ns=usage_ns,
        user_ns=_scaled(stat, b"user_usec"),
        system_ns=_scaled(stat, b"system_usec"),
        periods=_of(stat, b"nr_periods"),
        throttled_periods=_of(stat, b"nr_throttled"),
        throttled_ns=_scaled(stat, b"throttled_usec"),
        pressure=flat_files.pressure(texts["cpu.pressure"]),
    )


def read_memory(texts: Texts, time: float) -> Memory | None:
    """None without the memory controller."""
    usage = flat_files.number(texts[MEMORY_CURRENT])
    if usage is None:
        return None
    stat = flat_files.pairs(texts["memory.stat"])
    events = flat_files.pairs(texts["memory.events"])
    peak = flat_files.number(texts[MEMORY_PEAK])
    inactive = _of(stat, b"inactive_file")
    return Memory(
        source=Source.CGROUP,
        time=time,
        usage=usage,
        working_set=max(0, usage - inactive) if inactive is not None else None,
        rss=_of(stat, b"anon"),
        cache=_of(stat, b"file"),
        mapped_file=_of(stat, b"file_mapped"),
        active_file=_of(stat, b"active_file"),
        inactive_file=inactive,
        kernel=_of(stat, b"kernel"),
        max_usage=max(peak, usage) if peak is not None else None,
        swap=flat_files.number(texts["memory.swap.current"]),
        limit=flat_files.number(texts[MEMORY_MAX]),
        swap_limit=flat_files.number(texts[SWAP_MAX]),
        page_faults=_of(stat, b"pgfault"),
        major_page_faults=_of(stat, b"pgmajfault"),
        oom_kills=_of(events, b"oom_kill"),
        limit_hits=_of(events, b"max"),
        pressure=flat_files.pressure(texts["memory.pressure"]),
    )


def read_io(texts: Texts, time: float) -> Io | None:
    """None with neither the io controller nor PSI."""
    text = texts["io.stat"]
    stall = flat_files.pressure(texts["io.pressure"])
    if text is None and stall is None:
        return None
    sums = flat_files.io_bytes(text) if text is not None else None
    return Io(
        source=Source.CGROUP,
        time=time,
        read_bytes=_sum(sums, "rbytes"),
        write_bytes=_sum(sums, "wbytes"),
        reads=_sum(sums, "rios"),
        writes=_sum(sums, "wios"),
        pressure=stall,
    )


def read_processes(texts: Texts, below: Iterable[str]) -> Processes:
    """Processes of the cgroup and of those ``below`` it, and threads by the pids controller."""
    counts = [_lines(f"{path}/cgroup.procs") for path in (texts.directory, *below)]
    known = [count for count in counts if count is not None]
    return Processes(
        source=Source.CGROUP,
        count=sum(known) if known else None,
        threads=flat_files.number(texts["pids.current"]),
    )


def _lines(path: str) -> int | None:
    text = flat_files.read(path)
    return text.count(b"\n") if text is not None else None


def cgroups_below(directory: str) -> list[str]:
    """Directories right below a cgroup, none when it is gone."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        return [entry.path for entry in itertools.islice(entries, MAX_ENTRIES) if entry.is_dir(follow_symlinks=False)]
    return []


def _of(stat: Mapping[bytes, bytes], key: bytes) -> int | None:
    return flat_files.number(stat.get(key))


def _scaled(stat: Mapping[bytes, bytes], key: bytes) -> int | None:
    number = _of(stat, key)
    return number * NS_PER_US if number is not None else None


def _sum(sums: Mapping[str, int] | None, key: str) -> int | None:
    """0 for a device that was not used; None without the controller."""
    return sums.get(key, 0) if sums is not None else None


class OwnCgroup:
    """The cgroup of one container."""

    def __init__(self, directory: str, turn: int) -> None:
        """``turn``: different ones have their whole readings in different rounds."""
        self.directory = directory
        self.has_memory = os.path.exists(f"{directory}/{MEMORY_CURRENT}")
        """Whether the memory controller is delegated."""
        self._turn = turn
        self._signs: tuple[bytes | None, ...] = ()
        self._idle: Measured | None = None
        """The last reading, where that holds until something runs."""
        self._rare: dict[str, bytes | None] = {}
        self._links = 0
        self._children: list[str] = []

    def read(self, time: float) -> Measured:
        """Figures at that time, in epoch seconds; without the memory controller none of processes."""
        self._turn += 1
        is_whole = self._turn % ROUNDS == 0
        texts = Texts(self.directory, {} if is_whole else self._rare)
        signs = tuple(texts[name] for name in SIGNS)
        before = self._idle
        if before is not None and signs == self._signs and not is_whole:
            return before.at(time)
        measured = Measured(
            cpu=read_cpu(texts, time),
            memory=read_memory(texts, time),
            io=read_io(texts, time),
            processes=read_processes(texts, self._below()) if self.has_memory else None,
        )
        self._rare = {name: texts[name] for name in RARE if name in texts}
        self._signs, self._idle = signs, measured if _is_calm(measured) else None
        return measured

    def _below(self) -> list[str]:
        """A directory's links tell how many it has in it, in a fraction of the time of listing sixty files. One link
        says that the file system does not count."""
        try:
            links = os.stat(self.directory).st_nlink
        except OSError:
            return []
        if links != self._links or links == 1:
            self._links, self._children = links, cgroups_below(self.directory)
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
