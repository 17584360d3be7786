"""Where a pod's volumes lie: ``<root>/<uid>/volumes/kubernetes.io~<plugin>/<name>``.

Mirrors getPodVolumeDir (pkg/kubelet/kubelet_getters.go) and EscapeQualifiedName (k8s.io/utils/strings). The root is
``pods_dir``, or ``memory_dir`` for what must not reach a disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from workers.fs.directories import made_below, private_root

VOLUMES: Final = "volumes"
HELD: Final = "volume-subpaths"
"""Beside it: where containers' mounts come from that nobody may swap; what is mounted there shows to Podman only."""
PLUGINS: Final = "plugins"
"""Beside it: what is known of volumes (getPodPluginDir)."""
VOLUME_MODE: Final = 0o755
"""Of the directory that is mounted: whoever a container runs as may look in. Those above are ours alone. (Upstream has
0777, where the mount is what keeps containers from writing.)"""


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
        """Says that the volume is complete, and to which group it was given (volumeutil.SetReady)."""
        return Path(self.root, self.uid, PLUGINS, f"kubernetes.io~{self.plugin}", self.name, "ready")

    @property
    def steps(self) -> tuple[str, ...]:
        """Names on the way from the root."""
        return (self.uid, VOLUMES, f"kubernetes.io~{self.plugin}", self.name)


def held_path(pods_dir: str, uid: str, volume: str, container: str, index: int) -> Path:
    """Of the container's volume mount with that number (pkg/volume/util/subpath, doBindSubPath)."""
    return Path(pods_dir, uid, HELD, volume, container, str(index))


@contextmanager
def volume_directory(place: VolumeDirectory, mode: int = VOLUME_MODE) -> Iterator[int]:
    """Its descriptor, the directory made when it is missing. Raises OSError."""
    *above, name = place.steps
    with (
        private_root(place.root) as root,
        made_below(root, *above) as directory,
        made_below(directory, name, mode=mode) as volume,
    ):
        yield volume
