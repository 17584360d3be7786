"""Tears down a pod's volumes, also after a crash, without following links or mounts out of them.

Mirrors the volume manager's unmounting for a pod that has come to its end (pkg/kubelet/volumemanager, WaitForUnmount).
Different on purpose: it does not read what was set up, but removes every directory that is there.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from ipc.link.messages import event_reasons
from workers.fs.directories import is_name
from workers.fs.tree_removal import Stuck
from workers.kubecontainer.mounted_volume import why
from workers.sync.run import SyncRun
from workers.userns.remove import remove_below
from workers.userns.steps.mounts import let_go
from workers.userns.unshare import DEFAULT, Unshare, UnshareError
from workers.volumemanager.plugins.places import HELD, PLUGINS, VOLUMES, has_many_held, held_root
from workers.volumemanager.plugins.volume_host import VolumeHost

log = logging.getLogger(__name__)

_PARTS: Final = (HELD, VOLUMES, PLUGINS)


async def tear_down_volumes(run: SyncRun, host: VolumeHost) -> tuple[Stuck, ...]:
    """Remove all volumes of a pod whose containers are gone; those that could not be removed, each with an event."""
    host.back_off.forget(run.pod.uid)
    roots = (host.memory_dir, host.pods_dir)
    stuck = [one for root in roots for one in await _remove(run, root, host.unshare)]
    for one in stuck:
        await run.event(event_reasons.FAILED_UNMOUNT_VOLUME, f"UnmountVolume.TearDown failed: cannot remove {one}")
    return tuple(stuck)


async def _remove(run: SyncRun, root: str, unshare: Unshare) -> tuple[Stuck, ...]:
    uid = run.pod.uid
    if is_name(uid) and run.has_no_files(root, *((root, uid, part) for part in _PARTS)):
        return ()
    try:
        return await run.in_files(root, remove_volumes, root, uid, unshare)
    except OSError as error:
        return (Stuck(uid, why(error)),)


def _let_go(held: Path, unshare: Unshare) -> None:
    """Unmount all sources of a pod's mounts at once. Where that fails they go one by one, with what they lie on."""
    try:
        unshare.run([(let_go.__name__, {"directory": os.path.realpath(held)})])
    except UnshareError as error:
        log.warning("mounts below %s go one by one: %s", held, error)


def remove_volumes(root: str, uid: str, unshare: Unshare = DEFAULT) -> tuple[Stuck, ...]:
    """Remove all volumes of a pod below ``pods_dir`` or ``memory_dir``; empty stands for none. Blocks. Raises OSError.

    The uid of an orphan is an untrusted label: one that cannot be a name has no volumes.
    """
    if not root or not is_name(uid):
        return ()
    if has_many_held(root, uid):
        _let_go(held_root(root, uid), unshare)
    # First mounts of files of others; last the marks that volumes are complete.
    return tuple(one for name in _PARTS for one in remove_below(root, uid, name, unshare=unshare))
