"""Memory of the agent's processes after each round of pods that are made and removed, on Podman: does anything grow?

    python -m tests.bench.growth --pods 60 --rounds 8

*Anonymous* memory (`tests.bench.memory`), of one agent that is looked at all the time. On Podman: the containers of the
simulated service have no processes that end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from supervisor.client.http import AgentClient
from tests.bench.budgets import ALL, ROLES
from tests.bench.default_periods import set_default_periods
from tests.bench.memory import Memory, memory
from tests.bench.own_storage import own_storage
from tests.bench.sleepers import load, sleepers
from tests.e2e.agent import Agent, is_ready
from tests.support.podman_service import IMAGE

DEADLINE_S: Final = 300.0
SETTLE_S: Final = 3.0
"""After the last pod has gone: what is done every few seconds is done."""
PROGRAM: Final = ("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done")


def rounds_of(agent: Agent, pods: int, rounds: int) -> Iterator[Memory]:
    """Without a pod: before the first round, and after each."""
    client = AgentClient(agent.socket)
    yield memory(agent.process.pid)
    for number in range(rounds):
        wanted = sleepers(f"g{number}", pods, PROGRAM, IMAGE)
        _apply(client, wanted)
        agent.until(lambda: _all_ready(agent, pods), "all pods are Ready", DEADLINE_S)
        for name in wanted:
            client.delete_pod("default", name)
        agent.until(lambda: not agent.pods(), "all pods are gone", DEADLINE_S)
        time.sleep(SETTLE_S)
        yield memory(agent.process.pid)


def _apply(client: AgentClient, wanted: Mapping[str, Any]) -> None:
    result = client.apply("".join(f"---\n{json.dumps(pod)}\n" for pod in wanted.values()).encode(), "bench")
    assert not result.failed, result


def _all_ready(agent: Agent, pods: int) -> bool:
    return sum(map(is_ready, agent.pods().values())) == pods


def line(label: str, taken: Memory) -> str:
    """One row: MiB by role."""
    return f"{label:>8}" + "".join(
        f"{taken[role].anonymous:9.1f}" if role in taken else f"{'-':>9}" for role in (*ROLES, ALL)
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("--pods", type=int, default=60, help="in each round")
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    with own_storage() as run_name, contextlib.ExitStack() as stack:
        agent = Agent(f"{run_name}-growth")
        stack.callback(agent.close)
        set_default_periods(agent, {"idleTimeout": "1h"})
        agent.start()
        print(f"{options.pods} pods a round, MiB anonymous; {load()}")
        print(f"{'round':>8}" + "".join(f"{role:>9}" for role in (*ROLES, ALL)), flush=True)
        for number, taken in enumerate(rounds_of(agent, options.pods, options.rounds)):
            print(line(str(number), taken), flush=True)


if __name__ == "__main__":
    main()
