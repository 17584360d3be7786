"""Tags of commands' processes in containers (`workers.proc.rlimit_tag`), which all that a command starts inherit.

Their two numbers identify the command and its deadline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

import msgspec

from workers.proc import procfs
from workers.proc.pidfd import kill_if
from workers.proc.rlimit_tag import TAG_LIMIT, PosixRlimit, locks_limit

OVERDUE_S: Final = 60
"""Time after a command's deadline, in seconds, after which its owner cannot be there to end it."""
RUNTIMES: Final = frozenset({"crun", "runc"})
"""OCI runtimes that are known to take ``exec --process``, by the name of their program."""

_MAGIC: Final = 0x526F6F74
_LOW: Final = 0xFFFFFFFF
_MAX_NAME_BYTES: Final = 64


class ProcessTag(msgspec.Struct, frozen=True):
    """One command."""

    owner: int
    """Pid of the process that began it."""
    number: int
    """Number of the command among that process's commands, modulo 2**32."""
    deadline: int
    """When it is ended at the latest, in whole epoch seconds."""

    def rlimit(self) -> PosixRlimit:
        """The tag as the OCI runtime specification has a limit (POSIXRlimit)."""
        hard = _MAGIC << 32 | self.deadline & _LOW
        return {"type": TAG_LIMIT, "soft": self.owner << 32 | self.number & _LOW, "hard": hard}


def parse_tag(limit: tuple[int, int] | None) -> ProcessTag | None:
    """The tag in a limit; None for a process that no command has started."""
    if limit is None:
        return None
    soft, hard = limit
    return ProcessTag(soft >> 32, soft & _LOW, hard & _LOW) if hard >> 32 == _MAGIC else None


def kill(tags: Collection[ProcessTag], spared: Collection[int], now: float) -> frozenset[ProcessTag]:
    """Send SIGKILL to every process with one of these tags but the spared ones; the tags that were found.

    Also to commands that are long overdue, whose owner has died over them. ``now`` is in epoch seconds. Reads all of
    /proc: for a thread.
    """
    found = [(pid, tag) for pid, tag in _tagged() if pid not in spared]
    overdue = {tag for pid, tag in found if tag.deadline + OVERDUE_S < now and _name(pid) in RUNTIMES}
    return frozenset(
        tag for pid, tag in found if tag in overdue.union(tags) and kill_if(pid, partial(_is_alive, pid, tag))
    )


def _tagged() -> Iterator[tuple[int, ProcessTag]]:
    for pid in procfs.pids():
        if (tag := _tag(pid)) is not None:
            yield pid, tag


def _tag(pid: int) -> ProcessTag | None:
    return parse_tag(locks_limit(pid))


def _name(pid: int) -> str:
    """Name of the process's program, at most fifteen bytes."""
    return procfs.read_once(pid, "comm", _MAX_NAME_BYTES).decode(errors="replace").strip()


def _is_alive(pid: int, tag: ProcessTag) -> bool:
    """Whether the process has that tag and has not ended: a zombie keeps its limits."""
    return _tag(pid) == tag and procfs.is_alive(pid)
