"""A unit test is a computation: no socket, no thread, no process. Whoever needs one is in tests/integration."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

OUTSIDE: Final = {
    "socket.__new__": "a socket",
    "subprocess.Popen": "a subprocess",
    "os.posix_spawn": "a subprocess",
    "os.fork": "a fork",
    "os.forkpty": "a fork",
}
"""Audit event of the interpreter -> what would be made."""
HERE: Final = Path(__file__).parent
LOOP: Final = ("asyncio.selector_events", "_make_self_pipe")
"""Module and function that may: the event loop wakes itself through a socket pair."""


class _Guard:
    """While it watches, none of that is made, and it keeps what was tried: somebody may have caught the error."""

    def __init__(self) -> None:
        self.watches = False
        self.tried: list[str] = []

    def hook(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if self.watches and event in OUTSIDE and not _is_loop(sys._getframe(1)):
            self.refuse(OUTSIDE[event])

    def refuse(self, what: str) -> None:
        """Raises RuntimeError."""
        self.tried.append(f"makes {what}: it belongs in tests/integration")
        raise RuntimeError(f"a unit test {self.tried[-1]}")


def _is_loop(frame: FrameType | None) -> bool:
    while frame is not None:
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) == LOOP:
            return True
        frame = frame.f_back
    return False


_GUARD: Final = _Guard()
_START: Final = threading.Thread.start


def _start(thread: threading.Thread) -> None:
    if _GUARD.watches:
        _GUARD.refuse("a thread")
    _START(thread)


sys.addaudithook(_GUARD.hook)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fixtures are part of a test. pytest asks here for the tests of other directories too."""
    if not item.path.is_relative_to(HERE):
        return (yield)
    _GUARD.watches = True
    try:
        # Threads have an audit event from Python 3.12 on only.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", _start)
            return (yield)
    finally:
        _GUARD.watches = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """An attempt fails the test, whoever caught the error. With the last unit test of a process, fixtures of other
    directories' tests may end."""
    if nextitem is None or not nextitem.path.is_relative_to(HERE):
        _GUARD.watches = False
    try:
        return (yield)
    finally:
        tried, _GUARD.tried = _GUARD.tried, []
        if tried:
            pytest.fail(f"the test {tried[0]}", pytrace=False)
