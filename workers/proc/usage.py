"""CPU time, memory and descriptors of a process of the agent, from /proc (prometheus-client's process collector)."""

from __future__ import annotations

import os

import msgspec

from workers.proc.procfs import PROC, TICKS_PER_S, read_once, stat_fields

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_UTIME, _STIME, _VSIZE, _RSS = 14 - 3, 15 - 3, 23 - 3, 24 - 3
"""Positions in /proc/PID/stat, counted from behind the command's name (proc(5))."""
_MAX_ROLLUP_BYTES = 4096


class ProcessUsage(msgspec.Struct, frozen=True):
    """CPU time and memory of one process."""

    cpu_s: float
    rss_bytes: int
    virtual_bytes: int


def of(pid: int) -> ProcessUsage | None:
    """None when there is no such process."""
    fields = stat_fields(pid)
    if len(fields) <= _RSS:
        return None
    return ProcessUsage(
        cpu_s=(int(fields[_UTIME]) + int(fields[_STIME])) / TICKS_PER_S,
        rss_bytes=int(fields[_RSS]) * _PAGE_BYTES,
        virtual_bytes=int(fields[_VSIZE]),
    )


def pss_bytes(pid: int) -> int | None:
    """Memory, where pages of several processes count in parts (proc_pid_smaps_rollup(5)). None when there is no such
    process, or the kernel does not tell us (a process in another user namespace)."""
    try:
        lines = read_once(pid, "smaps_rollup", _MAX_ROLLUP_BYTES).splitlines()
    except PermissionError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:")), None)


def open_fds(pid: int) -> int:
    """Number of open file descriptors. Raises OSError."""
    return len(os.listdir(PROC / str(pid) / "fd"))
