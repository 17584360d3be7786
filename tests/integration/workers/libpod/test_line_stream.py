from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator

import pytest

from workers.libpod.line_stream import CLOSE_TIMEOUT_S, CLOSE_TRIES, LineStream

DEADLINE_S = 30.0


class Answer:
    """An answer that sends what the test puts into it. None ends it, an exception breaks it."""

    def __init__(self) -> None:
        self.lines: queue.Queue[bytes | Exception | None] = queue.Queue()
        self.closed = threading.Event()

    def read(self) -> Iterator[bytes]:
        try:
            while (line := self.lines.get(timeout=DEADLINE_S)) is not None:
                if isinstance(line, Exception):
                    raise line
                yield line
        finally:
            self.closed.set()

    def break_off(self) -> None:
        self.lines.put(None)

    def stream(self, **options: int) -> LineStream:
        return LineStream(self.read, self.break_off, **options)


async def test_lines_come_in_order_then_the_end() -> None:
    answer = Answer()
    stream = answer.stream()
    for line in (b"one", b"", b"two", None):
        answer.lines.put(line)
    assert [await stream.next() for _ in range(3)] == [b"one", b"two", None]
    assert await stream.next() is None
    assert answer.closed.is_set()


async def test_a_line_wakes_who_waits() -> None:
    answer = Answer()
    stream = answer.stream()
    waiting = asyncio.create_task(stream.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    answer.lines.put(b"late")
    assert await asyncio.wait_for(waiting, DEADLINE_S) == b"late"
    await stream.close()


async def test_a_break_is_raised_after_the_lines_before_it() -> None:
    answer = Answer()
    stream = answer.stream()
    answer.lines.put(b"one")
    answer.lines.put(ConnectionResetError("gone"))
    assert await stream.next() == b"one"
    with pytest.raises(ConnectionResetError):
        await stream.next()


async def test_what_does_not_fit_is_dropped() -> None:
    answer = Answer()
    stream = answer.stream(max_waiting_lines=2)
    for line in (b"1", b"2", b"3", b"4", b"5", None):
        answer.lines.put(line)
    assert await asyncio.to_thread(answer.closed.wait, DEADLINE_S)
    assert [await stream.next() for _ in range(3)] == [b"1", b"2", None]


async def test_close_ends_the_thread_and_who_waits() -> None:
    answer = Answer()
    stream = answer.stream()
    waiting = asyncio.create_task(stream.next())
    answer.lines.put(b"open")
    assert await waiting == b"open"
    waiting = asyncio.create_task(stream.next())
    await stream.close()
    assert await waiting is None
    assert answer.closed.is_set()
    await stream.close()


async def test_a_read_that_fails_because_it_was_broken_off_is_an_end() -> None:
    release = threading.Event()

    def wait() -> Iterator[bytes]:
        release.wait(DEADLINE_S)
        raise ConnectionResetError("broken off")

    stream = LineStream(wait, release.set)
    await asyncio.wait_for(stream.close(), DEADLINE_S)
    assert release.is_set()
    assert await stream.next() is None


async def test_close_does_not_wait_for_ever_for_what_nothing_ends() -> None:
    release, ended = threading.Event(), threading.Event()

    def never() -> Iterator[bytes]:
        release.wait(2 * DEADLINE_S)
        ended.set()
        return iter(())

    stream = LineStream(never, lambda: None)
    await asyncio.wait_for(stream.close(), CLOSE_TRIES * CLOSE_TIMEOUT_S + DEADLINE_S)
    release.set()
    assert await asyncio.to_thread(ended.wait, DEADLINE_S)
    assert await stream.next() is None
