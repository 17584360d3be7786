"""What a sync does about processes that have outlived their container (`workers.container_marks`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ipc.runtime import RuntimeContainerStatus
from workers.container_marks import container_mark, end_marked
from workers.sync_context import SyncEnded, SyncRun

STRAYS_ERROR = "EndStraysError"


async def end_strays(run: SyncRun, ended: Iterable[RuntimeContainerStatus]) -> None:
    """Of containers that have ended. Raises SyncEnded."""
    marks = {container_mark(run.pod.uid, c.name, c.attempt) for c in ended if c.leaves_processes}
    if not marks:
        return
    try:
        number = await asyncio.to_thread(end_marked, marks)
    except OSError as error:
        raise SyncEnded(STRAYS_ERROR, f"processes of containers that have ended: {error}") from error
    if number:
        run.did(f"ended {number} processes that containers had left")
