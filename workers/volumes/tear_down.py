"""Take away what `set_up` has made, after any crash, following nothing that leads elsewhere."""

from __future__ import annotations

import asyncio

from workers.pod_dirs import pod_directory
from workers.removing import REMOVE_ERROR
from workers.sync_context import SyncEnded, SyncRun
from workers.volumes.layout import held_directory
from workers.volumes.removal import remove


async def tear_down_volumes(run: SyncRun) -> None:
    """Of a pod whose containers are gone. Everything that can go goes; raises SyncEnded when something stays."""
    if not (run.context.pods_dir and run.pod.uid):
        return
    own = pod_directory(run.context.pods_dir, run.pod.uid)
    # First what leads to files of others, then our own, then what says that they are complete.
    places = (held_directory(run.context.pods_dir, run.pod.uid), own / "volumes", own / "plugins")
    try:
        for place in places:
            await asyncio.to_thread(remove, place, run.context.unshare)
    except OSError as error:
        raise SyncEnded(REMOVE_ERROR, f"volumes: {error}") from error
