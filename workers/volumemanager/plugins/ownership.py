"""fsGroup: volumes belong to a group of the pod's, in ids as its containers see them.

Mirrors VolumeOwnership (pkg/volume/volume_linux.go). The group is one of Podman's user namespace, so only a process in
there can give a file to it: each time costs one, and it is done only where something is new.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.private_directories import make_private
from ipc.host.regular_files import read_regular_file, write_regular_file
from ipc.k8s.api.v1.pod import Pod
from ipc.link.eventloop.tasks import with_progress
from ipc.link.messages import event_reasons
from workers.kubecontainer.mounted_volume import VolumeError
from workers.sync.run import SyncRun
from workers.userns.steps.group import give_to_group
from workers.userns.steps.user import give_to_user
from workers.userns.unshare import Step, Unshare, UnshareError
from workers.volumemanager.plugins.payload import FileProjection
from workers.volumemanager.plugins.places import VolumeDirectory

ON_ROOT_MISMATCH: Final = "OnRootMismatch"
DEADLINE_S: Final = 600.0
"""Deadline for all files of a volume, in seconds. Files that were changed by then stay changed for the next sync."""
MAX_NOTE_BYTES: Final = 4096
"""Most that is read of a file beside a volume."""
FIRST_PROGRESS_S: Final = 30.0
PROGRESS_PERIOD_S: Final = 60.0
"""Time until the first event about a change that takes long, and between further ones, in seconds."""
_HELP: Final = (
    "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/"
    "#configure-volume-permission-and-ownership-change-policy-for-pods"
)


def fs_group(pod: Pod) -> int | None:
    return pod.spec.security_context.fs_group if pod.spec.security_context is not None else None


async def give_volume_to_group(
    run: SyncRun,
    unshare: Unshare,
    volume: str,
    path: Path,
    group: int,
    *,
    read_only: bool = False,
    only_on_root_mismatch: bool = False,
) -> None:
    """Give a path and all below it to the group; events say when that takes long. Raises VolumeError, OSError,
    SyncEnded."""
    arguments = {
        "path": await run.unless_cancelled(run.in_files, volume, _real, path),
        "gid": group,
        "read_only": read_only,
        "only_on_root_mismatch": only_on_root_mismatch,
    }
    try:
        await run.unless_cancelled(_give, run, unshare, volume, arguments)
    except UnshareError as error:
        raise VolumeError(volume, f"applyFSGroup failed for vol {volume}: {error}") from error


def _real(path: Path) -> str:
    return os.path.realpath(path)


async def _give(run: SyncRun, unshare: Unshare, volume: str, arguments: Mapping[str, object]) -> None:
    """Mirrors VolumeOwnership.monitorProgress, without the number of files. Raises UnshareError, OSError."""
    patient = msgspec.structs.replace(unshare, deadline_s=DEADLINE_S)
    steps: list[Step] = [(give_to_group.__name__, arguments)]
    # Longer than it takes itself: an earlier one, of a sync that was cancelled, may have to end first.
    work = run.in_files(volume, patient.run, steps, deadline_s=2 * DEADLINE_S)
    slow = f"Setting volume ownership for {arguments['path']} is taking longer than expected"
    words = f"{slow}, consider using {ON_ROOT_MISMATCH} - {_HELP}"
    pauses_s = itertools.chain([FIRST_PROGRESS_S], itertools.repeat(PROGRESS_PERIOD_S))
    await with_progress(work, lambda: run.event(event_reasons.VOLUME_PERMISSION_CHANGE_IN_PROGRESS, words), pauses_s)


class WrittenOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Owners of a volume whose files the agent rewrites; for `write_payload`. Blocks.

    Modes are right already. Whether the files belong to the group is known without a process: a file beside the volume
    holds the group, and files written since belong to the agent's own. Files that belong to the containers' user cannot
    be read any more: another file beside the volume holds the version's name and a digest of them.
    """

    place: VolumeDirectory
    group: int | None
    unshare: Unshare
    foreign: Mapping[str, FileProjection] = {}
    """Files of the containers' user, by path."""

    def is_owned(self, version: str) -> bool:
        """Raises OSError."""
        if self.foreign and _text(self._digest_file) != self._digest(version):
            return False
        if self.group is None:
            return True
        return group_given(self.place.ready_file) == self.group and self._has_group(version)

    def set_owner(self, version: str) -> None:
        """Give the whole volume to the group, and files to the containers' user, before that version is shown. Raises
        OSError."""
        steps = [*self._to_group(), *self._to_user(version)]
        if not steps:
            return
        try:
            self.unshare.run(steps)
        except UnshareError as error:
            raise OSError(errno.EPERM, f"applyFSGroup failed for vol {self.place.name}: {error}") from error
        if self.group is not None:
            note_group(self.place.ready_file, self.group)
        if self.foreign:
            make_private(self._digest_file.parent)
            write_regular_file(self._digest_file, self._digest(version).encode())

    def _to_group(self) -> Iterator[Step]:
        if self.group is not None:
            path = os.path.realpath(self.place.path)
            yield give_to_group.__name__, {"path": path, "gid": self.group, "read_only": True}

    def _to_user(self, version: str) -> Iterator[Step]:
        if self.foreign:
            (user,) = {file.user for file in self.foreign.values()}
            directory = os.path.realpath(self.place.path / version)
            yield give_to_user.__name__, {"directory": directory, "paths": sorted(self.foreign), "uid": user}

    @property
    def _digest_file(self) -> Path:
        return self.place.ready_file.with_name("foreign")

    def _digest(self, version: str) -> str:
        """Version's name, and SHA-256 of its files of another user."""
        digest = hashlib.sha256()
        for path, file in sorted(self.foreign.items()):
            digest.update(msgspec.json.encode((path, file.user, hashlib.sha256(file.data).hexdigest())))
        return f"{version} {digest.hexdigest()}"

    def _has_group(self, version: str) -> bool:
        """Group 0 is the agent's own (its id in Podman's user namespace)."""
        top = self.place.path / version
        below = (Path(root, name) for root, dirs, files in os.walk(top) for name in (*dirs, *files))
        return self.group == 0 or all(file.lstat().st_gid != os.getegid() for file in (top, *below))


def group_given(note: Path) -> int | None:
    """The group in a volume's ready file; None when there is none."""
    text = _text(note)
    return int(text) if text.isascii() and text.isdigit() else None


def _text(note: Path) -> str:
    """Content of a file beside a volume; empty when it cannot be read."""
    try:
        return read_regular_file(note, MAX_NOTE_BYTES).decode(errors="replace")
    except OSError:
        return ""


def note_group(note: Path, group: int | None) -> None:
    """Raises OSError."""
    make_private(note.parent)
    write_regular_file(note, b"" if group is None else str(group).encode())
