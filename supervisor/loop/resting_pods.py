"""Periodic syncs that need no worker, because they would find nothing to do. Pure.

Upstream makes them all. A sync looks at the pod and at what was observed of it, and each change of these brings a sync
of its own; it looks at volumes, limits of disks, bandwidth and slices too, so pods with any of them are always synced.
"""

from __future__ import annotations

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.network.bandwidth import UNLIMITED, pod_bandwidth
from ipc.podresources.node_resources import NodeResources
from ipc.podresources.pod_requests import EPHEMERAL_STORAGE
from supervisor.pods.lifecycle import MAX_RESTS, PodLifecycle


def rests(lifecycle: PodLifecycle, view: RuntimePodStatus, node: NodeResources) -> bool:
    """Whether a periodic sync of that pod may be passed over."""
    pod = lifecycle.pod
    return (
        pod is not None
        and lifecycle.rested < MAX_RESTS
        and lifecycle.is_settled
        and lifecycle.has_all(view)
        and not _looks_beyond(pod, node)
    )


def _looks_beyond(pod: Pod, node: NodeResources) -> bool:
    """Whether a sync of the pod looks at what nobody observes and no event tells of."""
    if pod.spec.volumes or node.pod_cgroups is not None or pod_bandwidth(pod.metadata.annotations) != UNLIMITED:
        return True
    return any(EPHEMERAL_STORAGE in container.resources.limits for container in pod.spec.containers)
