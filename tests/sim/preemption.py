"""A critical pod on a full node: one pod gives way, and only when it has ended the critical one starts."""

from __future__ import annotations

from typing import Final

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.scheduling.priority import SYSTEM_CRITICAL_PRIORITY
from ipc.link.messages.pod_worker import SyncPod, WorkType
from supervisor.desired.pod_admission import PREEMPTED
from tests.sim.pods import PRESENT
from tests.sim.runtime import SimPodman

UID: Final = "0000cccc-critical"
LASTS_S: Final = 6.0
"""Most preemptions are over by then: an agent may be killed at any time of them."""
PREEMPTING_S: Final = 120.0
"""Within which the critical pod runs: another's grace period, its hooks, and a start."""


def critical_pod() -> Pod:
    spec = PodSpec(
        containers=(Container(name="one", image=PRESENT, args=("serve",)),),
        restart_policy="Always",
        priority=SYSTEM_CRITICAL_PRIORITY,
    )
    return Pod(metadata=ObjectMeta(name="critical", namespace="default", uid=UID), spec=spec)


def is_preempted(sync: SyncPod) -> bool:
    return sync.evicted is not None and sync.evicted.reason == PREEMPTED.reason


def runs(podman: SimPodman, uid: str) -> bool:
    return any(container.state == "running" for container in podman.of_pod(uid))


def early_start(sync: SyncPod, newest: dict[str, SyncPod], podman: SimPodman) -> str:
    """Pod that has still to end when the critical one is synced; empty when there is none."""
    if sync.uid != UID or sync.kind is not WorkType.SYNC:
        return ""
    return next((uid for uid, other in newest.items() if is_preempted(other) and runs(podman, uid)), "")
