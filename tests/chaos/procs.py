"""Processes that truly run, from /proc: Podman's word is what the storm makes doubtful."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from supervisor.processes.worker_pool import FIRST_POD_SLOT, QUARANTINE_SLOT
from tests.chaos.plan import PODMAN
from tests.chaos.wanted import WHO
from tests.e2e.agent import Agent
from tests.e2e.status_observer import INFRA
from workers.podman_files.orphaned_monitors import own_pids

PROC: Final = Path("/proc")
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)
_ROLES: Final = {
    "rootlet-master": "master",
    "rootlet-zygote": "zygote",
    "rootlet-node-0": "node",
    "rootlet-api-1": "api",
    "rootlet-dial-3": "dialer",
}
_POD_WORKER: Final = "rootlet-pods-"


class Running(NamedTuple):
    """The first process of a container."""

    pod: str
    part: str
    edition: int
    pid: int
    started_at: float
    """Ticks since boot: with the pid, which process it is."""

    @property
    def is_alive(self) -> bool:
        return _started_at(self.pid) == self.started_at


def running(instance: str) -> list[Running]:
    """Every container of the instance that has a living first process."""
    return [found for pid in own_pids() if (found := _container(pid, instance)) is not None]


def twins(found: list[Running]) -> list[tuple[Running, Running]]:
    """Pairs with one name. Both live: they are asked again, because looking takes a while."""
    ordered = sorted(found, key=lambda each: (each.pod, each.part))
    return [
        (one, other)
        for one, other in itertools.pairwise(ordered)
        if (one.pod, one.part) == (other.pod, other.part) and one.is_alive and other.is_alive and one.is_alive
    ]


def monitors(agent: Agent) -> dict[tuple[str, str], tuple[psutil.Process, str]]:
    """The agent's conmons by pod and container, with the container's name in Podman; the newest one of each."""
    found: dict[tuple[str, str], tuple[psutil.Process, str]] = {}
    for process in agent.monitors():
        try:
            words = process.cmdline()
            name = words[words.index("-n") + 1]
        except (psutil.Error, ValueError):
            continue
        found[_names(name)] = (process, name)
    return found


def roles(agent: Agent) -> dict[str, list[psutil.Process]]:
    """The agent's own processes: of whatever incarnation of it, because those of a killed one may still be there."""
    found: dict[str, list[psutil.Process]] = {}
    for process in agent.marked_processes():
        try:
            name, words = process.name(), process.cmdline()
        except psutil.Error:
            continue
        if role := _role(name, words):
            found.setdefault(role, []).append(process)
    return found


def _role(name: str, words: list[str]) -> str:
    if name.startswith(_POD_WORKER):
        slot = int(name.removeprefix(_POD_WORKER))
        return "quarantine" if slot == QUARANTINE_SLOT else f"pods-{slot - FIRST_POD_SLOT}"
    if name == PODMAN and "system service" in " ".join(words[1:4]):
        return PODMAN
    return _ROLES.get(name, "")


def _names(podman_name: str) -> tuple[str, str]:
    """Pod and container of ``<container>_<pod>_<namespace>_<uid8>_<attempt>`` or ``<pod>_…_<attempt>_infra``."""
    first, second, *_, last = podman_name.split("_")
    return (first, INFRA) if last == "infra" else (second, first)


def _container(pid: int, instance: str) -> Running | None:
    directory = PROC / str(pid)
    try:
        environment = (directory / "environ").read_bytes()
        mark = f"{WHO}={instance}/".encode()
        if mark not in environment or not _is_first(directory) or _is_runtime(directory):
            return None
        words = next(word for word in environment.split(b"\0") if word.startswith(mark)).decode()
    except _GONE:
        return None
    _, pod, part, edition = words.split("/")
    return Running(pod, part, int(edition), pid, _started_at(pid))


def _is_first(directory: Path) -> bool:
    """Pid 1 of a PID namespace of its own."""
    status = (directory / "status").read_text()
    pids = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
    return len(pids) > 1 and pids[-1] == "1"


def _is_runtime(directory: Path) -> bool:
    """The OCI runtime itself, before it becomes the container's program."""
    return (directory / "comm").read_text().startswith(("crun", "runc"))


def _started_at(pid: int) -> float:
    """0.0 when there is no such process, or only its remains."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except _GONE:
        return 0.0
    return 0.0 if fields[0] in "ZX" else float(fields[19])
