"""The preStop hooks that one worker has begun, by container: each runs once, however often its stop is begun anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

MAX_KEPT: Final = 1024
"""Hooks remembered at a time. The oldest is forgotten first: at the worst it runs again."""


class PreStops:
    """A stop that is cut short for one with a shorter grace period leaves its hook running, and the next one finds it.

    Different from the kubelet on purpose, which runs the hook again. What is kept here dies with the worker: then the
    hook runs again, as it does there.
    """

    def __init__(self) -> None:
        self._begun: dict[str, asyncio.Task[None]] = {}

    def begin(self, id: str, hook: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """The hook of that container, begun now or earlier, perhaps at its end. It is not for the caller to cancel."""
        if id not in self._begun:
            if len(self._begun) >= MAX_KEPT:
                self.forget(next(iter(self._begun)))
            self._begun[id] = asyncio.get_running_loop().create_task(hook())
            # Nobody may be left to ask how it ended.
            self._begun[id].add_done_callback(_look_at_error)
        return self._begun[id]

    def forget(self, id: str) -> None:
        """The container is down, or its hook could not be begun. A hook that still runs is given up."""
        task = self._begun.pop(id, None)
        if task is not None:
            task.cancel()


def _look_at_error(task: asyncio.Task[None]) -> None:
    """Asyncio would log an exception that nobody has asked for."""
    if not task.cancelled():
        task.exception()
