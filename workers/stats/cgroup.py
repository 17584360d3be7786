"""Figures of a container from the files of its own cgroup (v2), as far as there are any.

Every cgroup has cpu.stat and, with PSI in the kernel, pressure files; memory and I/O need controllers, which are
delegated to a user or not (docs/statistics.md). Mirrors cAdvisor (container/libcontainer/handler.go).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Mapping
from typing import Final

from ipc.stats.values import Cpu, Io, Memory, Processes, Source
from workers.stats import flat_files

NS_PER_US: Final = 1000
MAX_ENTRIES: Final = 1000
"""Most entries of a cgroup's directory that are looked at: a container with a cgroup of its own may make some."""


def read_cpu(directory: str, time: float) -> Cpu | None:
    """None when the cgroup is gone."""
    stat = flat_files.keyed(flat_files.read(f"{directory}/cpu.stat"))
    if "usage_usec" not in stat:
        return None
    return Cpu(
        source=Source.CGROUP,
        time=time,
        usage_ns=stat["usage_usec"] * NS_PER_US,
        user_ns=_scaled(stat, "user_usec"),
        system_ns=_scaled(stat, "system_usec"),
        periods=stat.get("nr_periods"),
        throttled_periods=stat.get("nr_throttled"),
        throttled_ns=_scaled(stat, "throttled_usec"),
        pressure=flat_files.pressure(flat_files.read(f"{directory}/cpu.pressure")),
    )


def read_memory(directory: str, time: float) -> Memory | None:
    """None without the memory controller."""
    usage = flat_files.number(flat_files.read(f"{directory}/memory.current"))
    if usage is None:
        return None
    stat = flat_files.keyed(flat_files.read(f"{directory}/memory.stat"))
    events = flat_files.keyed(flat_files.read(f"{directory}/memory.events"))
    inactive = stat.get("inactive_file")
    return Memory(
        source=Source.CGROUP,
        time=time,
        usage=usage,
        working_set=max(0, usage - inactive) if inactive is not None else None,
        rss=stat.get("anon"),
        cache=stat.get("file"),
        mapped_file=stat.get("file_mapped"),
        active_file=stat.get("active_file"),
        inactive_file=inactive,
        kernel=stat.get("kernel"),
        max_usage=flat_files.number(flat_files.read(f"{directory}/memory.peak")),
        swap=flat_files.number(flat_files.read(f"{directory}/memory.swap.current")),
        limit=flat_files.number(flat_files.read(f"{directory}/memory.max")),
        swap_limit=flat_files.number(flat_files.read(f"{directory}/memory.swap.max")),
        page_faults=stat.get("pgfault"),
        major_page_faults=stat.get("pgmajfault"),
        oom_kills=events.get("oom_kill"),
        limit_hits=events.get("max"),
        pressure=flat_files.pressure(flat_files.read(f"{directory}/memory.pressure")),
    )


def read_io(directory: str, time: float) -> Io | None:
    """None with neither the io controller nor PSI."""
    text = flat_files.read(f"{directory}/io.stat")
    stall = flat_files.pressure(flat_files.read(f"{directory}/io.pressure"))
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


def read_processes(directory: str) -> Processes:
    """Processes of the cgroup and of those right below it, and threads by the pids controller."""
    counts = [_lines(f"{path}/cgroup.procs") for path in (directory, *_below(directory))]
    known = [count for count in counts if count is not None]
    return Processes(
        source=Source.CGROUP,
        count=sum(known) if known else None,
        threads=flat_files.number(flat_files.read(f"{directory}/pids.current")),
    )


def _lines(path: str) -> int | None:
    text = flat_files.read(path)
    return text.count(b"\n") if text is not None else None


def _below(directory: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        return [entry.path for entry in itertools.islice(entries, MAX_ENTRIES) if entry.is_dir(follow_symlinks=False)]
    return []


def _scaled(stat: Mapping[str, int], key: str) -> int | None:
    return stat[key] * NS_PER_US if key in stat else None


def _sum(sums: Mapping[str, int] | None, key: str) -> int | None:
    """0 for a device that was not used; None without the controller."""
    return sums.get(key, 0) if sums is not None else None
