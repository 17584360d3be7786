"""Processes of each container, found in /proc: by PID namespace, else as descendants of its first process.

A container mostly has a PID namespace of its own, in which commands that were executed in it run too. Where several
containers share one, or have the host's, its processes are its first one and that one's descendants.

A process that is no container's is looked at once, and then every few rounds, because its pid may pass to another one:
a host of 300 pods has as many monitors and network helpers as containers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from workers.proc import procfs
from workers.proc.procfs import MAX_STAT_BYTES, read_once
from workers.stats.accounts import Counters, Process

ROUNDS: Final = 6
"""A process that is no container's is looked at again after so many rounds."""
_PPID, _MINFLT, _CMINFLT, _MAJFLT, _CMAJFLT, _UTIME, _STIME, _CUTIME, _CSTIME = 1, 7, 8, 9, 10, 11, 12, 13, 14
_THREADS, _START, _RSS = 17, 19, 21
"""Positions in /proc/PID/stat behind the command's name (proc(5))."""


class Root(NamedTuple):
    """First process of a container."""

    owner: str
    """Id of the container, or another name."""
    pid: int
    start_ticks: int = 0
    """0 when it is not known."""


class _Known(NamedTuple):
    start_ticks: int
    owner: str
    """Empty for none of the roots'."""


class _Read(NamedTuple):
    """A process, and the text of /proc/PID/stat that says so: of one that does nothing that stays the same."""

    text: bytes
    process: Process


class ProcessTable:
    """Remembers which process is whose. For one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._namespaces: dict[Root, str] = {}
        """PID namespace of each root, empty when it cannot be read or is ours."""
        self._read: dict[int, _Read] = {}
        """The owners' processes, as they were in the last round."""
        self._round = 0

    def scan(self, roots: Iterable[Root]) -> dict[str, list[Process]]:
        """Processes of each owner whose first process is there, by equal values while they do nothing. Reads /proc."""
        self._round += 1
        by_pid = {root.pid: root for root in roots if root.pid > 0}
        namespaces = self._own_namespaces(by_pid.values())
        pids = set(procfs.pids())
        self._known = {pid: known for pid, known in self._known.items() if pid in pids}
        processes: dict[int, _Read] = {}
        fresh: dict[int, Process] = {}
        for pid in pids:
            known = self._known.get(pid)
            if known is not None and not known.owner and pid not in by_pid and pid % ROUNDS != self._round % ROUNDS:
                continue
            if (read := self._look(pid)) is None:
                continue
            processes[pid] = read
            if known is None or known.start_ticks != read.process.start_ticks or pid in by_pid:
                fresh[pid] = read.process
        self._decide(fresh, by_pid, namespaces)
        self._read = {pid: read for pid, read in processes.items() if self._known[pid].owner}
        found: dict[str, list[Process]] = {}
        for pid, read in self._read.items():
            found.setdefault(self._known[pid].owner, []).append(read.process)
        return {owner: members for owner, members in found.items() if any(p.pid in by_pid for p in members)}

    def forget(self) -> None:
        """Nobody looks for a while."""
        self._known.clear()
        self._namespaces.clear()
        self._read.clear()

    def _look(self, pid: int) -> _Read | None:
        text, before = read_once(pid, "stat", MAX_STAT_BYTES), self._read.get(pid)
        if before is not None and before.text == text:
            return before
        process = parse_stat(pid, text)
        return _Read(text, process) if process is not None else None

    def _own_namespaces(self, roots: Iterable[Root]) -> Mapping[str, str]:
        """Namespace -> owner, of those that belong to one root alone. With a new root everything is looked at anew:
        processes of its may have been seen before it was known."""
        ours = pid_namespace("self")
        before, self._namespaces = self._namespaces, {}
        for root in roots:
            known = before.get(root)
            if known is None:
                known = pid_namespace(root.pid)
                self._known.clear()
            self._namespaces[root] = known
        owners: dict[str, list[str]] = {}
        for root, namespace in self._namespaces.items():
            owners.setdefault(namespace, []).append(root.owner)
        return {ns: names[0] for ns, names in owners.items() if ns not in ("", ours) and len(names) == 1}

    def _decide(self, fresh: Mapping[int, Process], roots: Mapping[int, Root], namespaces: Mapping[str, str]) -> None:
        """Find the owners of processes that were not seen before: parents before their children."""
        for pid in fresh:
            self._known.pop(pid, None)
        for pid in fresh:
            path = list(_undecided(pid, fresh, self._known))
            for one in reversed(path):
                process = fresh[one]
                self._known[one] = _Known(process.start_ticks, self._owner(process, roots, namespaces))

    def _owner(self, process: Process, roots: Mapping[int, Root], namespaces: Mapping[str, str]) -> str:
        root = roots.get(process.pid)
        if root is not None and root.start_ticks in (0, process.start_ticks):
            return root.owner
        if namespaces and (owner := namespaces.get(pid_namespace(process.pid))):
            return owner
        parent = self._known.get(process.parent)
        return parent.owner if parent is not None else ""


def _undecided(pid: int, fresh: Mapping[int, Process], known: Mapping[int, _Known]) -> Iterator[int]:
    """The process and its nearest ancestors, as far as nothing is known of them."""
    visited: set[int] = set()
    while pid in fresh and pid not in known and pid not in visited:
        visited.add(pid)
        yield pid
        pid = fresh[pid].parent


def pid_namespace(pid: int | str) -> str:
    """Such as ``pid:[4026531836]``; empty when the process is gone or not ours to look into."""
    try:
        return os.readlink(procfs.PROC / str(pid) / "ns/pid")
    except OSError:
        return ""


def parse_stat(pid: int, text: bytes) -> Process | None:
    """/proc/PID/stat; None for what is none."""
    fields = text[text.rfind(b")") + 1 :].split(None, _RSS + 1)
    if len(fields) <= _RSS:
        return None
    return Process(
        pid=pid,
        start_ticks=int(fields[_START]),
        parent=int(fields[_PPID]),
        threads=int(fields[_THREADS]),
        counters=Counters(
            user_ticks=int(fields[_UTIME]) + int(fields[_CUTIME]),
            system_ticks=int(fields[_STIME]) + int(fields[_CSTIME]),
            page_faults=int(fields[_MINFLT]) + int(fields[_CMINFLT]) + int(fields[_MAJFLT]) + int(fields[_CMAJFLT]),
            major_page_faults=int(fields[_MAJFLT]) + int(fields[_CMAJFLT]),
        ),
        resident_pages=max(0, int(fields[_RSS])),
    )


def resident_and_shared(pid: int) -> tuple[int, int]:
    """Pages in memory, and of these the ones of files and shared memory (/proc/PID/statm); none of a process that is
    gone."""
    fields = read_once(pid, "statm", MAX_STAT_BYTES).split(None, 3)
    return (int(fields[1]), int(fields[2])) if len(fields) > 2 else (0, 0)


def swapped_bytes(pid: int) -> int:
    """Memory of a process that is swapped out (VmSwap in /proc/PID/status)."""
    for line in read_once(pid, "status", MAX_STAT_BYTES).splitlines():
        if line.startswith(b"VmSwap:"):
            with contextlib.suppress(ValueError, IndexError):
                return int(line.split()[1]) * 1024
    return 0
