"""Limiter of mutating calls: permits go first to the calls whose sync began first.

With a plain queue three hundred pods would all get their sandbox before the first of them got its container. In this
order the first are up, observed and reported while the last have not begun, for the same time in total.

The number of permits is the node's, not the worker's: `ipc.link.shm.mutation_slots`. A worker with all the work has all
the slots; of several that want more than there are each gets the next free one in its turn, because who gives a slot
back while another worker waits does not take it again.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from ipc.host.clock import monotonic
from ipc.link.metrics import rootlet as metrics
from ipc.link.shm.metric_cells import METERS
from ipc.link.shm.mutation_slots import POLL_S
from ipc.link.shm.trace import TRACER

_WAIT: Final = METERS.histogram(metrics.PERMIT_WAIT)


class Slots(Protocol):
    """`ipc.link.shm.mutation_slots.SlotMember`, or what one process has for itself."""

    wakeup: int
    """A file descriptor that becomes readable when a slot may be free; -1 when no other process has slots."""

    def acquire(self) -> bool: ...

    def release(self) -> None: ...

    def holds_all(self) -> bool: ...

    def set_waiting(self, waiting: bool) -> None: ...

    def others_wait(self) -> bool: ...

    def wake_next(self) -> None: ...

    def clear_wakeup(self) -> None: ...

    def close(self) -> None: ...


class OwnSlots:
    """Slots of a process that shares them with no other."""

    wakeup = -1

    def __init__(self, at_a_time: int) -> None:
        self._free = at_a_time

    def acquire(self) -> bool:
        if not self._free:
            return False
        self._free -= 1
        return True

    def release(self) -> None:
        self._free += 1

    def holds_all(self) -> bool:
        return not self._free

    def set_waiting(self, waiting: bool) -> None:
        """Nobody is interested."""

    def others_wait(self) -> bool:
        return False

    def wake_next(self) -> None:
        """No other process waits."""

    def clear_wakeup(self) -> None:
        """Nothing was rung."""

    def close(self) -> None:
        """Nothing is open."""


class _Permit(AbstractAsyncContextManager[None]):
    """One permit, held within a block."""

    def __init__(self, limiter: MutationLimiter, order: int) -> None:
        self._limiter = limiter
        self._order = order

    async def __aenter__(self) -> None:
        await self._limiter.take(self._order)

    async def __aexit__(self, *_: object) -> None:
        self._limiter.give()


class MutationLimiter:
    """A semaphore with an order. Belongs to one event loop."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()
        self._listening = False
        self._is_waiting = False
        """A call of this worker waits for a slot of the node's, which the others know."""
        self._poll: asyncio.TimerHandle | None = None
        """Timer meanwhile, unless all slots are this worker's."""

    def permit(self, order: int) -> AbstractAsyncContextManager[None]:
        """Hold a permit; the lowest ``order`` gets the next that is free, of equals the one that came first."""
        return _Permit(self, order)

    def close(self) -> None:
        """Give everything back and wait for nothing any more."""
        self._stop_waiting()
        if self._listening:
            asyncio.get_running_loop().remove_reader(self._slots.wakeup)
            self._listening = False
        self._slots.close()

    async def take(self, order: int) -> None:
        """Wait for a permit, as `permit` does; `give` it back."""
        if not self._waiting and not self._slots.others_wait() and self._slots.acquire():
            return
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (order, next(self._arrivals), given))
        self._wait()
        began = monotonic()
        try:
            with TRACER.span("waits for a mutation slot"):
                await given
        except asyncio.CancelledError:
            if not given.cancelled():
                self.give()  # it was ours already
            raise
        finally:
            _WAIT.observe(monotonic() - began)

    def give(self) -> None:
        """Give a permit to the next of this worker, unless another worker waits."""
        waiter = None if self._slots.others_wait() else self._next()
        if waiter is not None:
            waiter.set_result(None)
        else:
            self._slots.release()
        if not self._is_waiting:
            return
        if not self._has_waiters():
            self._stop_waiting()
        elif waiter is None:  # another worker has that one from now on
            self._poll_later()

    def _wait(self) -> None:
        """Somebody here waits. What became free before the others could know that is taken now."""
        if self._is_waiting or self._slots.wakeup < 0:
            return
        self._is_waiting = True
        self._slots.set_waiting(True)
        self._listen()
        if self._slots.others_wait():
            self._poll_later()
        else:
            self._serve()

    def _serve(self) -> None:
        """Take free slots for waiting calls; try again later while any wait."""
        while self._has_waiters() and self._slots.acquire():
            heapq.heappop(self._waiting)[2].set_result(None)
        if self._has_waiters():
            self._poll_later()
        else:
            self._stop_waiting()

    def _poll_later(self) -> None:
        self._stop_polling()
        if not self._slots.holds_all():
            self._poll = asyncio.get_running_loop().call_later(POLL_S, self._serve)

    def _stop_polling(self) -> None:
        if self._poll is not None:
            self._poll.cancel()
            self._poll = None

    def _stop_waiting(self) -> None:
        self._stop_polling()
        self._is_waiting = False
        self._slots.set_waiting(False)

    def _listen(self) -> None:
        if not self._listening:
            asyncio.get_running_loop().add_reader(self._slots.wakeup, self._rung)
            self._listening = True

    def _rung(self) -> None:
        self._slots.clear_wakeup()
        if self._has_waiters():
            self._serve()
        else:
            self._slots.wake_next()  # it was meant for somebody who has gone: the next one may want it

    def _has_waiters(self) -> bool:
        while self._waiting and self._waiting[0][2].done():
            heapq.heappop(self._waiting)
        return bool(self._waiting)

    def _next(self) -> asyncio.Future[None] | None:
        return heapq.heappop(self._waiting)[2] if self._has_waiters() else None
