"""fsGroup: volumes belong to a group of the pod's, in ids as its containers see them.

Mirrors VolumeOwnership (pkg/volume/volume_linux.go). The group is one of Podman's user namespace, so only a process in
there can give a file to it: each time costs one, and it is done only where something is new.
"""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import msgspec

from ipc.api import Pod
from ipc.private_directories import make_private
from workers.sync_context import SyncRun
from workers.unshare import Unshare, UnshareError
from workers.volumes import inside
from workers.volumes.mounted import VolumeError
from workers.volumes.places import VolumePlace


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


class WrittenOwner(msgspec.Struct, frozen=True, kw_only=True):
    """To whom the files of a volume belong that the agent writes again and again; for `write_payload`. Blocks.

    Their modes are the group's already. That they were given to it is told without a process: a file beside the volume
    says to which group, and what was written since is of the agent's own.
    """

    place: VolumePlace
    group: int | None
    unshare: Unshare

    def is_owned(self, version: str) -> bool:
        """Raises OSError."""
        if self.group is None:
            return True
        return group_given(self.place.ready_file) == self.group and self._has_group(version)

    def set_owner(self, version: str) -> None:
        """Of the whole volume, before that version is shown. Raises OSError."""
        if self.group is None:
            return
        arguments = {"path": os.path.realpath(self.place.path), "gid": self.group, "read_only": True}
        try:
            self.unshare.run([(inside.give_to_group.__name__, arguments)])
        except UnshareError as error:
            raise OSError(errno.EPERM, f"applyFSGroup failed for vol {self.place.name}: {error}") from error
        note_group(self.place.ready_file, self.group)

    def _has_group(self, version: str) -> bool:
        """Group 0 is the agent's own (its id in Podman's user namespace)."""
        top = self.place.path / version
        below = (Path(root, name) for root, dirs, files in os.walk(top) for name in (*dirs, *files))
        return self.group == 0 or all(file.lstat().st_gid != os.getegid() for file in (top, *below))


def group_given(note: Path) -> int | None:
    """The group that a note speaks of; None when there is none."""
    try:
        text = note.read_text()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None


def note_group(note: Path, group: int | None) -> None:
    """Raises OSError."""
    make_private(note.parent)
    note.write_text("" if group is None else str(group))
