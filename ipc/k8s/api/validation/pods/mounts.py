"""Volume mounts and block devices of a container.

Source: pkg/apis/core/validation ValidateVolumeMounts, ValidateVolumeDevices, validateMountPropagation,
validateMountRecursiveReadOnly.
"""

from collections.abc import Mapping

from ipc.k8s.api.errors import forbidden, invalid, not_found, required
from ipc.k8s.api.v1.container import Container, VolumeMount
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.api.validation.checks import Errors, at_most_one, if_set, indexed, unique, well_formed
from ipc.k8s.api.validation.names import backstep_problem, relative_path_problem


def validate_mounts(container: Container, volumes: Mapping[str, Volume], path: str) -> Errors:
    """`volumeMounts` and `volumeDevices`; `volumes` are the pod's by name."""
    mounts, devices = f"{path}.volumeMounts", f"{path}.volumeDevices"
    yield from unique(
        (f"{below}.mountPath", mount.mount_path) for below, mount in indexed(mounts, container.volume_mounts)
    )
    for below, mount in indexed(mounts, container.volume_mounts):
        yield from _volume_name(mount.name, volumes, f"{below}.name")
        yield from _mount(mount, container, below)
    yield from _devices(container, volumes, devices)


def _volume_name(name: str, volumes: Mapping[str, Volume], path: str) -> Errors:
    if not name:
        yield required(path)
    elif name not in volumes:
        yield not_found(path, name)


def _mount(mount: VolumeMount, container: Container, path: str) -> Errors:
    if not mount.mount_path:
        yield required(f"{path}.mountPath")
    yield from if_set(f"{path}.subPath", mount.sub_path, relative_path_problem)
    yield from if_set(f"{path}.subPathExpr", mount.sub_path_expr, relative_path_problem)
    sub_paths = {"subPath": mount.sub_path, "subPathExpr": mount.sub_path_expr}
    yield from at_most_one(path, [name for name, value in sub_paths.items() if value])
    yield from _propagation(mount, container, f"{path}.mountPropagation")
    yield from _recursive_read_only(mount, f"{path}.recursiveReadOnly")


def _propagation(mount: VolumeMount, container: Container, path: str) -> Errors:
    privileged = container.security_context is not None and container.security_context.privileged
    if mount.mount_propagation == "Bidirectional" and not privileged:
        yield forbidden(path, "Bidirectional needs a privileged container")


def _recursive_read_only(mount: VolumeMount, path: str) -> Errors:
    if mount.recursive_read_only in (None, "Disabled"):
        return
    if not mount.read_only:
        yield forbidden(path, "may only be set when readOnly is true")
    if mount.mount_propagation not in (None, "None"):
        yield forbidden(path, "may only be set when mountPropagation is None or not set")


def _devices(container: Container, volumes: Mapping[str, Volume], path: str) -> Errors:
    mounted_names = {mount.name for mount in container.volume_mounts}
    mounted_paths = {mount.mount_path for mount in container.volume_mounts}
    yield from unique((f"{below}.name", device.name) for below, device in indexed(path, container.volume_devices))
    yield from unique(
        (f"{below}.devicePath", device.device_path) for below, device in indexed(path, container.volume_devices)
    )
    for below, device in indexed(path, container.volume_devices):
        yield from _volume_name(device.name, volumes, f"{below}.name")
        yield from well_formed(f"{below}.devicePath", device.device_path, backstep_problem)
        volume = volumes.get(device.name)
        if volume is not None and volume.persistent_volume_claim is None and volume.ephemeral is None:
            yield invalid(
                f"{below}.name", device.name, "only a persistentVolumeClaim or ephemeral volume is a block device"
            )
        if device.name in mounted_names:
            yield invalid(f"{below}.name", device.name, "is already mounted in volumeMounts")
        if device.device_path in mounted_paths:
            yield invalid(f"{below}.devicePath", device.device_path, "is already a mountPath in volumeMounts")
