"""What a sync does about processes that have outlived their container (`workers.container_marks`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ipc.runtime import RuntimeContainerStatus
from workers.container_marks import ContainerMark, container_mark, end_marked
from workers.sync_context import SyncEnded, SyncRun

STRAYS_ERROR: Final = "EndStraysError"


async def end_strays(
    run: SyncRun, ended: Iterable[RuntimeContainerStatus], others: Iterable[RuntimeContainerStatus] = ()
) -> None:
    """Of containers that have ended. Raises SyncEnded.

    ``others`` keep what they have, also when somebody has made a copy of one of them, and that has ended.
    """
    marks = _marks(run.pod.uid, ended) - _marks(run.pod.uid, others)
    if not marks:
        return
    try:
        number = await asyncio.to_thread(end_marked, marks)
    except OSError as error:
        raise SyncEnded(STRAYS_ERROR, f"processes of containers that have ended: {error}") from error
    if number:
        run.did(f"ended {number} processes that containers had left")


def _marks(uid: str, containers: Iterable[RuntimeContainerStatus]) -> set[ContainerMark]:
    return {container_mark(uid, c.name, c.attempt) for c in containers if c.leaves_processes}
