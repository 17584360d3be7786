"""Memory of the agent's processes while somebody looks, and when nobody has for long: PSS, on the simulated service.

    python -m tests.bench.memory --pods 10,60 --rounds 3

Beside each process stands its budget (docs/performance.md), and whether it is met. *Anonymous* is the part of PSS that
is no file's: what others on the host run with the same Python does not show in it, so two trees are compared by that.

Every size and round is a fresh service and a fresh agent. Who looks keeps the API server; it is looked at until the
pods have been quiet for so long that a pod worker of the starts has left. After that nothing is asked of the agent any
more, and its processes are known by their names.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import psutil

from tests.bench.budgets import ALL, BUDGETS, KIB, LEFT_ALONE, LOOKED_AT, ROLES, budget
from tests.bench.byte_code import make_byte_code
from tests.bench.simulated import manifests, simulated_node

READY_DEADLINE_S: Final = 120.0
IDLE_TIMEOUT_S: Final = 20.0
LOOKED_S: Final = 1.5 * IDLE_TIMEOUT_S
"""After the last pod was Ready: quiet pods are so by then."""
LOOK_EVERY_S: Final = 5.0
"""Less than the time after which nobody is there who need not be."""
LEFT_S: Final = 2.2 * IDLE_TIMEOUT_S
PREFIX: Final = "rootlet-"


class Taken(msgspec.Struct, frozen=True):
    """Memory of a process, in MiB."""

    pss: float
    anonymous: float


Memory = dict[str, Taken]
"""By role; pod workers in sum."""


def measure(pods: int) -> dict[str, Memory]:
    """Looked at, and left alone."""
    with simulated_node(pods, settings={"workers": {"count": 2, "idleTimeout": f"{IDLE_TIMEOUT_S:g}s"}}) as node:
        node.start()
        node.state_pods(manifests(pods))
        node.until(lambda: node.ready_pods() == pods, READY_DEADLINE_S)
        for _ in range(int(LOOKED_S / LOOK_EVERY_S)):
            time.sleep(LOOK_EVERY_S)  # as a person who looks again and again
            node.workers()
        looked_at = memory(node.agent.pid)
        time.sleep(LEFT_S)  # the API server leaves, and memory that was spare is given back
        return {LOOKED_AT: looked_at, LEFT_ALONE: memory(node.agent.pid)}


def memory(agent_pid: int) -> Memory:
    """Memory of every process of the agent whose master that is, and of all."""
    found: Memory = {}
    master = psutil.Process(agent_pid)
    for process in (master, *master.children(recursive=True)):
        role = process.name().removeprefix(PREFIX).partition("-")[0]
        if role in ROLES:
            found[role] = _sum([taken_by(process.pid), *([found[role]] if role in found else [])])
    return found | {ALL: _sum(found.values())}


def taken_by(pid: int) -> Taken:
    """As the kernel adds it up (proc_pid_smaps_rollup(5))."""
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kib = {name: float(value) for name, value, _ in lines}
    return Taken(kib["Pss:"] / KIB, kib["Pss_Anon:"] / KIB)


def _sum(parts: Iterable[Taken]) -> Taken:
    every = list(parts)
    return Taken(sum(each.pss for each in every), sum(each.anonymous for each in every))


def report(sizes: Sequence[int], rounds: int) -> str:
    """Measures all sizes in each round."""
    taken: dict[int, list[dict[str, Memory]]] = {pods: [] for pods in sizes}
    for _ in range(rounds):
        for pods in sizes:
            taken[pods].append(measure(pods))
    lines = [f"Python {platform.python_version()}, {rounds} rounds, MiB, median (lowest to highest)"]
    for pods in sizes:
        for state in BUDGETS:
            found = [each[state] for each in taken[pods]]
            lines += ["", f"{pods} pods, {state}", f"{'':8}{'PSS':>24}{'budget':>8}          anonymous"]
            lines += [_row(state, role, pods, found) for role in (*ROLES, ALL) if role in found[0]]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory", description=__doc__)
    parser.add_argument("--pods", default="10,60", help="how many, one after the other")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    make_byte_code()
    print(report([int(pods) for pods in options.pods.split(",")], options.rounds))


def _row(state: str, role: str, pods: int, rounds: Sequence[Memory]) -> str:
    pss = [found[role].pss for found in rounds if role in found]
    anonymous = [found[role].anonymous for found in rounds if role in found]
    allowed = budget(state, role, pods)
    verdict = "met" if statistics.median(pss) <= allowed else "missed"
    return f"{role:8}{_spread(pss):>24}{allowed:8.1f}  {verdict:6}  {_spread(anonymous)}"


def _spread(values: list[float]) -> str:
    middle = f"{statistics.median(values):.1f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    main()
