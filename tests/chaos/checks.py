"""Checks of what has to be so when the storm is over. Every check gives sentences about what is not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import psutil

from supervisor.state.directory_owner import OWNER_FILE
from tests.chaos import procs
from tests.chaos.plan import PODMAN
from tests.chaos.wanted import Wanted
from tests.e2e.agent import Agent, Json, is_ready
from tests.e2e.status_observer import INFRA, Seen
from tests.support.podman_service import podman

KEPT_DEAD: Final = 1
"""Dead containers of one name that stay, by the agent's configuration."""
SPARE_DESCRIPTORS: Final = 30
MEMORY_FACTOR: Final = 1.5
SPARE_BYTES: Final = 30 << 20
MAX_LINES: Final = 5
"""Lines of the log in one finding."""
_STATUSES: Final = ("containerStatuses", "initContainerStatuses")
_ENTRY: Final = re.compile(r"^(?=\d{4}-\d\d-\d\dT)", re.MULTILINE)
_STARVED: Final = re.compile(r"Errno 24|OSError\(24|Too many open files")
_BUG: Final = re.compile(r"Traceback \(most recent call last\)|internal error|never retrieved|never awaited")


class Size(NamedTuple):
    """Size of one process."""

    descriptors: int
    bytes: int
    """Proportional set size."""


def not_ready(agent: Agent, wanted: Wanted) -> list[str]:
    """Every pod that is wanted is Running and Ready, and no other is shown."""
    shown = agent.pods()
    late = [name for name in wanted.editions if name not in shown or not is_ready(shown[name])]
    return [f"{name} is not Ready" for name in late] + [f"{name} is shown" for name in shown.keys() - wanted.editions]


def not_as_written(agent: Agent, wanted: Wanted) -> list[str]:
    """Exactly the processes that the newest manifests ask for."""
    found = procs.running(agent.instance)
    counts = Counter((r.pod, r.part, r.edition) for r in found)
    expected = Counter((pod, part, edition) for (pod, part), edition in wanted.containers().items())
    return [f"missing: {_slashes(key)}" for key in expected - counts] + [
        f"too much: {_slashes(key)}" for key in counts - expected
    ]


def left_behind(agent: Agent, wanted: Wanted) -> list[str]:
    """Containers, Podman pods, monitors and directories beyond what the wanted pods need."""
    seen = agent.eye.containers(infra=True)
    return [*_orphans(agent, wanted, seen), *_monitors(agent, seen), *_directories(agent)]


def lies(agent: Agent, wanted: Wanted) -> list[str]:
    """The status names the containers that Podman shows, with their attempts."""
    shown = agent.pods()
    told = {
        (name, status["name"]): (status.get("containerID", ""), status["restartCount"], "running" in status["state"])
        for name in wanted.editions
        for status in _statuses(shown.get(name, {}))
    }
    runs = {
        (c.pod, c.name): (f"podman://{c.id}", c.attempt, True)
        for c in agent.eye.containers()
        if c.state == "running" and c.pod in wanted.editions
    }
    return [
        f"{_slashes(key)}: status {told.get(key)}, Podman {runs.get(key)}"
        for key in told.keys() | runs.keys()
        if told.get(key) != runs.get(key)
    ]


def sizes(agent: Agent) -> dict[str, Size]:
    """Size of every process of the agent's own."""
    return {
        role: Size(found[-1].num_fds(), found[-1].memory_full_info().pss)
        for role, found in procs.roles(agent).items()
        if role != PODMAN
    }


def leaks(before: Mapping[str, Size], now: Mapping[str, Size]) -> list[str]:
    """Gross ones only: a longer life and more pods cost something. A role that is new (quarantine) has nothing to be
    compared with."""
    return [
        f"{role}: {before[role]} before, {size} now"
        for role, size in now.items()
        if role in before
        if size.descriptors > before[role].descriptors + SPARE_DESCRIPTORS
        or size.bytes > before[role].bytes * MEMORY_FACTOR + SPARE_BYTES
    ]


def strangers(agent: Agent) -> list[str]:
    """Each of its processes is there once, and no other."""
    counts = {role: len(found) for role, found in procs.roles(agent).items()}
    doubled = [f"{count} times {role}" for role, count in counts.items() if count > 1 and role != PODMAN]
    known = {process.pid for found in procs.roles(agent).values() for process in found}
    return doubled + [f"a stranger: {_words(p)}" for p in agent.marked_processes() if p.pid not in known]


def bugs(agent: Agent) -> list[str]:
    """Lines of the log that only a case which nobody has foreseen writes.

    A master that starves, and workers that are born to a zygote that does, end with what the system has told them, and
    are started again.
    """
    entries = _ENTRY.split(agent.log_text())
    found = [entry for entry in entries if _BUG.search(entry) and not _STARVED.search(entry)]
    return [" | ".join(entry.splitlines()[:MAX_LINES]) for entry in found]


def _orphans(agent: Agent, wanted: Wanted, seen: list[Seen]) -> list[str]:
    expected = {*wanted.containers(), *((pod, INFRA) for pod in wanted.editions)}
    unwanted = [f"{c.podman_name} ({c.state})" for c in seen if (c.pod, c.name) not in expected]
    dead = Counter((c.pod, c.name) for c in seen if c.state != "running")
    many = [f"{count} dead of {_slashes(key)}" for key, count in dead.items() if count > KEPT_DEAD]
    sandboxes = json.loads(
        podman("pod", "ps", "--format", "json", "--filter", f"label=rootlet.dev/instance={agent.instance}")
    )
    by_pod = Counter((pod["Labels"] or {}).get("io.kubernetes.pod.name", "") for pod in sandboxes)
    doubled = [
        f"{count} Podman pods of {name or 'nobody'}"
        for name, count in by_pod.items()
        if count > 1 or name not in wanted.editions
    ]
    return [f"left: {each}" for each in (*unwanted, *many, *doubled)]


def _monitors(agent: Agent, seen: list[Seen]) -> list[str]:
    """One for each container that runs. A container whose monitor was killed runs without one."""
    names = Counter(words[words.index("-n") + 1] for words in map(_conmon, agent.monitors()) if "-n" in words)
    runs = {c.podman_name for c in seen if c.state == "running"}
    return [f"left: conmon of {name}" for name, count in names.items() if count > 1 or name not in runs]


def _directories(agent: Agent) -> list[str]:
    shown = agent.pods().values()
    uids = {pod["metadata"]["uid"] for pod in shown}
    logs = {path.name for path in (agent.directory / "logs").iterdir()} - {OWNER_FILE}
    pods = {path.name for path in (agent.state / "pods").iterdir()}
    expected = {f"{pod['metadata']['namespace']}_{pod['metadata']['name']}_{pod['metadata']['uid']}" for pod in shown}
    return [f"left: logs {name}" for name in logs - expected] + [f"left: directory {name}" for name in pods - uids]


def _statuses(pod: Json) -> list[Json]:
    return [status for kind in _STATUSES for status in pod.get("status", {}).get(kind, ())]


def _conmon(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _words(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())}"
    except psutil.Error:
        return f"{process.pid} (gone)"


def _slashes(key: tuple[object, ...]) -> str:
    return "/".join(str(part) for part in key)
