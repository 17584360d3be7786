"""An agent of its own on a simulated Podman that has 100,000 containers of others: every list takes 50 s and more."""

from __future__ import annotations

from typing import Final

from tests.attack.ground import Ground
from tests.bench.simulated import SimulatedNode, manifests, simulated_node

STRANGERS: Final = 100_000
PODS: Final = 20
START_S: Final = 240.0
"""Nothing is done before everything was listed."""
ACT_S: Final = 240.0
"""For pods that come and go: nothing of that waits for another list of everything, which comes after minutes."""


def crowd(_ground: Ground) -> None:
    """Pods are started, kept and ended; no process of the agent dies, and Podman counts as well."""
    with simulated_node(PODS, strangers=STRANGERS, settings={"relistPeriod": "1s"}) as node:
        node.start(START_S)
        before = _incarnations(node)
        node.state_pods(manifests(PODS))
        node.until(lambda: node.ready_pods() == PODS, ACT_S)
        assert node.get("/version")["runtimeHealthy"]
        node.withdraw(manifests(PODS))
        node.until(lambda: node.service().pods == 0, ACT_S)
        assert _incarnations(node) == before, "a process was replaced"


def _incarnations(node: SimulatedNode) -> dict[str, int]:
    return {name: worker["incarnation"] for name, worker in node.workers().items()}
