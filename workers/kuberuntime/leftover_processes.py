"""What a sync does about processes that have outlived their container (`workers.proc.container_tags`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ipc.kubecontainer.pod_status import RuntimeContainerStatus
from ipc.messages.sync_error import SyncError
from workers.proc.container_tags import ContainerTag, container_tag, end_tagged
from workers.sync.context import SyncEnded, SyncRun


async def end_leftover_processes(
    run: SyncRun, ended: Iterable[RuntimeContainerStatus], others: Iterable[RuntimeContainerStatus] = ()
) -> None:
    """Of containers that have ended. Raises SyncEnded.

    All of /proc is read for that, but not again for an end after which nothing was found: what has a mark has it from
    another that has. ``others`` keep what they have, also when somebody has made a copy of one of them, and that has
    ended.
    """
    uid = run.pod.uid
    spared = {_tag(uid, container) for container in others}
    leaving = [container for container in ended if container.leaves_processes and _tag(uid, container) not in spared]
    if run.context.settled_ends.has(uid, leaving):
        return
    try:
        number = await asyncio.to_thread(end_tagged, {_tag(uid, container) for container in leaving})
    except OSError as error:
        raise SyncEnded(SyncError.LEFTOVER_PROCESSES, f"processes of containers that have ended: {error}") from error
    if number:
        run.did(f"ended {number} processes that containers had left")
    else:
        run.context.settled_ends.add(uid, leaving)


def _tag(uid: str, container: RuntimeContainerStatus) -> ContainerTag:
    return container_tag(uid, container.name, container.attempt)
