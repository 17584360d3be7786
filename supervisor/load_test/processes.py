"""Memory and CPU time of the agent's processes and of what Podman starts for it, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import psutil

from ipc.host.text.json_types import Json

HELPERS: Final = frozenset(
    ("conmon", "slirp4netns", "pasta", "pasta.avx2", "rootlessport", "aardvark-dns", "fuse-overlayfs", "crun", "podman")
)
"""Names of the processes that run beside the containers because of them."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One process, or several of one name in sum."""

    name: str
    pid: int = 0
    """0 for several."""
    count: int = 1
    pss_bytes: int
    """Proportional share of memory, of those that let us read it."""
    unreadable: int = 0
    """How many did not."""
    cpu_seconds: float
    """User and system time so far."""


class Snapshot(msgspec.Struct, frozen=True):
    """Usage of the processes at one moment."""

    agent: tuple[Usage, ...]
    """The agent's own processes."""
    service: tuple[Usage, ...]
    """`podman system service`, the agent's child or the user's own."""
    helpers: Mapping[int, Usage]
    """By pid."""


def take_snapshot(agent_pid: int, workers: Sequence[Json]) -> Snapshot:
    """Usage now; ``workers`` is what the agent says of its children."""
    try:
        master = psutil.Process(agent_pid)
        family = [master, *master.children(recursive=True)]
    except psutil.NoSuchProcess:
        return Snapshot((), (), {})
    # The master forks nobody but the zygote, and the zygote everybody else.
    zygotes = {p.pid: "zygote" for p in family if p.ppid() == agent_pid}
    names = {agent_pid: "master", **zygotes, **{int(w["pid"]): str(w["name"]) for w in workers}}
    uid = _real_uid(master)
    helpers = [p for p in psutil.process_iter() if _name(p) in HELPERS and _real_uid(p) == uid]
    own_service = [p for p in family if _is_service(p)]
    service = own_service or [p for p in helpers if _is_service(p)]
    return Snapshot(
        agent=tuple(_usages((p, names[p.pid]) for p in family if p.pid in names and p not in service)),
        service=tuple(_usages((p, "podman service") for p in service)),
        helpers={u.pid: u for u in _usages((p, _name(p)) for p in helpers if p not in service)},
    )


def _usages(named: Iterable[tuple[psutil.Process, str]]) -> Iterator[Usage]:
    for process, name in named:
        usage = read_usage(process, name)
        if usage is not None:
            yield usage


def read_usage(process: psutil.Process, name: str) -> Usage | None:
    """None when it has just ended."""
    try:
        cpu = process.cpu_times()
        pss = _pss_bytes(process)
    except psutil.NoSuchProcess:
        return None
    return Usage(
        name=name, pid=process.pid, pss_bytes=pss or 0, unreadable=int(pss is None), cpu_seconds=cpu.user + cpu.system
    )


def _pss_bytes(process: psutil.Process) -> int | None:
    """None for a process in another user namespace that does not show its memory."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        return None


def _real_uid(process: psutil.Process) -> int:
    try:
        return int(process.uids().real)
    except psutil.Error:
        return -1


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return ""


def _is_service(process: psutil.Process) -> bool:
    try:
        return _name(process) == "podman" and "system service" in " ".join(process.cmdline()[1:4])
    except psutil.Error:
        return False


def pids_by_command(commands: Mapping[tuple[str, ...], str]) -> dict[str, int]:
    """Pids of this user's processes with one of those command lines, by what they stand for."""
    found: dict[str, int] = {}
    for process in psutil.process_iter():
        try:
            standing_for = commands.get(tuple(process.cmdline()))
        except psutil.Error:
            continue
        if standing_for is not None and _real_uid(process) == os.getuid():
            found[standing_for] = process.pid
    return found


def used_between(before: Sequence[Usage], after: Sequence[Usage]) -> list[Usage]:
    """Per process: its memory at the end, and the CPU time that it used in between."""
    known = {usage.pid: usage.cpu_seconds for usage in before}
    return [
        msgspec.structs.replace(usage, cpu_seconds=usage.cpu_seconds - known.get(usage.pid, 0.0)) for usage in after
    ]


def started_between(before: Mapping[int, Usage], after: Mapping[int, Usage]) -> list[Usage]:
    """Per name: those that were started in between, in sum. What has ended by then is not in it."""
    new = [usage for pid, usage in after.items() if pid not in before]
    return [_total([usage for usage in new if usage.name == name]) for name in sorted({u.name for u in new})]


def _total(usages: Sequence[Usage]) -> Usage:
    return Usage(
        name=usages[0].name,
        count=len(usages),
        pss_bytes=sum(u.pss_bytes for u in usages),
        unreadable=sum(u.unreadable for u in usages),
        cpu_seconds=sum(u.cpu_seconds for u in usages),
    )
