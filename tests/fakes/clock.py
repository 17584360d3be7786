"""Simulated time: an event loop whose clock jumps to the next timer as soon as nothing else can happen.

Everything that waits through asyncio (``sleep``, ``timeout``, ``call_later``) waits in simulated time, so a test of
hours takes milliseconds and the order of timers is the same in every run. What is done in threads happens at once:
no time passes meanwhile.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import heapq
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, ParamSpec, TypeVar

from ipc.host.clock import Instant

START_MONO = 1000.0
"""Reading of the simulated CLOCK_MONOTONIC at the start, in seconds."""
START_WALL = 1_800_000_000.0
"""Reading of the simulated wall clock at the start, in epoch seconds."""
STUCK_S = 10.0
"""Real seconds to wait for I/O with no timer set before the simulation is called stuck."""

RESOLUTION_S = 1e-7
"""Timers that are due within this run now. Larger than the steps of a float that holds three years in seconds: with
asyncio's own nanosecond a rounded sum could stand before its timer for ever."""
MANY_TIMERS = 100
"""From which on cancelled ones are looked for, as asyncio has it."""
LONGEST_STEP_S = 24 * 3600.0
"""How far the clock jumps at most, in seconds, as asyncio sleeps no longer at a time."""

P = ParamSpec("P")
T = TypeVar("T")


class _Handle(asyncio.TimerHandle):
    """A callback, cheaper to make than asyncio's: the simulation makes thousands for each second of its own."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._when = when
        self._callback, self._args, self._loop = callback, args, loop
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled = self._scheduled = False
        self._source_traceback = self._repr = None


class _Due(float):
    """When a timer is due: compares as the number that it is, without a call into Python."""

    __slots__ = ("handle",)
    handle: _Handle


class SimLoop(asyncio.SelectorEventLoop):
    """An event loop in simulated time, with one thread only.

    It runs callbacks in the very order of `asyncio.BaseEventLoop`, without what is of no use to a simulation: checks
    for debug mode, a search for slow callbacks, and sleep.
    """

    # Attributes that `asyncio.BaseEventLoop` has, and typeshed does not say.
    _ready: deque[asyncio.Handle]
    _stopping: bool
    _selector: selectors.BaseSelector
    _timer_cancelled_count: int
    _process_events: Callable[[list[tuple[selectors.SelectorKey, int]]], None]

    def __init__(self) -> None:
        self._mono = START_MONO
        super().__init__()
        self._timers: list[_Due] = []
        """A heap."""

    def time(self) -> float:
        return self._mono

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = _Handle(0.0, callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        due = _Due(when)
        due.handle = handle = _Handle(when, callback, args, self, context)
        handle._scheduled = True
        heapq.heappush(self._timers, due)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._mono + delay, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _run_once(self) -> None:
        """Run the callbacks that are ready, that I/O has made ready, and that are due then."""
        self._drop_cancelled()
        ready, timers = self._ready, self._timers
        wait_s = 0.0 if ready or self._stopping else timers[0] - self._mono if timers else None
        if events := self._selector.select(STUCK_S if wait_s is None else 0.0):
            self._process_events(events)
        elif wait_s is None:
            raise RuntimeError(f"the simulation is stuck: no timer is set and no I/O came within {STUCK_S} s")
        elif wait_s > 0.0:
            self._mono += min(wait_s, LONGEST_STEP_S)
        end_at = self._mono + RESOLUTION_S
        while timers and timers[0] < end_at:
            ready.append(self._pop())
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _drop_cancelled(self) -> None:
        """From the head, and from everywhere when they are most."""
        timers = self._timers
        if len(timers) > MANY_TIMERS and self._timer_cancelled_count > len(timers) / 2:
            for due in timers:
                due.handle._scheduled = not due.handle._cancelled
            timers[:] = [due for due in timers if not due.handle._cancelled]
            heapq.heapify(timers)
            self._timer_cancelled_count = 0
        while timers and timers[0].handle._cancelled:
            self._timer_cancelled_count -= 1
            self._pop()

    def _pop(self) -> _Handle:
        handle = heapq.heappop(self._timers).handle
        handle._scheduled = False
        return handle


class HandClock:
    """A clock that stands still until a test moves it. Both times are in seconds."""

    def __init__(self, *, mono: float = 1000.0, wall: float = 1000.0) -> None:
        self.mono = mono
        self.wall = wall

    def now(self) -> Instant:
        return Instant(mono=self.mono, wall=self.wall)


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


def simulated(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test in simulated time."""

    @functools.wraps(test)
    def run(*args: P.args, **keywords: P.kwargs) -> None:
        simulate(lambda: test(*args, **keywords))

    return run
