"""What the agent costs while nothing happens: CPU and memory, process by process, with few pods and with many.

The same agent in turns: few pods, many pods, few pods again. Before each measurement it is left alone until its relists
have become as rare as they get, and the processes have left that are there on demand.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from time import sleep
from typing import Final, NamedTuple

import pytest

from ipc.host.clock import monotonic
from supervisor.load_test.processes import Snapshot, Usage, take_snapshot, used_between
from tests.bench.sleepers import load, sleepers
from tests.e2e.agent import Agent, Json

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(7200)]

PODS = int(os.environ.get("ROOTLET_BENCH_PODS", "60"))
ROUNDS = int(os.environ.get("ROOTLET_BENCH_ROUNDS", "2"))
IDLE_S = float(os.environ.get("ROOTLET_BENCH_IDLE_S", "300"))
"""How long one measurement takes, in seconds: four resyncs of each pod, a relist."""
SETTLE_S = float(os.environ.get("ROOTLET_BENCH_SETTLE_S", "330"))
"""Before it, in seconds: after a surprise there are relists after 10, 20, 40, 80, 160, and then every 300 s."""
FEW: Final = max(1, PODS // 6)
READY_DEADLINE_S: Final = 300.0
KIB: Final = 1024
SERVICE: Final = "podman service"


class Idle(NamedTuple):
    """One process in one measurement."""

    cpu_percent: float
    """Of one CPU."""
    pss_kib: float


def test_idle(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    agent.start()
    few, more = sleepers("few", FEW), sleepers("more", PODS - FEW)
    agent.write(*few.values())
    agent.until_ready(few, READY_DEADLINE_S)
    idle: dict[int, list[dict[str, Idle]]] = {FEW: [], PODS: []}
    before = load()
    for _ in range(ROUNDS):
        idle[FEW].append(_measure(agent))
        agent.write(*more.values())
        agent.until_ready(more, READY_DEADLINE_S)
        idle[PODS].append(_measure(agent))
        agent.remove(*more)
        agent.until_gone(more, READY_DEADLINE_S)
    with capsys.disabled():
        print(f"\n{ROUNDS} rounds of {IDLE_S:.0f} s each, in turns; {before} before, {load()} after; median")
        _print(idle)


def _measure(agent: Agent) -> dict[str, Idle]:
    """Fails when anything but idling happened."""
    workers = list(agent.workers().values())
    sleep(SETTLE_S)
    pod_table, began = agent.eye.pod_table(), monotonic()
    before = _snapshot(agent, workers)
    sleep(IDLE_S)
    after = _snapshot(agent, workers)
    took_s = monotonic() - began
    assert agent.eye.pod_table() == pod_table
    assert [u.pid for u in (*before.agent, *before.service)] == [u.pid for u in (*after.agent, *after.service)]
    used = [*used_between(before.agent, after.agent), *used_between(before.service, after.service)]
    return {usage.name: _idle(usage, took_s) for usage in used}


def _snapshot(agent: Agent, workers: Sequence[Json]) -> Snapshot:
    """Asks nothing of the agent: that would keep its API server. ``workers``: as they were before."""
    found = take_snapshot(agent.process.pid, workers)
    assert not any(usage.unreadable for usage in found.agent), found.agent
    return found


def _idle(usage: Usage, took_s: float) -> Idle:
    return Idle(100 * usage.cpu_seconds / took_s, usage.pss_bytes / KIB)


def _print(idle: dict[int, list[dict[str, Idle]]]) -> None:
    sizes = tuple(idle)
    names = list(idle[PODS][0])
    print(f"  {'':16}" + "".join(f"{f'CPU %, {n} pods':>18}" for n in sizes), end="")
    print("".join(f"{f'MiB PSS, {n} pods':>20}" for n in sizes))
    for name in names:
        _print_row(name, *([[taken[name]] for taken in idle[n]] for n in sizes))
    own = [name for name in names if name != SERVICE]
    _print_row("all of Rootlet", *([[taken[name] for name in own] for taken in idle[n]] for n in sizes))
    _print_row("with Podman", *([list(taken.values()) for taken in idle[n]] for n in sizes))
    grown = [_kib(idle[PODS][round_], own) - _kib(idle[FEW][round_], own) for round_ in range(ROUNDS)]
    print(f"  PSS of Rootlet per pod more: {statistics.median(grown) / (PODS - FEW):.0f} KiB")


def _kib(taken: dict[str, Idle], names: Sequence[str]) -> float:
    return sum(taken[name].pss_kib for name in names)


def _print_row(name: str, *sizes: Sequence[Sequence[Idle]]) -> None:
    """Each size has a list of processes per round, which are added up."""
    cpu = [[sum(process.cpu_percent for process in round_) for round_ in size] for size in sizes]
    mib = [[sum(process.pss_kib for process in round_) / KIB for round_ in size] for size in sizes]
    print(f"  {name:16}" + "".join(f"{statistics.median(c):11.2f} ±{_spread(c):5.2f}" for c in cpu), end="")
    print("".join(f"{statistics.median(m):20.1f}" for m in mib))


def _spread(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / 2
