"""fsGroup: volumes belong to a group of the pod's, in ids as its containers see them.

Mirrors VolumeOwnership (pkg/volume/volume_linux.go). The group is one of Podman's user namespace, so only a process in
there can give a file to it. That costs a process, so what is owned already is told from outside by two facts: which
group the volume was given to, which a file beside it says, and that no file in it is of the agent's own group, as those
are that were written since.
"""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

from ipc.api import Pod, Volume
from workers.pod_dirs import ensure_directory
from workers.sync_context import SyncRun
from workers.unshare import UnshareError
from workers.volumes import inside
from workers.volumes.mounted import MountedVolume, VolumeError
from workers.volumes.places import VolumePlace

PROJECTION = "projected"
"""Under which it is noted that a volume of written files was given to a group."""
PROJECTIONS = ("config_map", "secret", "downward_api", "projected")
"""Attributes of `Volume`: sources whose files the agent writes, again and again."""


def fs_group(pod: Pod) -> int | None:
    return pod.spec.security_context.fs_group if pod.spec.security_context is not None else None


async def give_volume_to_group(
    run: SyncRun, volume: str, path: Path, group: int, *, read_only: bool = False, only_on_root_mismatch: bool = False
) -> None:
    """Path and all below it, whatever it takes. Raises VolumeError."""
    arguments = {
        "path": await asyncio.to_thread(os.path.realpath, path),
        "gid": group,
        "read_only": read_only,
        "only_on_root_mismatch": only_on_root_mismatch,
    }
    try:
        await asyncio.to_thread(run.context.unshare.run, [(inside.give_to_group.__name__, arguments)])
    except UnshareError as error:
        raise VolumeError(volume, f"applyFSGroup failed for vol {volume}: {error}") from error


async def own_projection(run: SyncRun, pod: Pod, volume: Volume, mounted: MountedVolume) -> None:
    """After each set-up of a volume of written files: give what is new in it to the pod's group. Of other volumes
    nothing. Raises VolumeError, OSError."""
    group = fs_group(pod)
    if group is None or mounted.path is None or all(getattr(volume, source) is None for source in PROJECTIONS):
        return
    note = VolumePlace(run.context.pods_dir, run.pod.uid, PROJECTION, volume.name).ready_file
    if group_given(note) == group and is_owned(mounted.path, group, read_only=True):
        return
    # An interrupted change must be seen: the note is of the time before, or says nothing.
    await give_volume_to_group(run, volume.name, mounted.path, group, read_only=True)
    note_group(note, group)


def is_owned(path: Path, group: int, *, read_only: bool) -> bool:
    """Whether nothing at or below the path was made by the agent since it was given to that group. Raises OSError."""
    return all(_has_group(Path(file).lstat(), group, read_only) for file in _files(path))


def _files(path: Path) -> list[str]:
    return [str(path), *(os.path.join(root, name) for root, dirs, files in os.walk(path) for name in (*dirs, *files))]


def _has_group(file: os.stat_result, group: int, read_only: bool) -> bool:
    if group and file.st_gid == os.getegid():
        return False
    wanted = inside.READ_ONLY if read_only else inside.READ_WRITE
    wanted |= inside.DIRECTORY if stat.S_ISDIR(file.st_mode) else 0
    return stat.S_ISLNK(file.st_mode) or file.st_mode & wanted == wanted


def group_given(note: Path) -> int | None:
    """The group that a note speaks of; None when there is none."""
    try:
        text = note.read_text()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None


def note_group(note: Path, group: int | None) -> None:
    """Raises OSError."""
    ensure_directory(note.parent)
    note.write_text("" if group is None else str(group))
