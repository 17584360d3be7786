"""An HTTP answer of unknown length, part by part, from a blocking client into asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Final, Protocol

MAX_WAITING_LINES: Final = 10_000
"""Most lines that were read and not yet fetched; what comes beyond them is dropped and counted."""
READ_BYTES: Final = 64 * 1024
"""Most that is taken from the answer at a time, in bytes. Less is passed on as soon as it is there."""
CLOSE_TIMEOUT_S: Final = 1.0
"""How long ``close`` waits for the reading thread, in seconds, each time that it tries."""
CLOSE_TRIES: Final = 2


class RawAnswer(Protocol):
    """The part of urllib3's HTTPResponse (2.3 and later) that is used."""

    def shutdown(self) -> None:
        """End reading, now and for good, from any thread."""


class StreamAnswer(Protocol):
    """The part of requests' Response that is used."""

    raw: RawAnswer

    def iter_lines(self, chunk_size: int) -> Iterator[bytes]: ...

    def close(self) -> None: ...


def lines(answer: StreamAnswer, read_bytes: int) -> Iterator[bytes]:
    """An answer's lines."""
    return answer.iter_lines(chunk_size=read_bytes)


class LineStream:
    """Lines of one answer. A daemon thread of its own blocks in ``connect`` and in reading; the loop never does."""

    def __init__(
        self,
        connect: Callable[[], StreamAnswer],
        max_waiting_lines: int = MAX_WAITING_LINES,
        read: Callable[[StreamAnswer, int], Iterator[bytes]] = lines,
        break_off: Callable[[Collection[int]], None] = lambda threads: None,
    ) -> None:
        """Start reading. ``connect`` is called in the thread; ``break_off`` makes it fail there, from another one.

        ``read`` cuts the answer into parts, of which it takes at most so many bytes at a time: lines, or others.
        """
        self.dropped = 0
        """Lines that found the queue full."""
        self._connect = connect
        self._parts = read
        self._break_off = break_off
        self._max_waiting_lines = max_waiting_lines
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._lines: deque[bytes] = deque()
        self._answer: StreamAnswer | None = None
        self._failure: Exception | None = None
        self._closed = False
        self._ended = False
        self._wake_due = False
        self._arrival = asyncio.Event()
        self._finished = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="line-stream", daemon=True)
        self._thread.start()

    async def next(self) -> bytes | None:
        """The next line; None when the stream has ended. Raises what ``connect`` or reading raised."""
        while True:
            with self._lock:
                if self._lines:
                    return self._lines.popleft()
                if self._ended and self._failure is not None and not self._closed:
                    raise self._failure
                if self._ended:
                    return None
                self._arrival.clear()
            await self._arrival.wait()

    async def close(self) -> None:
        """End the stream and its thread, also one that still waits for the answer's head."""
        for _ in range(CLOSE_TRIES):
            self._end()
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._finished.wait()
                return
            except TimeoutError:
                continue  # It was about to send its request, or nothing ends it: a daemon cannot keep the process.

    def _end(self) -> None:
        with self._lock:
            self._closed = True
            answer = self._answer
        if answer is not None:
            _shut_down(answer)
        elif self._thread.ident is not None:
            self._break_off((self._thread.ident,))

    # --- in the thread ---

    def _run(self) -> None:
        failure: Exception | None = None
        try:
            self._read(self._connect())
        except Exception as error:
            failure = error  # Whatever it is, it belongs to whoever waits for lines.
        with self._lock:
            self._failure = failure
            self._ended = True
        self._call_loop(self._finish)

    def _read(self, answer: StreamAnswer) -> None:
        with self._lock:
            self._answer = answer
            closed = self._closed
        try:
            if not closed:
                for line in self._parts(answer, READ_BYTES):
                    self._keep(line)
        finally:
            answer.close()

    def _keep(self, line: bytes) -> None:
        if not line:
            return
        with self._lock:
            if len(self._lines) >= self._max_waiting_lines:
                self.dropped += 1
                return
            self._lines.append(line)
            wake, self._wake_due = not self._wake_due, True
        if wake:
            self._call_loop(self._wake)

    def _call_loop(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            return  # The loop is closed: nobody waits any more.

    # --- in the loop ---

    def _wake(self) -> None:
        with self._lock:
            self._wake_due = False
        self._arrival.set()

    def _finish(self) -> None:
        self._arrival.set()
        self._finished.set()


def _shut_down(answer: StreamAnswer) -> None:
    try:
        answer.raw.shutdown()
    except (RuntimeError, ValueError, OSError):
        return  # The answer ended by itself a moment ago: its connection is gone or back in the pool.
