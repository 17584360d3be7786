"""kill -9 of the whole agent, its Podman service included, while pods run: what its next start takes.

Time and CPU of all its processes at three marks: the first answer, every source read and every process at work, every
pod shown Running and Ready. No container is restarted over it.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import statistics
from collections.abc import Callable
from typing import Final, NamedTuple

import psutil
import pytest

from ipc.host.clock import monotonic
from tests.bench.sleepers import load, sleepers
from tests.e2e.agent import MOMENT_POLL_S, START_DEADLINE_S, Agent, is_ready

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(3600)]

PODS = int(os.environ.get("ROOTLET_BENCH_PODS", "60"))
ROUNDS = int(os.environ.get("ROOTLET_BENCH_ROUNDS", "3"))
READY_DEADLINE_S: Final = 300.0
SERVICE: Final = "podman"


class ProcessTag(NamedTuple):
    """Seconds since the start."""

    wall_s: float
    agent_cpu_s: float
    """Of Rootlet's own processes."""
    podman_cpu_s: float


def test_start_after_kill(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = sleepers("stay", PODS)
    agent.write(*wanted.values())
    agent.start()
    agent.until_ready(wanted, READY_DEADLINE_S)
    pod_table, before = agent.eye.pod_table(), load()
    assert len(pod_table) == 2 * PODS
    marks: dict[str, list[ProcessTag]] = {}
    for _ in range(ROUNDS):
        for process in agent.marked_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        assert agent.wait_end() == -signal.SIGKILL
        for what, mark in _start(agent).items():
            marks.setdefault(what, []).append(mark)
        assert agent.eye.pod_table() == pod_table, "a container was restarted"
    with capsys.disabled():
        print(f"\n{PODS} pods, {ROUNDS} starts; {before} before, {load()} after; seconds, median (and worst)")
        print(f"  {'until':22} {'time':>14} {'CPU of Rootlet':>16} {'and of Podman':>16}")
        for what, taken in marks.items():
            columns = "  ".join(f"{statistics.median(s):7.2f} ({max(s):.2f})" for s in zip(*taken, strict=True))
            print(f"  {what:22} {columns}")


def _start(agent: Agent) -> dict[str, ProcessTag]:
    began = monotonic()
    agent.respawn()
    conditions: dict[str, Callable[[], bool]] = {
        "the first answer": lambda: bool(_pods_shown(agent)),
        "every process works": lambda: agent.is_up(sources_ready=True),
        "all pods shown Ready": lambda: all(_pods_shown(agent) or [False]),
    }
    marks = {}
    for what, is_met in conditions.items():
        agent.until(is_met, what, START_DEADLINE_S, MOMENT_POLL_S)
        marks[what] = _mark(agent, began)
    return marks


def _pods_shown(agent: Agent) -> list[bool]:
    """Whether each pod is Ready; empty while nobody answers or not every pod is there."""
    try:
        shown = agent.pods()
    except (OSError, http.client.HTTPException):
        return []
    return [is_ready(pod) for pod in shown.values()] if len(shown) == PODS else []


def _mark(agent: Agent, began: float) -> ProcessTag:
    """Children that have ended count as well, with whoever has waited for them."""
    wall_s = monotonic() - began
    used = {True: 0.0, False: 0.0}
    master = psutil.Process(agent.process.pid)
    for process in (master, *master.children(recursive=True)):
        cpu = process.cpu_times()
        used[process.name() == SERVICE] += sum(cpu[:4])
    return ProcessTag(wall_s, used[False], used[True])
