"""Mount points of other volumes inside of one. Pure.

Mirrors getNestedMountpoints (pkg/volume/util/nested_volumes.go): a runtime that has made the outer mount read-only can
make no directory in it. Different on purpose: what may be a file (a sub-path, a path of the host) is left to the
runtime, for upstream's directory would be in the way of it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from ipc.api.pod_containers import every_container
from ipc.api.v1.container import Container, VolumeMount
from ipc.api.v1.pod import Pod


def nested_mountpoints(pod: Pod, volume: str) -> tuple[str, ...]:
    """Paths of mount points below that volume, sorted, without those below another one of them."""
    files = frozenset(other.name for other in pod.spec.volumes if other.host_path is not None)
    paths = {path for found in every_container(pod.spec) for path in _nested(found.container, volume, files)}
    return tuple(path for path in sorted(paths) if not any(f"{path}/".startswith(f"{up}/") for up in paths - {path}))


def _nested(container: Container, volume: str, files: frozenset[str]) -> Iterator[str]:
    outer = [_place(mount) for mount in container.volume_mounts if mount.name == volume and _is_whole(mount)]
    inner = [_place(mount) for mount in container.volume_mounts if _is_whole(mount) and mount.name not in files]
    for place in outer:
        yield from (path.removeprefix(f"{place}/") for path in inner if path.startswith(f"{place}/"))


def _place(mount: VolumeMount) -> str:
    """Normalized path, rooted: no ``..`` leads out of it."""
    return posixpath.normpath(f"/{mount.mount_path}").replace("//", "/")


def _is_whole(mount: VolumeMount) -> bool:
    return not (mount.sub_path or mount.sub_path_expr)
