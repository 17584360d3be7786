"""Simulated time: an event loop whose clock jumps to the next timer as soon as nothing else can happen.

Everything that waits through asyncio (``sleep``, ``timeout``, ``call_later``) waits in simulated time, so a test of
hours takes milliseconds and the order of timers is the same in every run. What is done in threads happens at once:
no time passes meanwhile.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

from ipc.host.clock import Instant

START_MONO = 1000.0
"""What the simulated CLOCK_MONOTONIC shows at the start, in seconds."""
START_WALL = 1_800_000_000.0
"""What the simulated wall clock shows at the start, in epoch seconds."""
STUCK_S = 10.0
"""Real seconds to wait for I/O with no timer set before the simulation is called stuck."""

RESOLUTION_S = 1e-7
"""Timers that are due within this run now. Larger than the steps of a float that holds three years in seconds: with
asyncio's own nanosecond a rounded sum could stand before its timer for ever."""

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Never blocks while a timer is set: passes the time to ``advance`` instead."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(STUCK_S if timeout is None else 0)
        if timeout is None and not ready:
            raise RuntimeError(f"the simulation is stuck: no timer is set and no I/O came within {STUCK_S} s")
        if timeout and not ready:
            self._advance(timeout)
        return ready


class SimLoop(asyncio.SelectorEventLoop):
    """An event loop in simulated time, with one thread only."""

    def __init__(self) -> None:
        self._mono = START_MONO
        super().__init__(_Selector(self._pass))
        self._clock_resolution = RESOLUTION_S

    def time(self) -> float:
        return self._mono

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _pass(self, seconds: float) -> None:
        self._mono += seconds


class SimClock:
    """`ipc.host.clock.Clock` that follows the running loop: simulated on a SimLoop. Its wall clock can be set."""

    def __init__(self) -> None:
        self.wall_offset_s = START_WALL - START_MONO

    def now(self) -> Instant:
        mono = asyncio.get_running_loop().time()
        return Instant(mono=mono, wall=mono + self.wall_offset_s)


def simulate(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function to its end in simulated time."""
    with asyncio.Runner(loop_factory=SimLoop) as runner:
        return runner.run(main())


def simulated(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A test without arguments, in simulated time."""

    def run() -> None:
        async def main() -> None:
            await test()

        simulate(main)

    run.__name__ = test.__name__
    return run
