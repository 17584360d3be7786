"""The preStop hooks that one worker has begun, by container: each runs once, however often its stop is begun anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ipc.host.tasks import BackgroundTasks, Errors

MAX_KEPT: Final = 1024
"""Hooks remembered at a time. The oldest is forgotten first: at the worst it runs again."""


class PreStops:
    """A stop that is cut short for one with a shorter grace period leaves its hook running, and the next one finds it.

    Different from the kubelet on purpose, which runs the hook again. What is kept here dies with the worker: then the
    hook runs again, as it does there.
    """

    def __init__(self) -> None:
        self._begun: dict[str, asyncio.Task[None]] = {}
        self._tasks = BackgroundTasks()

    def begin(
        self, id: str, hook: Callable[[], Coroutine[Any, Any, None]], expected: Errors = ()
    ) -> asyncio.Task[None]:
        """The hook of that container, begun now or earlier, perhaps at its end. It is not for the caller to cancel.
        ``expected``: how it may fail; nobody may be left to ask."""
        if id not in self._begun:
            if len(self._begun) >= MAX_KEPT:
                self.forget(next(iter(self._begun)))
            self._begun[id] = self._tasks.spawn(hook(), name=f"preStop hook of {id[:12]}", expected=expected)
        return self._begun[id]

    def forget(self, id: str) -> None:
        """The container is down, or its hook could not be begun. A hook that still runs is given up."""
        task = self._begun.pop(id, None)
        if task is not None:
            task.cancel()
