"""Processes that are measured, or must not be, beside the one that measures."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import uvloop


@contextlib.contextmanager
def apart(lifecycle: Callable[[], Coroutine[Any, Any, None]]) -> Iterator[int]:
    """The pid of a process that lives that life until the block ends: its CPU time is its own."""
    pid = os.fork()
    if pid == 0:
        try:
            uvloop.run(lifecycle())
        finally:
            os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
