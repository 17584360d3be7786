"""Restarts of single containers that somebody asks for: its count rises by one, and nothing else changes."""

from __future__ import annotations

import msgspec

from ipc.api.v1.pod import Pod
from ipc.messages.api_server import PodChanged
from tests.sim.pressure import simple_pod

UID = "0000eeee-restarted"
NAMES = ("one", "two")
RESTARTED_S = 60.0
"""Within which the successor is there: a grace period, the agent's and a worker's death, a start."""
AFTERWARDS_S = 20.0
"""How long it is seen that nothing more restarts."""
LASTS_S = 3.0
"""Most restarts are over by then: an agent may be killed at any time of one."""


def steady_pod() -> Pod:
    """Two containers that never end."""
    pod = simple_pod(UID)
    (one,) = pod.spec.containers
    two = msgspec.structs.replace(one, name=NAMES[1])
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(one, two)))


def runs(told: PodChanged | None) -> dict[str, tuple[int, str]]:
    """Restart count and id of each container that is told to run."""
    statuses = told.status.container_statuses if told is not None else ()
    return {s.name: (s.restart_count, s.container_id) for s in statuses if s.state.running is not None}


def wrong_restart(before: dict[str, tuple[int, str]], now: dict[str, tuple[int, str]], name: str) -> str:
    """Words for what is not as after one restart of that container; empty when all is."""
    others = {other: ran for other, ran in before.items() if other != name}
    if {other: ran for other, ran in now.items() if other != name} != others:
        return f"others than {name} were touched: {others} before, {now} now"
    (old_count, old_id), (count, id) = before[name], now.get(name, (-1, ""))
    return "" if count == old_count + 1 and id != old_id else f"{name} was {before[name]} and is {now.get(name)}"
