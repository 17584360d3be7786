"""The command's own ends: standard streams that may block for ever, and the terminal they may be."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from typing import Any, TextIO, TypeVar

from ipc.link.wire.stream_channels import CHUNK_BYTES, TerminalSize

T = TypeVar("T")
Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class BlockingFile:
    """A descriptor that is read or written by a thread of its own, one call at a time.

    A pipe, a terminal or a file alike: none of them can be made non-blocking without doing so to everybody else who has
    it open. Nobody waits for the thread: a read that never ends does not keep the process.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def read(self) -> bytes:
        """The next at most CHUNK_BYTES; empty at the end. Raises OSError."""
        return await self._call(lambda: os.read(self.fd, CHUNK_BYTES))

    async def write(self, data: bytes) -> None:
        """All of it. Raises OSError."""
        await self._call(lambda: self._write(data))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]

    async def _call(self, function: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((loop, future, function))
        return await future

    def _work(self) -> None:
        while True:
            loop, future, function = self._jobs.get()
            try:
                settle = _settler(future, function(), None)
            except OSError as error:
                settle = _settler(future, None, error)
            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more


def _settler(future: asyncio.Future[object], result: object, error: OSError | None) -> Callable[[], None]:
    def settle() -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    return settle


def descriptor(stream: TextIO | None) -> int:
    """File descriptor of a standard stream; /dev/null for one that was closed before we began: its number is another
    file's now."""
    return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC) if stream is None else stream.fileno()


def terminal_size(fd: int) -> TerminalSize | None:
    """None when it has none, such as a serial line."""
    with contextlib.suppress(OSError):
        size = os.get_terminal_size(fd)
        return TerminalSize(size.columns, size.lines) if size.columns and size.lines else None
    return None


@contextlib.contextmanager
def raw_terminal(fd: int) -> Iterator[None]:
    """Every key goes through as it is, Ctrl-C too. Afterwards the terminal is as it was before."""
    before = termios.tcgetattr(fd)
    tty.setraw(fd, termios.TCSANOW)
    try:
        yield
    finally:
        sys.stdout.flush()
        termios.tcsetattr(fd, termios.TCSANOW, before)
