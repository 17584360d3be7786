"""Figures of the whole host, from /proc. Mirrors cAdvisor's root container (container/libcontainer/handler.go)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from workers.proc.procfs import TICKS_PER_S
from workers.stats import flat_files
from workers.statsapi.values import Cpu, Io, Memory, ProcessLimit, Source

KIB: Final = 1024
NS_PER_TICK: Final = 1_000_000_000 // TICKS_PER_S
_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ = 0, 1, 2, 5, 6
"""Columns of the line *cpu* in /proc/stat (proc(5))."""


class HostMemory(msgspec.Struct, frozen=True):
    """Memory of the host, and whether it has swap space."""

    memory: Memory | None
    has_swap: bool


def read_cpu(time: float) -> Cpu | None:
    """CPU time of all CPUs, without what they were idle or another guest of the same machine had."""
    line = (flat_files.read("/proc/stat") or b"").split(b"\n", 1)[0].split()
    if len(line) <= _SOFTIRQ + 1 or line[0] != b"cpu":
        return None
    ticks = [int(field) for field in line[1:]]
    user, system = ticks[_USER] + ticks[_NICE], ticks[_SYSTEM] + ticks[_IRQ] + ticks[_SOFTIRQ]
    return Cpu(
        source=Source.HOST,
        time=time,
        usage_ns=(user + system) * NS_PER_TICK,
        user_ns=user * NS_PER_TICK,
        system_ns=system * NS_PER_TICK,
        pressure=flat_files.pressure(flat_files.read("/proc/pressure/cpu")),
    )


def read_memory(time: float) -> HostMemory:
    return host_memory(
        flat_files.keyed(flat_files.read("/proc/meminfo"), b":"),
        flat_files.keyed(flat_files.read("/proc/vmstat")),
        time,
    )


def host_memory(meminfo: Mapping[str, int], vmstat: Mapping[str, int], time: float) -> HostMemory:
    """Usage is all that is not free, page cache included; the limit is the memory that there is."""
    total, free = meminfo.get("MemTotal"), meminfo.get("MemFree")
    if total is None or free is None:
        return HostMemory(None, has_swap=True)
    usage, inactive = (total - free) * KIB, bytes_of(meminfo, "Inactive(file)")
    swap_total, swap_free = bytes_of(meminfo, "SwapTotal"), bytes_of(meminfo, "SwapFree")
    memory = Memory(
        source=Source.HOST,
        time=time,
        usage=usage,
        working_set=max(0, usage - inactive) if inactive is not None else None,
        rss=bytes_of(meminfo, "AnonPages"),
        cache=bytes_of(meminfo, "Cached"),
        mapped_file=bytes_of(meminfo, "Mapped"),
        active_file=bytes_of(meminfo, "Active(file)"),
        inactive_file=inactive,
        swap=swap_total - swap_free if swap_total is not None and swap_free is not None else None,
        limit=total * KIB,
        swap_limit=swap_total,
        page_faults=vmstat.get("pgfault"),
        major_page_faults=vmstat.get("pgmajfault"),
        oom_kills=vmstat.get("oom_kill"),
        pressure=flat_files.pressure(flat_files.read("/proc/pressure/memory")),
    )
    return HostMemory(memory, has_swap=swap_total != 0)


def read_io(time: float) -> Io | None:
    """Bytes between memory and all block devices."""
    vmstat = flat_files.keyed(flat_files.read("/proc/vmstat"))
    return Io(
        source=Source.HOST,
        time=time,
        read_bytes=bytes_of(vmstat, "pgpgin"),
        write_bytes=bytes_of(vmstat, "pgpgout"),
        pressure=flat_files.pressure(flat_files.read("/proc/pressure/io")),
    )


def read_process_limit(time: float) -> ProcessLimit:
    """Limit of processes as pkg/kubelet/stats/pidlimit/pidlimit_linux.go has it: the lower of pid_max and threads-max,
    and the tasks that there are (the fourth field of /proc/loadavg)."""
    limits = [flat_files.number(flat_files.read(f"/proc/sys/kernel/{name}")) for name in ("pid_max", "threads-max")]
    known = [limit for limit in limits if limit is not None]
    fields = (flat_files.read("/proc/loadavg") or b"").split()
    tasks = fields[3].partition(b"/")[2] if len(fields) > 3 else b""
    return ProcessLimit(time=time, max_pid=min(known, default=None), processes=int(tasks) if tasks.isdigit() else None)


def children_of(pid: int) -> list[int]:
    """Children of a process's first thread; none where the kernel does not tell (CONFIG_PROC_CHILDREN)."""
    return [int(child) for child in (flat_files.read(f"/proc/{pid}/task/{pid}/children") or b"").split()]


def command_of(pid: int) -> str:
    """Name of a process (comm)."""
    return (flat_files.read(f"/proc/{pid}/comm") or b"").decode(errors="replace").strip()


def cpus() -> int:
    """CPUs that this process may run on."""
    return len(os.sched_getaffinity(0))


def bytes_of(meminfo: Mapping[str, int], key: str) -> int | None:
    """A figure of /proc/meminfo or of /proc/vmstat that is in KiB, in bytes; None when the kernel does not tell it."""
    return meminfo[key] * KIB if key in meminfo else None
