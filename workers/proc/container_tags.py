"""Tags of containers' processes, by which those that outlive their container are found and ended.

With ``shareProcessNamespace`` and ``hostPID`` the end of a container's first process ends no other one. A CRI runtime
ends them by their cgroup; rootless Podman without systemd gives a container none. So such a container, which has no PID
namespace of its own, carries a tag, as commands in containers do (`workers.exec.tags`): a value of RLIMIT_LOCKS, which
all that it starts inherits.
"""

from __future__ import annotations

import errno
import hashlib
import time
from collections.abc import Collection
from functools import partial
from typing import Final

import msgspec

from workers.proc import procfs
from workers.proc.pidfd import kill_if
from workers.proc.rlimit_tag import TAG_LIMIT, PosixRlimit, locks_limit

MAX_ROUNDS: Final = 16
"""Most scans of all processes of the host: a process that was forked during one scan is found by the next."""
ROUND_S: Final = 0.05
"""Pause between two scans, in seconds, for killed processes to end."""
_MAGIC: Final = 0x526F6F75


class ContainerTag(msgspec.Struct, frozen=True):
    """Tag of one attempt of a container: 94 bits of a hash, in a soft limit that is below the hard one."""

    soft: int
    hard: int

    def rlimit(self) -> PosixRlimit:
        """The tag as Podman wants a limit in a SpecGenerator: without the ``RLIMIT_`` of the OCI runtime
        specification."""
        return {"type": TAG_LIMIT.removeprefix("RLIMIT_").lower(), "soft": self.soft, "hard": self.hard}


def container_tag(uid: str, name: str, attempt: int) -> ContainerTag:
    digest = hashlib.sha256(f"{uid}/{name}/{attempt}".encode()).digest()
    low, soft = int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:12], "big") >> 2
    return ContainerTag(soft, _MAGIC << 32 | low)


def end_tagged(tags: Collection[ContainerTag]) -> int:
    """Send SIGKILL to every process with one of these tags until none is left; the number of processes.

    Reads all of /proc: for a thread. Raises OSError, e.g. EMFILE; EAGAIN when they are started faster than they end.
    """
    ended: set[int] = set()
    for _ in range(MAX_ROUNDS):
        killed = {pid for pid in procfs.pids() if _tag(pid) in tags and kill_if(pid, partial(_is_alive, pid, tags))}
        ended |= killed
        if not killed:
            return len(ended)
        time.sleep(ROUND_S)
    raise OSError(errno.EAGAIN, f"{len(ended)} were ended, and they still start new ones")


def _tag(pid: int) -> ContainerTag | None:
    limit = locks_limit(pid)
    return ContainerTag(*limit) if limit is not None else None


def _is_alive(pid: int, tags: Collection[ContainerTag]) -> bool:
    """Whether the process has one of the tags and has not ended: a zombie keeps its limits."""
    return _tag(pid) in tags and procfs.is_alive(pid)
