"""Processes as /proc shows them (proc(5)), without any privilege."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
MAX_STAT_BYTES: Final = 4096
"""More than the fifty numbers of /proc/PID/stat can be."""
STATE, PPID, SESSION, FLAGS, START_TIME = 3 - 3, 4 - 3, 6 - 3, 9 - 3, 22 - 3
"""Positions in /proc/PID/stat, counted from behind the command's name (proc(5))."""
_ENDED: Final = ("Z", "X")
"""States of a process that has ended."""


def exists(pid: int) -> bool:
    """Whether any process has that pid."""
    return (PROC / str(pid)).exists()


def is_alive(pid: int) -> bool:
    """Whether a process has that pid and has not ended: a zombie has."""
    return state_of(pid) not in ("", *_ENDED)


def state_of(pid: int) -> str:
    """The letter of a process's state, as proc(5) has it; empty when there is no such process."""
    fields = stat_fields(pid)
    return fields[STATE] if fields else ""


def session_of(pid: int) -> int:
    """Session id of a process (setsid); 0 when there is no such process."""
    fields = stat_fields(pid)
    return int(fields[SESSION]) if fields else 0


def parent_of(pid: int) -> int:
    """Pid of the parent; 0 when there is no such process."""
    fields = stat_fields(pid)
    return int(fields[PPID]) if fields else 0


def children_of(pid: int) -> list[int]:
    """Pids of the children of a process's first thread; none where the kernel does not tell (CONFIG_PROC_CHILDREN)."""
    return [int(child) for child in read_whole(pid, f"task/{pid}/children").split()]


def pids() -> list[int]:
    """Pids of all processes of this host."""
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def variable(pid: int, name: str) -> str:
    """Value of a variable of the environment with which a process was started; empty when it has none, or is another
    user's."""
    try:
        entries = read_whole(pid, "environ").split("\0")
    except PermissionError:
        return ""
    return next((entry.partition("=")[2] for entry in entries if entry.startswith(f"{name}=")), "")


def start_ticks(pid: int) -> int:
    """When that process was started, in clock ticks since boot; 0 when there is none."""
    fields = stat_fields(pid)
    return int(fields[START_TIME]) if len(fields) > START_TIME else 0


def start_ticks_of_child(pid: int, parent: int) -> int:
    """`start_ticks` of a process of that parent; 0 when that pid is no such process, or has ended."""
    fields = stat_fields(pid)
    is_one = len(fields) > START_TIME and int(fields[PPID]) == parent and fields[STATE] not in _ENDED
    return int(fields[START_TIME]) if is_one else 0


def boot_time() -> float:
    """When this host was booted, in epoch seconds of the present clock."""
    lines = (PROC / "stat").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("btime ")))


def stat_fields(pid: int) -> list[str]:
    """Fields behind the command's name, which may have any character in it; none when the process is gone."""
    return read_once(pid, "stat", MAX_STAT_BYTES).decode(errors="replace").rpartition(")")[2].split()


def read_once(pid: int, name: str, max_bytes: int) -> bytes:
    """A short file /proc/PID/NAME; empty for a process that is not there.

    In one call, because the kernel makes the text anew for each: the dialer reads one for every socket that it makes.
    """
    try:
        fd = os.open(f"{PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    try:
        return os.read(fd, max_bytes)
    except ProcessLookupError:
        return b""
    finally:
        os.close(fd)


def read_whole(pid: int, name: str) -> str:
    """A file /proc/PID/NAME of any length; empty for a process that is not there."""
    try:
        with open(f"{PROC}/{pid}/{name}", "rb", buffering=0) as file:
            return file.read().decode(errors="surrogateescape")
    except (FileNotFoundError, ProcessLookupError):
        return ""
