"""The links between the master and its children: first in, first out, each message some time on its way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from tests.sim.loop import NOBODY

M = TypeVar("M")


class Mailbox(Generic[M]):
    """One direction of one link."""

    def __init__(self, deliver: Callable[[M], None], delay_s: Callable[[], float]) -> None:
        """``delay_s`` is asked for every message; none overtakes another."""
        self._deliver = deliver
        self._delay_s = delay_s
        self._under_way: deque[M] = deque()
        self._last_at = 0.0

    def post(self, message: M) -> None:
        loop = asyncio.get_running_loop()
        self._last_at = max(self._last_at, loop.time() + self._delay_s())
        self._under_way.append(message)
        loop.call_at(self._last_at, self._arrive, context=NOBODY)

    def __len__(self) -> int:
        return len(self._under_way)

    def cut(self, kept: int) -> None:
        """Cut the link of a dead sender: only so many still arrive."""
        while len(self._under_way) > kept:
            self._under_way.pop()

    def hold(self, delay_s: float) -> None:
        """Hold the link: what is under way takes that much longer."""
        held = tuple(self._under_way)
        self._under_way.clear()
        for message in held:
            asyncio.get_running_loop().call_later(delay_s, self._deliver, message, context=NOBODY)

    def _arrive(self) -> None:
        if self._under_way:
            self._deliver(self._under_way.popleft())
