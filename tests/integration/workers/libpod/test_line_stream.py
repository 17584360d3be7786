from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Collection, Iterator

import pytest

from workers.libpod.line_stream import CLOSE_TIMEOUT_S, CLOSE_TRIES, LineStream, RawAnswer

DEADLINE_S = 5.0


class Answer:
    """An answer that sends what the test puts into it. None ends it, an exception breaks it."""

    def __init__(self) -> None:
        self.lines: queue.Queue[bytes | Exception | None] = queue.Queue()
        self.raw: RawAnswer = self
        self.closed = threading.Event()

    def iter_lines(self, chunk_size: int) -> Iterator[bytes]:
        while (line := self.lines.get(timeout=DEADLINE_S)) is not None:
            if isinstance(line, Exception):
                raise line
            yield line

    def shutdown(self) -> None:
        self.lines.put(None)

    def close(self) -> None:
        self.closed.set()


async def test_lines_come_in_order_then_the_end() -> None:
    answer = Answer()
    stream = LineStream(lambda: answer)
    for line in (b"one", b"", b"two", None):
        answer.lines.put(line)
    assert [await stream.next() for _ in range(3)] == [b"one", b"two", None]
    assert await stream.next() is None
    assert answer.closed.is_set()


async def test_a_line_wakes_who_waits() -> None:
    answer = Answer()
    stream = LineStream(lambda: answer)
    waiting = asyncio.create_task(stream.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    answer.lines.put(b"late")
    assert await asyncio.wait_for(waiting, DEADLINE_S) == b"late"
    await stream.close()


async def test_a_break_is_raised_after_the_lines_before_it() -> None:
    answer = Answer()
    stream = LineStream(lambda: answer)
    answer.lines.put(b"one")
    answer.lines.put(ConnectionResetError("gone"))
    assert await stream.next() == b"one"
    with pytest.raises(ConnectionResetError):
        await stream.next()


async def test_a_refused_connection_is_raised() -> None:
    def refuse() -> Answer:
        raise ConnectionRefusedError("nobody there")

    with pytest.raises(ConnectionRefusedError):
        await LineStream(refuse).next()


async def test_what_does_not_fit_is_dropped_and_counted() -> None:
    answer = Answer()
    stream = LineStream(lambda: answer, max_waiting_lines=2)
    for line in (b"1", b"2", b"3", b"4", b"5", None):
        answer.lines.put(line)
    assert await asyncio.to_thread(answer.closed.wait, DEADLINE_S)
    assert [await stream.next() for _ in range(3)] == [b"1", b"2", None]
    assert stream.dropped == 3


async def test_close_ends_the_thread_and_who_waits() -> None:
    answer = Answer()
    stream = LineStream(lambda: answer)
    waiting = asyncio.create_task(stream.next())
    answer.lines.put(b"open")
    assert await waiting == b"open"
    waiting = asyncio.create_task(stream.next())
    await stream.close()
    assert await waiting is None
    assert answer.closed.is_set()
    await stream.close()


async def test_close_breaks_off_the_wait_for_an_answer_that_never_begins() -> None:
    release, threads = threading.Event(), list[int]()

    def wait() -> Answer:
        threads.append(threading.get_ident())
        release.wait(DEADLINE_S)
        raise ConnectionResetError("broken off")

    def break_off(broken: Collection[int]) -> None:
        assert list(broken) == threads
        release.set()

    stream = LineStream(wait, break_off=break_off)
    await asyncio.wait_for(stream.close(), DEADLINE_S)
    assert release.is_set()
    assert await stream.next() is None


async def test_close_does_not_wait_for_ever_for_what_nothing_ends() -> None:
    release, answer = threading.Event(), Answer()

    def never() -> Answer:
        release.wait(DEADLINE_S)
        return answer

    stream = LineStream(never)
    await asyncio.wait_for(stream.close(), CLOSE_TRIES * CLOSE_TIMEOUT_S + 1.0)
    release.set()
    assert await asyncio.to_thread(answer.closed.wait, DEADLINE_S)
    assert await stream.next() is None
