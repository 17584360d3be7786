"""Background tasks: the one way to start work without awaiting it at once, and to run several things at a time.

asyncio drops a task without a reference, and hides its exception until the task is awaited. So every task here has a
name, and an owner that refers to it. An exception that the owner does not expect is logged with that name and counted.
Then the task starts again (`restarted`), or its dependents fail (``on_failure``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, Final, TypeVar

from ipc.link.eventloop.backoff import Backoff
from ipc.link.eventloop.loop_clock import loop_time
from ipc.link.eventloop.shortages import is_shortage

RESTARTS: Final = Backoff(0.5, 30.0)
"""Before a task that failed is begun again. One that has run for longer than the longest pause begins with the shortest
one."""

T = TypeVar("T")
Errors = tuple[type[BaseException], ...]
OnFailure = Callable[[BaseException], object]
"""Called with an unexpected exception, once it is logged and counted."""

log = logging.getLogger(__name__)


class FailureCount:
    """How many unexpected exceptions have ended a task, a restarted one's included."""

    value = 0


FAILURES: Final = FailureCount()
"""Failures of this process; a worker shows the number in its row of the board."""


def note_failure(name: str, error: BaseException, level: int = logging.ERROR) -> None:
    """Log an unexpected exception with its traceback, and count it; a shortage is no fault of the code's."""
    FAILURES.value += 1
    if is_shortage(error):
        log.log(level, "%s: %s", name, error)
    else:
        log.log(level, "unexpected error in %s", name, exc_info=error)


class FailureLog:
    """Notes the unexpected exceptions of something that is done again and again: the same one in a row is logged
    once, and counted each time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._newest = ""

    def note(self, error: BaseException) -> bool:
        """True when it is news."""
        before, self._newest = self._newest, repr(error)
        is_news = before != self._newest
        note_failure(self._name, error, logging.ERROR if is_news else logging.DEBUG)
        return is_news

    def succeeded(self) -> None:
        """The next one is news again."""
        self._newest = ""


def ignored(_: BaseException) -> None:
    """The ``on_failure`` of a task on which nothing depends."""


class BackgroundTasks:
    """The tasks of one owner."""

    def __init__(self, on_failure: OnFailure = ignored) -> None:
        """``on_failure`` is that of every task which does not bring its own."""
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[Any]] = set()

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """Iterate over the tasks that have not ended."""
        return iter(tuple(self._tasks))

    def spawn(
        self,
        work: Coroutine[Any, Any, T],
        *,
        name: str,
        expected: Errors = (),
        on_failure: OnFailure | None = None,
    ) -> asyncio.Task[T]:
        """Begin the work. ``expected`` exceptions are for those who await the task, if any: they are no failures."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)

        def ended(_: asyncio.Task[T]) -> None:
            self._tasks.discard(task)
            error = _error_of(task)
            if error is not None and not isinstance(error, expected):
                note_failure(name, error)
                (on_failure or self._on_failure)(error)

        task.add_done_callback(ended)
        return task

    def cancel(self) -> None:
        """Break off everything."""
        for task in self:
            task.cancel()

    async def close(self) -> None:
        """Break off everything, and wait until it has cleaned up."""
        tasks = tuple(self)
        self.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _error_of(task: asyncio.Task[Any]) -> BaseException | None:
    """None as well for a task that somebody has cancelled."""
    if not task.cancelled():
        return task.exception()
    return None if task.cancelling() else asyncio.CancelledError("nobody has cancelled it")


async def restarted(begin: Callable[[], Awaitable[T]], *, name: str, on_failure: OnFailure = ignored) -> T:
    """Result of ``begin()``; after an exception it is begun again, as often as it takes.

    The same exception several times in a row is logged once.
    """
    in_a_row, failures = 0, FailureLog(name)
    while True:
        began_at = loop_time()
        try:
            return await begin()
        except Exception as error:
            if loop_time() - began_at > RESTARTS.max_s:
                in_a_row = 0
                failures.succeeded()
            failures.note(error)
            on_failure(error)
        in_a_row += 1
        await asyncio.sleep(RESTARTS.pause_s(in_a_row))


async def first_of(*contenders: Awaitable[T]) -> T:
    """Run all; the outcome of the first that ends, of several at once the leftmost. The others are cancelled, and have
    cleaned up when this returns."""
    tasks = [asyncio.ensure_future(contender) for contender in contenders]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        await _break_off(tasks)
        tasks, done = [], set()  # they have the exception whose traceback has this frame: a cycle


async def with_progress(work: Awaitable[T], tell: Callable[[], Awaitable[None]], pauses_s: Iterable[float]) -> T:
    """The outcome of something that takes long; ``tell()`` after each of the endless ``pauses_s`` while it does."""
    task = asyncio.ensure_future(work)
    pauses = iter(pauses_s)
    try:
        while not (await asyncio.wait({task}, timeout=next(pauses)))[0]:
            await tell()
        return task.result()
    finally:
        await _break_off([task])


async def to_the_end(work: Awaitable[T]) -> T:
    """The outcome of what must not be broken off: whoever is cancelled waits for its end first."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def first_error(error: BaseException) -> BaseException:
    """The first exception of a group, of whatever depth; the exception itself when it is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _break_off(tasks: Iterable[asyncio.Future[Any]]) -> None:
    every = tuple(tasks)
    for task in every:
        task.cancel()
    await asyncio.gather(*every, return_exceptions=True)
