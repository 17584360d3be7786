"""Costs of the agent's processes while nothing happens and nobody looks: CPU and wake-ups, on the simulated service.

    python -m tests.bench.idle --pods 60,300 --seconds 120

CPU is the run time of all threads as the scheduler counts it (/proc/PID/task/TID/schedstat), in percent of one CPU,
which other work on the machine changes little. Each size is a fresh service and a fresh agent, left alone for a while
before the window begins.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import psutil

from tests.bench.simulated import SimulatedNode, manifests, simulated_node

READY_DEADLINE_S: Final = 120.0
IDLE_TIMEOUT_S: Final = 10.0
SETTLE_S: Final = 15.0
"""After the last pod was Ready: processes that are there on demand have left by then."""
NS_PER_S: Final = 1e9


class Spent(msgspec.Struct, frozen=True):
    """CPU and wake-ups that a process has taken so far."""

    cpu_s: float
    wakes: int
    """How often one of its threads got a CPU."""


class Idle(msgspec.Struct, frozen=True):
    """One window."""

    spent: Mapping[str, Spent]
    """By the name of the process."""
    calls: Mapping[str, int]
    """Calls of Podman by their kind."""


def measure(pods: int, seconds: float, settings: Mapping[str, object]) -> Idle:
    """Measure all processes of a fresh agent for that many seconds."""
    workers = {"idleTimeout": f"{IDLE_TIMEOUT_S:g}s", **settings}
    with simulated_node(max(pods, 1), settings={"workers": workers}) as node:
        node.start()
        node.state_pods(manifests(pods))
        node.until(lambda: node.ready_pods() == pods, READY_DEADLINE_S)
        time.sleep(SETTLE_S)  # what was begun with the start ends meanwhile
        return window(node, seconds)


def window(node: SimulatedNode, seconds: float) -> Idle:
    """Waits for so long; what was spent and called meanwhile."""
    calls, before = node.service().calls, spent_by_name(node.agent.pid)
    time.sleep(seconds)  # the time that is measured
    after, calls_after = spent_by_name(node.agent.pid), node.service().calls
    zero = Spent(0.0, 0)
    spent = {
        name: Spent(now.cpu_s - before.get(name, zero).cpu_s, now.wakes - before.get(name, zero).wakes)
        for name, now in after.items()
    }
    return Idle(spent, {kind: count - calls.get(kind, 0) for kind, count in calls_after.items()})


def spent_by_name(agent_pid: int) -> dict[str, Spent]:
    """CPU and wake-ups of every process of the agent whose master that is."""
    master = psutil.Process(agent_pid)
    family = (master, *master.children(recursive=True))
    return {f"{process.name()} {process.pid}": _spent(process.pid) for process in family}


def _spent(pid: int) -> Spent:
    stats = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return Spent(sum(int(ran) for ran, _, _ in stats) / NS_PER_S, sum(int(times) for _, _, times in stats))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.idle", description=__doc__)
    parser.add_argument("--pods", default="60,300", help="how many, one after the other")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--workers", type=int, default=2, help="workers.count")
    options = parser.parse_args()
    for pods in map(int, options.pods.split(",")):
        idle = measure(pods, options.seconds, {"count": options.workers})
        print(f"{pods} pods, {options.seconds:g} s", flush=True)
        for name, spent in sorted(idle.spent.items()):
            percent, wakes = 100 * spent.cpu_s / options.seconds, spent.wakes / options.seconds
            print(f"  {name:24} {percent:6.3f} %  {wakes:6.2f} wakes/s")
        total = sum(spent.cpu_s for spent in idle.spent.values())
        print(f"  {'all':24} {100 * total / options.seconds:6.3f} %", flush=True)
        print("  calls:", {kind: count for kind, count in idle.calls.items() if count}, flush=True)


if __name__ == "__main__":
    main()
