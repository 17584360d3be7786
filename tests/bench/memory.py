"""What the agent's processes take while somebody looks, and when nobody has for long: PSS, on the simulated service.

    python -m tests.bench.memory --pods 10,60 --rounds 3

Every size and round is a fresh service and a fresh agent. Who looks keeps the API server: so after the first look
nothing is asked of the agent any more, and its processes are known by their names.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Iterator
from typing import Final

import psutil

from supervisor.load_test.processes import read_usage
from tests.bench.simulated import SimulatedNode, manifests, simulated_node

READY_DEADLINE_S: Final = 120.0
IDLE_TIMEOUT_S: Final = 20.0
SETTLE_S: Final = 5.0
"""After the last pod was Ready; less than the time after which nobody is there who need not be."""
LEFT_S: Final = 2.2 * IDLE_TIMEOUT_S
PREFIX: Final = "rootlet-"
MIB: Final = 1024 * 1024
ALL: Final = "all"

Pss = dict[str, float]


def measure(pods: int) -> tuple[Pss, Pss]:
    """MiB by process: looked at, and left alone."""
    with simulated_node(pods, settings={"workers": {"count": 2, "idleTimeout": f"{IDLE_TIMEOUT_S:g}s"}}) as node:
        node.start()
        node.state_pods(manifests(pods))
        node.until(lambda: node.ready_pods() == pods, READY_DEADLINE_S)
        time.sleep(SETTLE_S)
        looked_at = _pss(node)
        time.sleep(LEFT_S)
        return looked_at, _pss(node)


def _pss(node: SimulatedNode) -> Pss:
    found = dict(_own(node))
    return found | {ALL: sum(found.values())}


def _own(node: SimulatedNode) -> Iterator[tuple[str, float]]:
    master = psutil.Process(node.agent.pid)
    for process in (master, *master.children(recursive=True)):
        name = process.name().removeprefix(PREFIX)
        if (usage := read_usage(process, name)) is not None:
            yield name, usage.pss_bytes / MIB


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory", description=__doc__)
    parser.add_argument("--pods", default="10,60", help="how many, one after the other")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    sizes = [int(pods) for pods in options.pods.split(",")]
    taken: dict[int, list[tuple[Pss, Pss]]] = {pods: [] for pods in sizes}
    for _ in range(options.rounds):
        for pods in sizes:
            taken[pods].append(measure(pods))
    print(f"Python {platform.python_version()}, {options.rounds} rounds, MiB PSS, median (lowest to highest)")
    for pods in sizes:
        for index, what in enumerate(("looked at", "left alone")):
            print(f"{pods} pods, {what}: {_line([pair[index] for pair in taken[pods]])}", flush=True)


def _line(rounds: list[Pss]) -> str:
    names = [ALL, *(name for name in rounds[0] if name != ALL)]
    return "; ".join(f"{name} {_spread([found.get(name, 0.0) for found in rounds])}" for name in names)


def _spread(values: list[float]) -> str:
    middle = f"{statistics.median(values):.1f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    main()
