"""Podman's pods without containers, asked for so that nobody who stops a container holds a relist.

From 5.8 on a stop keeps its pod's lock until the container has ended, and Podman takes the lock of every pod to count
its containers. So an answer that is late is that of a later relist, and this one goes by what was known. Such pods can
wait: they are what a create or remove that was interrupted has left.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ipc.link.eventloop.tasks import BackgroundTasks
from workers.kubecontainer.runtime import ListedPod, Runtime, RuntimeCallError

PATIENCE_S: Final = 1.0
"""How long a call that takes locks of pods may hold an observation, in seconds: hundreds of pods take 0.1 s."""


class EmptyPods:
    """For one event loop; one call at a time."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tasks = BackgroundTasks()
        self._asked: asyncio.Task[tuple[ListedPod, ...]] | None = None
        self._known: tuple[ListedPod, ...] = ()

    async def list(self) -> tuple[ListedPod, ...]:
        """The pods as they are now, or as they were known last where Podman does not say it in time. Raises
        RuntimeCallError."""
        if self._asked is None or self._asked.done():
            call = self._runtime.list_empty_pods()
            self._asked = self._tasks.spawn(call, name="list empty pods", expected=(RuntimeCallError,))
        asked = self._asked
        try:
            await asyncio.wait({asked}, timeout=PATIENCE_S)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        if asked.done():
            self._known = asked.result()
        return self._known

    def close(self) -> None:
        """Break off a call that is under way."""
        self._tasks.cancel()
