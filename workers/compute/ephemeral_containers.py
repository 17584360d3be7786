"""What becomes of ephemeral containers: each is started once. Pure.

Mirrors the part on ephemeral containers of computePodActions (pkg/kubelet/kuberuntime/kuberuntime_manager.go). An
edited one stays as it is; one that is no longer in the manifest is stopped as everything is that the pod has not.
"""

from __future__ import annotations

from ipc.api.v1.container import EphemeralContainer
from ipc.kubecontainer.pod_status import ContainerState
from workers.compute.container_actions import ContainerAction, start_created, start_or_wait
from workers.compute.types import Given


def judge_ephemeral(given: Given, container: EphemeralContainer) -> ContainerAction:
    """It starts when there is no trace of it, in an earlier sandbox either."""
    newest = given.status.newest(container.name)
    if newest is None:
        return start_or_wait(given, container)
    if newest.state is ContainerState.CREATED:
        return start_created(given, container, newest)
    return ContainerAction()
