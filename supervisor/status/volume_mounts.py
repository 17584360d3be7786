"""Volume mounts in the status of a container (pkg/kubelet/kubelet_pods.go,
convertToAPIContainerStatuses). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ipc.api.v1.container import Container, RecursiveReadOnlyMode, VolumeMount
from ipc.api.v1.status import ImageVolumeStatus, VolumeMountStatus, VolumeStatus


def volume_mount_statuses(container: Container, images: Mapping[str, str]) -> tuple[VolumeMountStatus, ...]:
    """``images``: those that the container sees as volumes, by the volume's name (KEP-5365); none before it is made."""
    return tuple(_status(mount, images.get(mount.name, "")) for mount in container.volume_mounts)


def _status(mount: VolumeMount, image: str) -> VolumeMountStatus:
    """Recursively read-only is possible wherever Rootlet runs, so IfPossible has become Enabled."""
    is_plain = mount.recursive_read_only in (None, "Disabled") or mount.mount_propagation not in (None, "None")
    recursive: RecursiveReadOnlyMode = "Disabled" if is_plain else "Enabled"
    return VolumeMountStatus(
        name=mount.name,
        mount_path=mount.mount_path,
        read_only=mount.read_only,
        recursive_read_only=recursive if mount.read_only else None,
        volume_status=VolumeStatus(image=ImageVolumeStatus(image_ref=image)) if image else None,
    )
