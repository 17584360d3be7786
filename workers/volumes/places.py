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

from workers.directories import made_below, private_root

VOLUMES: Final = "volumes"
VOLUME_MODE: Final = 0o755
"""Of the directory that is mounted: whoever a container runs as may look in. Those above are ours alone. (Upstream has
0777, where the mount is what keeps containers from writing.)"""


class VolumePlace(msgspec.Struct, frozen=True):
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
    def steps(self) -> tuple[str, ...]:
        """Names on the way from the root."""
        return (self.uid, VOLUMES, f"kubernetes.io~{self.plugin}", self.name)


@contextmanager
def volume_directory(place: VolumePlace) -> Iterator[int]:
    """Its descriptor, the directory made when it is missing. Raises OSError."""
    *above, name = place.steps
    with (
        private_root(place.root) as root,
        made_below(root, *above) as directory,
        made_below(directory, name, mode=VOLUME_MODE) as volume,
    ):
        yield volume
