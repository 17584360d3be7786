"""Whether a volume is in use. Pure."""

from __future__ import annotations

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.hashing import hash_in
from ipc.kubecontainer.pod_containers import every_container
from ipc.kubecontainer.pod_status import ContainerState, RuntimePodStatus


def is_in_use(pod: Pod, volume: str, view: RuntimePodStatus) -> bool:
    """Whether a container runs that has the volume as it is wanted: then that is set up, whatever became of it."""
    return any(
        any(mount.name == volume for mount in found.container.volume_mounts)
        and (newest := view.newest(found.container.name)) is not None
        and newest.state is ContainerState.RUNNING
        and newest.hash == hash_in(pod.spec, found.container)
        for found in every_container(pod.spec)
    )
