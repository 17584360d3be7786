"""Whether a pod is paused: Podman's own word about its containers, which outlives every process of the agent. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus

PAUSED: Final = "paused"
"""libpod/define/containerstate.go, ContainerStatePaused."""


def frozen_containers(status: RuntimePodStatus) -> Iterator[RuntimeContainerStatus]:
    """Containers whose processes exist and get no CPU."""
    return (c for c in status.containers if c.podman_state == PAUSED and c.state is ContainerState.RUNNING)


def is_frozen(status: RuntimePodStatus) -> bool:
    """Whether some container is: a pod that was paused in part is paused."""
    return any(True for _ in frozen_containers(status))
