"""Prepares a container's mounts right before it is made: binds their sources where they could be swapped.

Podman takes a mount's source as a path and looks it up a second time, long after it was checked: when the container
starts. A container that can write to a volume, or to a directory on the way to a hostPath, could put a symbolic link
there in between and would be given any file of the user's. So a source that others can swap is opened once, within its
volume, and bound by its descriptor to a place below the pod's directory that only the agent can write to, inside
Podman's mount namespace (`workers.userns.steps.mounts`): that is what Podman gets. Upstream does the same for subPath
(pkg/volume/util/subpath/subpath_linux.go), and leaves hostPath open.

All that one container needs takes one run of `podman unshare`; most containers need none.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ipc.k8s.api.v1.container import Container, VolumeMount
from ipc.k8s.api.v1.pod import Pod
from workers.kubecontainer.config_error import ConfigError, ImageVolumeError
from workers.kubecontainer.mounted_volume import MountedVolume, why
from workers.kubecontainer.runtime import RuntimeCallError
from workers.specgen.mounts import Mounts, is_recursively_read_only, make_mounts, sub_path_of, volume_of
from workers.sync.run import SyncRun
from workers.userns.steps.group import give_to_group
from workers.userns.steps.images import bind_image
from workers.userns.steps.mounts import bind, hold_together, mount_tmpfs
from workers.userns.unshare import Step, Unshare, UnshareError
from workers.volumemanager.plugins import host_path
from workers.volumemanager.plugins.claim import is_directory
from workers.volumemanager.plugins.ownership import fs_group
from workers.volumemanager.plugins.places import held_path, held_root
from workers.volumemanager.plugins.volume_host import VolumeHost


class _HeldImage(NamedTuple):
    """A sub-path of an image, bound as `_Held` is."""

    mount: VolumeMount
    image: str
    sub_path: str
    place: Path

    def step(self, podman: Sequence[str]) -> Step:
        return bind_image.__name__, {
            "podman": podman,
            "image": self.image,
            "sub_path": self.sub_path,
            "target": str(self.place),
        }


class _Held(NamedTuple):
    """A mount whose source is bound first to a path that only the agent can write to."""

    mount: VolumeMount
    root: Path
    sub_path: str
    place: Path
    file_types: tuple[int, ...] = ()

    def step(self, podman: Sequence[str]) -> Step:
        return bind.__name__, {
            "root": os.path.realpath(self.root),
            "sub_path": self.sub_path,
            "target": str(self.place),
            "kinds": self.file_types,
            "recursive_read_only": is_recursively_read_only(self.mount),
        }


async def prepare_mounts(
    run: SyncRun,
    host: VolumeHost,
    pod: Pod,
    container: Container,
    volumes: Mapping[str, MountedVolume],
    environment: Mapping[str, str],
) -> Mounts:
    """The mounts of a container that is about to be made, out of its pod's ``volumes``. Raises ConfigError,
    SyncEnded."""
    if not container.volume_mounts:
        return make_mounts(container, volumes)
    subject, podman, group = _subject(container), host.unshare.command, fs_group(pod)
    try:
        pods_dir = await run.in_files(subject, _real, host.pods_dir)
        held = [found async for found in _to_be_held(run, pods_dir, pod, container, volumes, environment)]
        mounts = make_mounts(container, volumes)  # raises before anything is done
        steps = await run.unless_cancelled(run.in_files, subject, _steps, podman, group, container, volumes, held)
        if not steps:
            return mounts
        if held:
            steps.insert(0, (hold_together.__name__, {"directory": str(held_root(pods_dir, run.pod.uid))}))
        await _run(host.unshare, container, steps, held)
    except OSError as error:
        raise ConfigError(f'volumes of container "{container.name}": {why(error)}') from error
    return make_mounts(container, volumes, {one.mount.mount_path: one.place for one in held})


def _steps(
    podman: Sequence[str],
    group: int | None,
    container: Container,
    volumes: Mapping[str, MountedVolume],
    held: Sequence[_Held | _HeldImage],
) -> list[Step]:
    """Steps inside Podman's namespaces; those for ``held`` are the last ones. Blocks. Raises ConfigError."""
    return [*_tmpfs_steps(group, container, volumes), *(one.step(podman) for one in held)]


async def _to_be_held(
    run: SyncRun,
    pods_dir: str,
    pod: Pod,
    container: Container,
    volumes: Mapping[str, MountedVolume],
    environment: Mapping[str, str],
) -> AsyncIterator[_Held | _HeldImage]:
    """Mounts whose sources others could swap. Raises ConfigError, SyncEnded."""
    for index, mount in enumerate(container.volume_mounts):
        volume = volume_of(mount, container, volumes)
        sub_path = sub_path_of(mount, environment)
        place = held_path(pods_dir, run.pod.uid, mount.name, container.name, index)
        if volume.image:
            if sub_path:
                yield _HeldImage(mount, volume.image, sub_path, place)
        elif sub_path or volume.is_foreign or is_recursively_read_only(mount):
            root = volume.path or await _claim_root(run, mount, volume)
            yield _Held(mount, root, sub_path, place, () if sub_path else _file_types(pod, mount.name))


def _subject(container: Container) -> str:
    return f"mounts of {container.name}"


def _real(path: str) -> str:
    return os.path.realpath(path)


def _file_types(pod: Pod, name: str) -> tuple[int, ...]:
    sources = (volume.host_path for volume in pod.spec.volumes if volume.name == name)
    return next((host_path.file_types(source) for source in sources if source is not None), ())


async def _claim_root(run: SyncRun, mount: VolumeMount, volume: MountedVolume) -> Path:
    """Raises ConfigError, SyncEnded."""
    try:
        found = volume.claim_info or await run.read(run.runtime.inspect_volume, volume.claim)
    except RuntimeCallError as error:
        raise ConfigError(error.message) from error
    if found is None or not is_directory(found):
        what = "is gone" if found is None else "has a driver or options of its own: Podman mounts it as a whole"
        raise ConfigError(f'volumeMount "{mount.name}": Podman volume {volume.claim} {what}')
    return Path(found.mount_point)


def _tmpfs_steps(group: int | None, container: Container, volumes: Mapping[str, MountedVolume]) -> Iterator[Step]:
    for name in dict.fromkeys(mount.name for mount in container.volume_mounts):
        volume = volumes[name]
        if volume.memory_bytes is None:
            continue
        path = os.path.realpath(volume.path or "")
        yield mount_tmpfs.__name__, {"target": path, "size_bytes": volume.memory_bytes}
        if group is not None:
            yield give_to_group.__name__, {"path": path, "gid": group, "only_on_root_mismatch": True}


async def _run(unshare: Unshare, container: Container, steps: list[Step], held: Sequence[_Held | _HeldImage]) -> None:
    """Raises ConfigError."""
    try:
        await asyncio.to_thread(unshare.run, steps)
    except UnshareError as error:
        nth_held = error.done - (len(steps) - len(held))
        if nth_held < 0:
            raise ConfigError(f"cannot mount: {error}") from error
        one = held[nth_held]
        what = "subPath" if one.sub_path else "mount"
        failed = f'failed to prepare {what} for volumeMount "{one.mount.name}" of container "{container.name}"'
        kind = ImageVolumeError if isinstance(one, _HeldImage) else ConfigError
        raise kind(f"{failed}: {error}") from error
