"""A unit test is a computation: no socket, no thread, no process. Whoever needs one is in tests/integration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

import pytest

OUTSIDE: Final = {
    "socket.__new__": "a socket",
    "_thread.start_new_thread": "a thread",
    "_thread.start_joinable_thread": "a thread",
    "subprocess.Popen": "a subprocess",
    "os.posix_spawn": "a subprocess",
    "os.fork": "a fork",
    "os.forkpty": "a fork",
}
"""Audit event of the interpreter -> what would be made."""
LOOP: Final = frozenset({("asyncio.selector_events", "_make_self_pipe")})
"""(module, function) that may: the event loop wakes itself through a socket pair."""


class _Guard:
    """While it watches, none of `OUTSIDE` is made, and it keeps what was tried: somebody may have caught the error."""

    def __init__(self) -> None:
        self.watches = False
        self.tried: list[str] = []

    def hook(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if not self.watches or event not in OUTSIDE or _is_loop(sys._getframe(1)):
            return
        self.tried.append(f"makes {OUTSIDE[event]} ({event}): it belongs in tests/integration")
        raise RuntimeError(f"a unit test {self.tried[-1]}")


def _is_loop(frame: FrameType | None) -> bool:
    while frame is not None:
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) in LOOP:
            return True
        frame = frame.f_back
    return False


_GUARD: Final = _Guard()
sys.addaudithook(_GUARD.hook)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Fixtures are part of a test."""
    _GUARD.watches = True
    try:
        return (yield)
    finally:
        _GUARD.watches = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """What was tried fails the test, whoever caught the error."""
    try:
        return (yield)
    finally:
        tried, _GUARD.tried = _GUARD.tried, []
        if tried:
            pytest.fail(f"the test {tried[0]}", pytrace=False)
