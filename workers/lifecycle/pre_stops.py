"""preStop hooks that one worker has begun, by container: each runs once, however often its stop is begun anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ipc.link.eventloop.tasks import BackgroundTasks, Errors

MAX_KEPT: Final = 1024
"""Most hooks kept. The oldest is dropped first: at the worst it runs again."""


class PreStops:
    """Tasks of preStop hooks: a stop that is cancelled for a shorter grace period leaves its hook to the next stop.

    Different from the kubelet on purpose, which runs the hook again. The tasks end with the worker: then the hook runs
    again, as upstream.
    """

    def __init__(self) -> None:
        self._begun: dict[str, asyncio.Task[None]] = {}
        self._tasks = BackgroundTasks()

    def begin(
        self, id: str, hook: Callable[[], Coroutine[Any, Any, None]], expected: Errors = ()
    ) -> asyncio.Task[None]:
        """Task of the container's hook, begun now or earlier, perhaps ended. The caller must not cancel it.
        ``expected``: errors by which it may fail, also when its caller is gone."""
        if id not in self._begun:
            if len(self._begun) >= MAX_KEPT:
                self.forget(next(iter(self._begun)))
            self._begun[id] = self._tasks.spawn(hook(), name=f"preStop hook of {id[:12]}", expected=expected)
        return self._begun[id]

    def forget(self, id: str) -> None:
        """Drop the hook of a container that is down, or that could not be begun. A hook that still runs is
        cancelled."""
        task = self._begun.pop(id, None)
        if task is not None:
            task.cancel()
