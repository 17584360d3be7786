"""How the kernel runs a process: whether it was stopped, and how long it has waited for a CPU (proc(5)).

A worker that is silent because the host gives it no CPU time does not hang: to replace it would cost the host more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

STOPPED: Final = "T"
"""By a signal. A process that a debugger holds has another state."""
UNINTERRUPTIBLE: Final = "D"
"""Waits for a disk; no signal reaches it."""
PROC: Final = Path("/proc")
MAX_BYTES: Final = 4096
_NS: Final = 1e-9


class Scheduling(NamedTuple):
    """State of the first thread of a process, in which its event loop runs."""

    state: str
    waited_s: float
    """For a CPU, since it began; 0.0 where the kernel does not count that (CONFIG_SCHED_INFO)."""


class Silence:
    """The time since a child's newest heartbeat, and the part of it in which the child could not have given another
    one: it waited for a CPU or a disk, or the one who looks did."""

    def __init__(self) -> None:
        self._began = self._checked = 0.0
        self._waited_s: float | None = None
        self._excused_s = 0.0

    def excused_s(self, last: float, look: Scheduling | None, late_s: float, now: float) -> float:
        """Seconds of that part, at every check. ``last`` heartbeat and ``now`` in monotonic seconds; ``late_s``: by so
        much the check itself is late."""
        if self._began != last:
            self._began, self._checked, self._waited_s, self._excused_s = (
                last,
                min(now, max(last, now - late_s)),
                None,
                0.0,
            )
        passed_s, self._checked = now - self._checked, now
        waited_s = 0.0
        if look is not None:
            waited_s = look.waited_s - (look.waited_s if self._waited_s is None else self._waited_s)
            self._waited_s = look.waited_s
        is_blocked = look is not None and look.state == UNINTERRUPTIBLE
        self._excused_s += min(passed_s, passed_s if is_blocked else max(late_s, waited_s))
        return self._excused_s

    def excused_until_now_s(self, last: float) -> float:
        """Seconds of the silence since that heartbeat that the newest check has excused."""
        return self._excused_s if self._began == last else 0.0


def scheduling_of(pid: int) -> Scheduling | None:
    """None when there is no such process, or no descriptor to look at it."""
    try:
        stat = _read(pid, "stat")
    except OSError:
        return None
    return Scheduling(stat.rpartition(b")")[2].split()[0].decode(), _waited_s(pid))


def _waited_s(pid: int) -> float:
    """The second number of schedstat is nanoseconds on a run queue."""
    try:
        return int(_read(pid, "schedstat").split()[1]) * _NS
    except (OSError, ValueError, IndexError):
        return 0.0


def _read(pid: int, name: str) -> bytes:
    """In one call: the kernel makes the text anew for each. Raises OSError."""
    fd = os.open(PROC / str(pid) / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, MAX_BYTES)
    finally:
        os.close(fd)
