"""Bounded work of many: who takes all that there is keeps nobody else from what is its own."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial

Release = Callable[[], None]
"""To be called once, when the work is over."""

_Waiter = asyncio.Future[Release]
_Waiters = OrderedDict[_Waiter, None]


class KeyedLimiter:
    """Every key has ``own`` permits, which nobody else can take; beyond those there are ``common`` ones for all.

    Unlike a semaphore: work that hangs for as long as it may, of one key, leaves the others theirs. Belongs to the
    running loop.
    """

    def __init__(self, *, own: int, common: int) -> None:
        self._own = own
        self._common = common
        """How many are left."""
        self._taken: Counter[str] = Counter()
        """Own ones, by key."""
        self._waiting: _Waiters = OrderedDict()
        self._waiting_of: dict[str, _Waiters] = {}
        """Waiters of each key, longest first."""

    async def acquire(self, key: str) -> Release:
        """Wait for a permit."""
        if self._taken[key] < self._own:
            self._taken[key] += 1
            return partial(self._release_own, key)
        if self._common:
            self._common -= 1
            return self._release_common
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        of_key = self._waiting_of.setdefault(key, OrderedDict())
        self._waiting[waiter] = of_key[waiter] = None
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                waiter.result()()  # it came in this moment
            raise
        finally:
            del self._waiting[waiter], of_key[waiter]
            if not of_key and self._waiting_of.get(key) is of_key:
                del self._waiting_of[key]

    def _release_own(self, key: str) -> None:
        if _hand_on(self._waiting_of.get(key), partial(self._release_own, key)):
            return
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]

    def _release_common(self) -> None:
        if not _hand_on(self._waiting, self._release_common):
            self._common += 1


def _hand_on(waiting: _Waiters | None, permit: Release) -> bool:
    """Give a permit to who waits longest; whether anybody waits. Those that got one in this moment are still there."""
    waiter = next((each for each in waiting or () if not each.done()), None)
    if waiter is not None:
        waiter.set_result(permit)
    return waiter is not None
