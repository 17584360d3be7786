"""hostPath: a file or directory of the host, as the agent's user may use it.

Mirrors pkg/volume/hostpath/host_path.go. Different on purpose: a path without a type that is not there becomes a
directory, which upstream leaves to the container runtime (containerd and CRI-O make one, Podman refuses). And what
a container gets is of that type, also when the path is swapped meanwhile
(`workers.volumemanager.prepare`).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ipc.k8s.api.v1.volume import HostPathVolumeSource, Volume
from workers.kubecontainer.mounted_volume import MountedVolume, VolumeError
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun
from workers.volumemanager.plugins.in_use import is_in_use
from workers.volumemanager.plugins.volume_host import VolumeHost

DIRECTORY_MODE: Final = 0o755
FILE_MODE: Final = 0o644


class _Kind(NamedTuple):
    """Requirements of a hostPath type."""

    file_type: int = 0
    """S_IFMT; 0 is any."""
    words: str = ""
    creates: int = 0
    """Type of file that is made when there is none (S_IFDIR, S_IFREG); 0: none is."""


_KINDS: Final[Mapping[str, _Kind]] = {
    "": _Kind(creates=stat.S_IFDIR),
    "DirectoryOrCreate": _Kind(stat.S_IFDIR, "directory", stat.S_IFDIR),
    "Directory": _Kind(stat.S_IFDIR, "directory"),
    "FileOrCreate": _Kind(stat.S_IFREG, "file", stat.S_IFREG),
    "File": _Kind(stat.S_IFREG, "file"),
    "Socket": _Kind(stat.S_IFSOCK, "socket file"),
    "CharDevice": _Kind(stat.S_IFCHR, "character device"),
    "BlockDevice": _Kind(stat.S_IFBLK, "block device"),
}
_TYPES: Final[Mapping[int, str]] = {
    stat.S_IFDIR: "Directory",
    stat.S_IFREG: "File",
    stat.S_IFSOCK: "Socket",
    stat.S_IFCHR: "CharDevice",
    stat.S_IFBLK: "BlockDevice",
}


async def set_up_host_path(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: Volume) -> MountedVolume:
    """Raises VolumeError, OSError, SyncEnded."""
    source = volume.host_path
    assert source is not None, "a hostPath volume"
    if not is_in_use(of.pod, volume.name, of.status):
        await run.unless_cancelled(run.in_files, volume.name, check, volume.name, source)
    return MountedVolume(name=volume.name, path=Path(source.path), is_foreign=True)


def file_types(source: HostPathVolumeSource) -> tuple[int, ...]:
    """Types of file (S_IFMT) that the path may have; none: any."""
    file_type = _KINDS[source.type or ""].file_type
    return (file_type,) if file_type else ()


def check(volume: str, source: HostPathVolumeSource) -> None:
    """Make a missing path if its type says so, and check the type (checkType). Blocks, for as long as the file system
    takes. Raises VolumeError, OSError."""
    path, kind = source.path, _KINDS[source.type or ""]
    if not os.path.exists(path) and kind.creates:
        with contextlib.suppress(FileExistsError):  # made meanwhile: checked below
            _create(path, kind.creates)
    try:
        found = os.stat(path)
    except FileNotFoundError as error:
        raise VolumeError(volume, f"hostPath {path} doesn't exist") from error
    if kind.file_type and stat.S_IFMT(found.st_mode) != kind.file_type:
        raise VolumeError(volume, _mismatch(path, kind, stat.S_IFMT(found.st_mode)))


def _mismatch(path: str, kind: _Kind, file_type: int) -> str:
    """typeMatchedOrError."""
    if file_type not in _TYPES:
        recognised = "only recognise file, directory, socket, block device and character device"
        unable = f"unable to determine its type: {recognised}"
        return f"hostPath type check failed, {path} is not a {kind.words}, {unable}"
    return f"hostPath type check failed: {path} is not a {kind.words}, it's a {_TYPES[file_type]}"


def _create(path: str, file_type: int) -> None:
    """Make a directory or file with upstream's mode, whatever the agent's umask is."""
    if file_type == stat.S_IFDIR:
        for missing in reversed([place for place in (Path(path), *Path(path).parents) if not place.exists()]):
            missing.mkdir(exist_ok=True)
            missing.chmod(DIRECTORY_MODE)
    else:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
        os.fchmod(fd, FILE_MODE)
        os.close(fd)
