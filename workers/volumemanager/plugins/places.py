"""Paths of a pod's volumes: ``<root>/<uid>/volumes/kubernetes.io~<plugin>/<name>``.

Mirrors getPodVolumeDir (pkg/kubelet/kubelet_getters.go) and EscapeQualifiedName (k8s.io/utils/strings). The root is
``pods_dir``, or ``memory_dir`` for what must not reach a disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from workers.fs.directories import made_below, private_root

VOLUMES: Final = "volumes"
HELD: Final = "volume-subpaths"
"""Beside it: sources of containers' mounts that must not be swapped, mounted where only Podman sees them."""
MANY_HELD: Final = 32
"""So many mounts of a pod are let go in one call, which costs a process; fewer go one after the other."""
PLUGINS: Final = "plugins"
"""Beside it: state of volume plugins (getPodPluginDir)."""
VOLUME_MODE: Final = 0o755
"""Mode of the directory that is mounted: every user of a container may read it. Those above are the agent's alone.
(Upstream has 0777, where the mount keeps containers from writing.)"""


class VolumeDirectory(msgspec.Struct, frozen=True):
    """One volume of one pod."""

    root: str
    """``pods_dir`` or ``memory_dir``."""
    uid: str
    plugin: str
    """Such as ``configmap``."""
    name: str

    @property
    def path(self) -> Path:
        return Path(self.root).joinpath(*self.steps)

    @property
    def ready_file(self) -> Path:
        """File that marks the volume as complete and holds its group (volumeutil.SetReady)."""
        return Path(self.root, self.uid, PLUGINS, f"kubernetes.io~{self.plugin}", self.name, "ready")

    @property
    def steps(self) -> tuple[str, ...]:
        """Names on the way from the root."""
        return (self.uid, VOLUMES, f"kubernetes.io~{self.plugin}", self.name)


def held_root(pods_dir: str, uid: str) -> Path:
    """Directory of all bound sources of a pod's volume mounts."""
    return Path(pods_dir, uid, HELD)


def has_many_held(pods_dir: str, uid: str) -> bool:
    """Whether so many sources are bound there that they are let go together."""
    left = MANY_HELD
    for _, directories, files in os.walk(held_root(pods_dir, uid)):
        left -= len(directories) + len(files)
        if left <= 0:
            return True
    return False


def held_path(pods_dir: str, uid: str, volume: str, container: str, index: int) -> Path:
    """Path of the bound source of a container's volume mount, by the mount's index (pkg/volume/util/subpath,
    doBindSubPath)."""
    return held_root(pods_dir, uid) / volume / container / str(index)


@contextmanager
def volume_directory(place: VolumeDirectory, mode: int = VOLUME_MODE) -> Iterator[int]:
    """Descriptor of the volume's directory, which is made when it is missing. Raises OSError."""
    *above, name = place.steps
    with (
        private_root(place.root) as root,
        made_below(root, *above) as directory,
        made_below(directory, name, mode=mode) as volume,
    ):
        yield volume
