"""A container's mounts, as fields of libpod's SpecGenerator. Pure.

Mirrors makeMounts (pkg/kubelet/kubelet_pods.go) and, for subPathExpr, ExpandContainerVolumeMounts
(pkg/kubelet/container/helpers.go). Different on purpose: a recursively read-only mount is made so where its source is
held (`workers.volumemanager.prepare`), because Podman's API has no word for it; so every runtime has it. A sub-path is
kept in its volume not here but where it is opened (`workers.userns.steps.mounts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypedDict

import msgspec

from ipc.k8s.api.v1.container import Container, VolumeMount
from workers.env.expansion import expand_sub_path_expr
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.mounted_volume import MountedVolume
from workers.kubecontainer.runtime import OciMount

_PROPAGATION: Final[Mapping[str | None, str]] = {
    None: "rprivate",
    "None": "rprivate",
    "HostToContainer": "rslave",
    "Bidirectional": "rshared",
}
"""translateMountPropagation."""


class _ImageVolume(TypedDict):
    Source: str
    Destination: str
    ReadWrite: bool


class _NamedVolume(TypedDict):
    Name: str
    Dest: str
    Options: list[str]


class Mounts(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a SpecGenerator."""

    binds: tuple[OciMount, ...] = ()
    """``mounts``: OCI mounts of paths of the host."""
    image_volumes: tuple[_ImageVolume, ...] = ()
    volumes: tuple[_NamedVolume, ...] = ()
    """Podman's named volumes."""


def make_mounts(
    container: Container,
    mounted: Mapping[str, MountedVolume],
    held: Mapping[str, Path] = {},
) -> Mounts:
    """Mounts of the pod's volumes in that container. ``held`` has by mountPath the source that replaces the volume's
    path: every mount with a sub-path has one.

    Raises ConfigError.
    """
    binds, images, volumes = [], [], []
    for mount in container.volume_mounts:
        volume = volume_of(mount, container, mounted)
        if volume.image and mount.mount_path not in held:
            images.append(_image_volume(mount, volume))
        elif volume.claim and mount.mount_path not in held:
            volumes.append(_named_volume(mount, volume))
        else:
            binds.append(_bind(mount, volume, held.get(mount.mount_path, volume.path)))
    return Mounts(binds=tuple(binds), image_volumes=tuple(images), volumes=tuple(volumes))


def volume_of(mount: VolumeMount, container: Container, mounted: Mapping[str, MountedVolume]) -> MountedVolume:
    """Raises ConfigError."""
    volume = mounted.get(mount.name)
    if volume is None:
        raise ConfigError(f'cannot find volume "{mount.name}" to mount into container "{container.name}"')
    return volume


def sub_path_of(mount: VolumeMount, environment: Mapping[str, str]) -> str:
    """The part of the volume that is mounted: relative and without ``..``, empty for the whole. Raises ConfigError."""
    path = mount.sub_path
    if mount.sub_path_expr:
        path = expand_sub_path_expr(mount.sub_path_expr, environment)
    if path.startswith("/"):
        raise ConfigError(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise ConfigError(f"unable to provision SubPath `{path}`: must not contain '..'")
    if "\0" in path:
        raise ConfigError("unable to provision SubPath: must not contain a null character")
    return path


def is_recursively_read_only(mount: VolumeMount) -> bool:
    """resolveRecursiveReadOnly. Raises ConfigError."""
    if mount.recursive_read_only in (None, "Disabled"):
        return False
    asks = f'failed to resolve recursive read-only mode: volume "{mount.name}" requested recursive read-only mode, but'
    if not mount.read_only:
        raise ConfigError(f"{asks} it is not read-only")
    if mount.mount_propagation not in (None, "None"):
        raise ConfigError(f'{asks} it is not compatible with propagation "{mount.mount_propagation}"')
    return True


def _bind(mount: VolumeMount, volume: MountedVolume, source: Path | None) -> OciMount:
    """``z``, on hosts with SELinux, lets all containers of the pod use what the agent has made for them."""
    label = [] if volume.is_foreign or volume.claim or volume.image else ["z"]
    options = ["rbind", *_rights(mount, volume), *label]
    return {"type": "bind", "source": str(source), "destination": _destination(mount), "options": options}


def _named_volume(mount: VolumeMount, volume: MountedVolume) -> _NamedVolume:
    """``nocopy``: a volume has what was written to it, not what the image has at its place."""
    options = [*_rights(mount, volume), "nocopy"]
    return {"Name": volume.claim, "Dest": _destination(mount), "Options": options}


def _image_volume(mount: VolumeMount, volume: MountedVolume) -> _ImageVolume:
    """A mount of the whole image: a sub-path is bound instead."""
    return {"Source": volume.image, "Destination": _destination(mount), "ReadWrite": False}


def _rights(mount: VolumeMount, volume: MountedVolume) -> tuple[str, str]:
    access = "ro" if mount.read_only or volume.read_only else "rw"
    return _PROPAGATION[mount.mount_propagation], access


def _destination(mount: VolumeMount) -> str:
    return mount.mount_path if mount.mount_path.startswith("/") else f"/{mount.mount_path}"
