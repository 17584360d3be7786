"""Cost of counting for a start and a removal, in CPU time of all the agent's processes: with it and without, in turns.

    python -m tests.bench.counting --pods 60 --rounds 8

On the simulated service, whose calls take no time. How often a start counts is told too, because a difference of a
thousandth is not to be seen in CPU times that differ by a tenth.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import statistics
import timeit
from collections import Counter
from typing import Final

from ipc.link.metrics import kubelet
from ipc.link.shm.metric_cells import METERS
from tests.bench.simulated import SimulatedNode, manifests, simulated_node, text_of
from tests.bench.sleepers import load

DEADLINE_S: Final = 120.0
MODULES: Final = {"counted": "supervisor", "uncounted": "tests.bench.uncounted"}
NOT_COUNTED: Final = re.compile(r"_bytes_total|_seconds_total")
"""Amounts; each of the links' bytes comes with a message, which is counted twice therefore."""
MESSAGES: Final = "rootlet_link_messages_total"
SAMPLE: Final = re.compile(r"^(\w+?(?:_total|_count))(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
REPEATS: Final = 200_000


def counts(node: SimulatedNode) -> Counter[str]:
    """Times that every series was counted, by the metric's name."""
    found: Counter[str] = Counter()
    for name, value in SAMPLE.findall(text_of(node.admin_socket, "/metrics")):
        if not NOT_COUNTED.search(name):
            found[name] += int(float(value)) * (2 if name == MESSAGES else 1)
    return found


def cpu_s(node: SimulatedNode) -> float:
    return sum(usage.cpu_seconds for usage in node.usage().values())


def one_round(node: SimulatedNode, pods: int, edition: int) -> float:
    """CPU time of the start and the removal of so many pods, in seconds for each."""
    before, files = cpu_s(node), manifests(pods, edition)
    node.state_pods(files)
    node.until(lambda: node.ready_pods() == pods, DEADLINE_S)
    node.withdraw(files)
    node.until(lambda: not node.pods(), DEADLINE_S)
    return (cpu_s(node) - before) / pods


def single_costs() -> tuple[float, float]:
    """Seconds of one addition and of one observed value."""
    counter, histogram = (
        METERS.counter(kubelet.STARTED_PODS),
        METERS.histogram(kubelet.POD_START_DURATION),
    )
    added, observed = (
        min(timeit.repeat(step, number=REPEATS, repeat=5)) / REPEATS
        for step in (counter.inc, lambda: histogram.observe(1.0))
    )
    return added, observed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.counting", description=__doc__)
    parser.add_argument("--pods", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    added, observed = single_costs()
    print(f"an addition {added * 1e6:.2f} us, a value {observed * 1e6:.2f} us; {load()}")
    taken: dict[str, list[float]] = {kind: [] for kind in MODULES}
    with contextlib.ExitStack() as stack:
        nodes = {kind: stack.enter_context(simulated_node(1000, instant=True)) for kind in MODULES}
        for kind, node in nodes.items():
            node.start(module=MODULES[kind])
            one_round(node, options.pods, 0)  # imports, caches
        before = counts(nodes["counted"])
        for number in range(1, options.rounds + 1):
            for kind, node in nodes.items():
                taken[kind].append(one_round(node, options.pods, number))
        made = counts(nodes["counted"]) - before
    for kind, costs in taken.items():
        least, median = min(costs), statistics.median(costs)
        print(f"{kind}: {median * 1e3:.2f} ms a pod, least {least * 1e3:.2f}, all {[round(c * 1e3, 2) for c in costs]}")
    pods = options.pods * options.rounds
    print(
        f"{made.total() / pods:.1f} counts a pod, {made.total() / pods * observed * 1e6:.1f} us if each were a value's"
    )
    for name, number in made.most_common(8):
        print(f"{number / pods:8.2f} {name}")


if __name__ == "__main__":
    main()
