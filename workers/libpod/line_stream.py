"""Lines that a blocking client reads, in a thread of its own, into asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

MAX_WAITING_LINES: Final = 10_000
"""Most lines that were read and not yet fetched; what comes beyond them is dropped."""
CLOSE_TIMEOUT_S: Final = 1.0
"""How long ``close`` waits for the reading thread, in seconds, each time that it tries."""
CLOSE_TRIES: Final = 2


class LineStream:
    """Lines of one answer. A daemon thread blocks in reading; the loop never does."""

    def __init__(
        self,
        read: Callable[[], Iterable[bytes]],
        break_off: Callable[[], None],
        max_waiting_lines: int = MAX_WAITING_LINES,
    ) -> None:
        """Start reading: ``read`` is called in the thread, ``break_off`` makes it end there, from another one."""
        self._read = read
        self._break_off = break_off
        self._max_waiting_lines = max_waiting_lines
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._lines: deque[bytes] = deque()
        self._failure: Exception | None = None
        self._closed = False
        self._ended = False
        self._wake_due = False
        self._arrival = asyncio.Event()
        self._finished = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="line-stream", daemon=True)
        self._thread.start()

    async def next(self) -> bytes | None:
        """The next line; None when the stream has ended. Raises what reading raised."""
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
        self._closed = True
        for _ in range(CLOSE_TRIES):
            self._break_off()
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._finished.wait()
                return
            except TimeoutError:
                continue  # The thread was about to send its request, or nothing ends it: no daemon keeps the process.

    # --- in the thread ---

    def _run(self) -> None:
        failure: Exception | None = None
        try:
            for line in self._read():
                self._keep(line)
        except Exception as error:
            failure = error  # Any error belongs to those who wait for lines.
        with self._lock:
            self._failure = failure
            self._ended = True
        self._call_loop(self._finish)

    def _keep(self, line: bytes) -> None:
        if not line:
            return
        with self._lock:
            if len(self._lines) >= self._max_waiting_lines:
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
