"""Process tags in RLIMIT_LOCKS, which a process inherits and cannot remove.

A container's process table does not show which process has started another: one that forks twice and calls setsid has
another parent, session and group. Nor do cgroups: rootless Podman without systemd gives a container none of its own.
What every child has from its parent, over fork, exec and setsid, are its resource limits, and this one has had no
effect since Linux 2.4.25 (getrlimit(2)). Nobody can raise its two numbers again without being root on the host. They
are read in /proc/PID/limits, which is open to everybody.
"""

from __future__ import annotations

import re
from typing import Final, TypedDict

from workers.proc import procfs

TAG_LIMIT: Final = "RLIMIT_LOCKS"
"""The limit's name in the OCI runtime specification."""
MAX_LIMITS_BYTES: Final = 8192
"""Bytes that are read of a file /proc/PID/limits."""
_LIMIT: Final = re.compile(rb"^Max file locks +(\d+) +(\d+) ", re.MULTILINE)


class PosixRlimit(TypedDict):
    """A resource limit as the OCI runtime specification has it, and Podman."""

    type: str
    soft: int
    hard: int


def locks_limit(pid: int) -> tuple[int, int] | None:
    """Soft and hard limit of a process; None without limit, or without such a process."""
    return parse_locks_limit(procfs.read_once(pid, "limits", MAX_LIMITS_BYTES))


def parse_locks_limit(limits: bytes) -> tuple[int, int] | None:
    """Soft and hard limit of locks in a file /proc/PID/limits; None without one."""
    found = _LIMIT.search(limits)
    return (int(found[1]), int(found[2])) if found is not None else None
