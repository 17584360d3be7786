"""Figures of a container from its processes, where no cgroup has them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from workers.proc.procfs import TICKS_PER_S
from workers.stats.accounts import Counters, Process
from workers.stats.process_table import resident_and_shared, swapped_bytes
from workers.statsapi.values import Cpu, Memory, Processes, Source

NS_PER_TICK: Final = 1_000_000_000 // TICKS_PER_S
LEAST_NS: Final = 1_000
"""CPU time of a container whose processes have used less than a tick: nobody starts for nothing, and metrics-server
leaves a pod out of which a container has used 0 (decode.go, checkContainerMetrics)."""
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def cpu_of(counters: Counters, time: float) -> Cpu:
    """CPU time by a container's counters: a lower bound, and more than 0."""
    return Cpu(
        source=Source.PROCESSES,
        time=time,
        usage_ns=max(LEAST_NS, (counters.user_ticks + counters.system_ticks) * NS_PER_TICK),
        user_ns=counters.user_ticks * NS_PER_TICK,
        system_ns=counters.system_ticks * NS_PER_TICK,
    )


def memory_of(processes: Sequence[Process], counters: Counters, time: float, *, has_swap: bool) -> Memory:
    """Memory that is mapped into these processes. Reads /proc. Page cache is nobody's here, so all of it is in the
    working set. Without ``has_swap`` the host has no swap space."""
    sizes = [resident_and_shared(process.pid) for process in processes]
    resident = sum(pages for pages, _ in sizes) * PAGE_BYTES
    shared = sum(pages for _, pages in sizes) * PAGE_BYTES
    return Memory(
        source=Source.PROCESSES,
        time=time,
        usage=resident,
        working_set=resident,
        rss=max(0, resident - shared),
        swap=sum(swapped_bytes(process.pid) for process in processes) if has_swap else 0,
        page_faults=counters.page_faults,
        major_page_faults=counters.major_page_faults,
    )


def count_of(processes: Sequence[Process]) -> Processes:
    """Processes and their threads."""
    return Processes(
        source=Source.PROCESSES, count=len(processes), threads=sum(process.threads for process in processes)
    )
