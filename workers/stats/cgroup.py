"""Figures of a container from the files of its own cgroup (v2), as far as there are any.

Every cgroup has cpu.stat and, with PSI in the kernel, pressure files; memory and I/O need controllers, which are
delegated to a user or not (docs/statistics.md). Mirrors cAdvisor (container/libcontainer/handler.go).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from ipc.stats.values import Cpu, Io, Memory, Processes, Source
from workers.stats import flat_files

NS_PER_US: Final = 1000
CPU_STAT: Final = "cpu.stat"
MEMORY_CURRENT: Final = "memory.current"
MEMORY_MAX: Final = "memory.max"
MEMORY_PEAK: Final = "memory.peak"
SWAP_MAX: Final = "memory.swap.max"
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
    """Those right below a cgroup, none when it is gone."""
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
