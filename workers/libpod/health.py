"""Knows whether Podman answers this process: watches every call, pings when one is late, keeps the breaker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.shm.breaker_state import BreakerState
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.circuit_breaker import MAX_FAILURES, Breaker

DOUBT_S: Final = 2.0
"""After so long without an answer, in seconds, a call makes us ask whether Podman lives at all: what starts or removes
a container may take its time, a ping may not."""
TRIAL_S: Final = 5.0
"""How long a call waits for the outcome of another one, the half open breaker's trial, in seconds."""
UNANSWERED: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE})

R = TypeVar("R")
T = TypeVar("T")

log = logging.getLogger(__name__)


class Listener:
    """Callbacks about the service's health. They do nothing; to be derived from."""

    def breaker_changed(self, state: BreakerState) -> None:
        """Hear the breaker's state: at the beginning, and once per change."""

    def silent(self, why: str) -> None:
        """Podman has left several pings in a row unanswered; again with every further one."""


class ServiceWatch:
    """For one event loop."""

    def __init__(self, ping: Callable[[], Awaitable[object]], break_off: Callable[[], None], listener: Listener):
        """``ping`` raises RuntimeCallError. ``break_off`` ends the calls in flight: no answer will come to them."""
        self._ping = ping
        self._break_off = break_off
        self._listener = listener
        self._breaker = Breaker()
        self._shown = BreakerState.NONE
        self._tasks = BackgroundTasks()
        self._probing: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        """A call has ended, or the state has changed."""
        self._show()

    @property
    def state(self) -> BreakerState:
        return self._breaker.state

    async def watched(self, name: str, call: Callable[[R], Awaitable[T]], request: R) -> T:
        """Result of the call, whose outcome counts. Raises UNAVAILABLE at once while the breaker is open.

        While it is half open those that come after the trial wait for its outcome, `TRIAL_S` at the longest.
        """
        if not self._breaker.admit():
            await self._admission(name)
        late = asyncio.get_running_loop().call_later(DOUBT_S, self._probe)
        try:
            result = await call(request)
        except RuntimeCallError as error:
            self._note(error)
            raise
        except BaseException:
            self._breaker.abandoned()
            raise
        else:
            self._breaker.answered()
            return result
        finally:
            late.cancel()
            self._show()
            self._settled.set()

    async def _admission(self, name: str) -> None:
        try:
            async with asyncio.timeout(TRIAL_S):
                while not self._breaker.admit():
                    if self._breaker.state is not BreakerState.HALF_OPEN:
                        break
                    self._settled.clear()
                    await self._settled.wait()
                else:
                    return
        except TimeoutError:
            log.debug("the trial takes long: as good as a service that does not answer")
        raise RuntimeCallError(ErrorKind.UNAVAILABLE, name, f"Podman does not answer: {self._breaker.why}")

    async def close(self) -> None:
        """Ping no more."""
        await self._tasks.close()

    def _note(self, error: RuntimeCallError) -> None:
        if error.kind not in UNANSWERED:
            self._breaker.answered()
        elif self._breaker.state is BreakerState.OPEN:
            self._breaker.abandoned()  # it was in flight when the breaker opened
        else:
            self._breaker.failed(error.message, late=error.kind is ErrorKind.TIMEOUT)
            self._probe()

    def _probe(self) -> None:
        if self._probing is None or self._probing.done():
            self._probing = self._tasks.spawn(self._probe_until_sure(), name="pings of Podman")

    async def _probe_until_sure(self) -> None:
        while True:
            try:
                await self._ping()
            except RuntimeCallError as error:
                self._breaker.ping_failed(error.message)
                self._show()
                if self._breaker.pings_lost >= MAX_FAILURES:
                    self._listener.silent(f"it answers no ping: {error.message}")
            else:
                self._breaker.ping_answered()
                self._show()
            if not self._breaker.needs_pings:
                return
            await asyncio.sleep(self._breaker.pause_s)

    def _show(self) -> None:
        """A log line once per change."""
        state, before = self._breaker.state, self._shown
        if state is before:
            return
        self._shown = state
        self._settled.set()
        self._listener.breaker_changed(state)
        if state is BreakerState.OPEN:
            log.log(
                logging.WARNING if before is BreakerState.CLOSED else logging.DEBUG,
                "circuit breaker open: Podman does not answer: %s",
                self._breaker.why,
            )
            self._break_off()
        elif state is BreakerState.CLOSED and before is not BreakerState.NONE:
            log.info("circuit breaker closed: Podman answers")
