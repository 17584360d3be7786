"""Whether a running container uses a volume. Pure."""

from __future__ import annotations

from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.hashing import is_made_from
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus


def is_in_use(pod: Pod, volume: str, view: RuntimePodStatus) -> bool:
    """Whether a container of the present manifest runs with the volume: then it was set up, and is left as it is."""
    return any(
        any(mount.name == volume for mount in found.container.volume_mounts)
        and (newest := view.newest(found.container.name)) is not None
        and newest.state is ContainerState.RUNNING
        and is_made_from(newest, pod.spec, found.container)
        for found in every_container(pod.spec)
    )
