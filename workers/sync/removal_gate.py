"""Gate of pods that are to be removed: how many may be down at a time before Podman has removed them.

All of them down at once would mean that Podman cleans up after the ends of the last ones while it removes the first: a
removal takes a third of a second, and a clean-up begins a second after an end (`podman.cleanupDelay`). Each clean-up
makes removals slower, so that more of them begin: beside 300 pods that went on until all were down. And a signal needs
no permit of Podman's calls, which a removal could have meanwhile. So a pod is let in by its stop signal, in the order
of the syncs, and leaves with its removal, however slow that is, or when its removal does not follow.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import Final

from ipc.link.shm.trace import TRACER

REMOVED_WITHIN_S: Final = 5.0
"""How long a pod counts after it was let in, in seconds: if its removal does not follow, or Podman hangs, others are to
get their stop signals nevertheless."""


class RemovalGate:
    """Pods that are inside, by uid. Belongs to one event loop."""

    def __init__(self, at_a_time: int) -> None:
        self._at_a_time = at_a_time
        self._inside: dict[str, asyncio.TimerHandle] = {}
        self._waiting: list[tuple[int, int, str, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()

    async def enter(self, uid: str, order: int) -> None:
        """Wait until the pod is inside, which it may be already. The lowest ``order`` is let in next."""
        if uid in self._inside or (not self._waiting and len(self._inside) < self._at_a_time):
            self._let_in(uid)
            return
        let_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (order, next(self._arrivals), uid, let_in))
        with TRACER.span("waits for removals of other pods"):
            try:
                await let_in
            except asyncio.CancelledError:
                if not let_in.cancelled():
                    self.leave(uid)  # it had been let in
                raise

    def count(self, uid: str) -> None:
        """The pod is down and about to be removed, if not by this gate: it has ended later, for itself."""
        self._let_in(uid)

    def leave(self, uid: str) -> None:
        """The pod was removed, or has not ended; it need not be inside."""
        timer = self._inside.pop(uid, None)
        if timer is not None:
            timer.cancel()
            self._serve()

    def close(self) -> None:
        """Forget all that are inside; nobody waits any more."""
        for timer in self._inside.values():
            timer.cancel()
        self._inside.clear()

    def _let_in(self, uid: str) -> None:
        if uid not in self._inside:
            self._inside[uid] = asyncio.get_running_loop().call_later(REMOVED_WITHIN_S, self.leave, uid)

    def _serve(self) -> None:
        while self._waiting and self._is_free_for(*self._waiting[0][2:]):
            _, _, uid, let_in = heapq.heappop(self._waiting)
            if not let_in.done():
                self._let_in(uid)
                let_in.set_result(None)

    def _is_free_for(self, uid: str, let_in: asyncio.Future[None]) -> bool:
        return let_in.done() or uid in self._inside or len(self._inside) < self._at_a_time
