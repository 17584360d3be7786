"""Ends leftover processes: those that have outlived their container (`workers.proc.container_tags`)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus
from ipc.link.messages.sync_error import SyncError
from workers.proc.container_tags import ContainerTag, container_tag, end_tagged
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun

MAX_PODS: Final = 1024
"""Most pods whose settled ends are kept. The oldest is dropped first: at the worst all processes are read again."""

_End = tuple[str, float]
"""A container's id, and when it has ended: it may be started again."""


class SettledEnds:
    """Ends of containers after which no process of them was left. Kept in memory by one worker."""

    def __init__(self) -> None:
        self._settled: dict[str, frozenset[_End]] = {}

    def has(self, uid: str, ended: Collection[RuntimeContainerStatus]) -> bool:
        """Whether all these ends of a pod's containers are settled; an end that was not observed yet is not."""
        return all(c.finished_at for c in ended) and _ends(ended) <= self._settled.get(uid, frozenset())

    def add(self, uid: str, ended: Collection[RuntimeContainerStatus]) -> None:
        """Replace the settled ends of that pod."""
        self._settled.pop(uid, None)
        if len(self._settled) >= MAX_PODS:
            del self._settled[next(iter(self._settled))]
        self._settled[uid] = _ends(ended)


def _ends(ended: Collection[RuntimeContainerStatus]) -> frozenset[_End]:
    return frozenset((container.id, container.finished_at) for container in ended)


async def end_leftover_processes(
    run: SyncRun,
    settled_ends: SettledEnds,
    ended: Iterable[RuntimeContainerStatus],
    others: Iterable[RuntimeContainerStatus] = (),
) -> None:
    """End leftover processes of containers that have ended. Raises SyncEnded.

    All of /proc is read for that, but not again for an end after which none was found: a process inherits its tag from
    another that has it. Processes of ``others`` are spared, also when an ended container is a copy of one of them.
    """
    uid = run.pod.uid
    spared = {_tag(uid, container) for container in others}
    leaving = [container for container in ended if container.leaves_processes and _tag(uid, container) not in spared]
    if settled_ends.has(uid, leaving):
        return
    try:
        number = await asyncio.to_thread(end_tagged, {_tag(uid, container) for container in leaving})
    except OSError as error:
        raise SyncEnded(SyncError.LEFTOVER_PROCESSES, f"processes of containers that have ended: {error}") from error
    if number:
        run.record.did(f"ended {number} processes that containers had left")
    else:
        settled_ends.add(uid, leaving)


def _tag(uid: str, container: RuntimeContainerStatus) -> ContainerTag:
    return container_tag(uid, container.name, container.attempt)
