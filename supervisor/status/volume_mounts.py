"""Volume mounts in the status of a container (pkg/kubelet/kubelet_pods.go,
convertToAPIContainerStatuses). Pure."""

from __future__ import annotations

from ipc.api.v1.container import Container, VolumeMount
from ipc.api.v1.status import VolumeMountStatus


def volume_mount_statuses(container: Container) -> tuple[VolumeMountStatus, ...]:
    return tuple(_status(mount) for mount in container.volume_mounts)


def _status(mount: VolumeMount) -> VolumeMountStatus:
    """Recursively read-only is possible wherever Rootlet runs, so IfPossible has become Enabled."""
    if not mount.read_only:
        return VolumeMountStatus(name=mount.name, mount_path=mount.mount_path)
    is_plain = mount.recursive_read_only in (None, "Disabled") or mount.mount_propagation not in (None, "None")
    return VolumeMountStatus(
        name=mount.name,
        mount_path=mount.mount_path,
        read_only=True,
        recursive_read_only="Disabled" if is_plain else "Enabled",
    )
