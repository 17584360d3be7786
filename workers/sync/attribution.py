"""Attribution of every step of the event loop to the pod on whose behalf it runs, on the board.

A worker that hangs, or dies of a signal or of memory, does so within one step of one task. The master reads afterwards
whose that was, which neither a stack nor the list of syncs in flight says. Tasks inherit it with their context, so that
a command of the master is the only place where a pod is named. A step costs two stores of eight bytes more, 0.5 µs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, TypeVar

from ipc.link.shm.board import pod_digest

T = TypeVar("T")

_POD: Final[ContextVar[int]] = ContextVar("pod", default=0)
"""`pod_digest` of the pod for which the running task works."""


def attribute_tasks(loop: asyncio.AbstractEventLoop, current_pod: memoryview) -> None:
    """Have each task of the loop that is made on behalf of a pod store that pod in ``current_pod`` while it runs."""

    def make(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:
        context = options.get("context")
        pod = _POD.get() if context is None else context.get(_POD, 0)
        return asyncio.Task(_Attributed(coro, pod, current_pod) if pod else coro, loop=loop, **options)

    loop.set_task_factory(make)  # type: ignore[arg-type]


async def on_behalf_of(uid: str, work: Coroutine[Any, Any, None], current_pod: memoryview) -> None:
    """Await ``work``, attributed to that pod as are all tasks that it makes."""
    pod = pod_digest(uid)
    token = _POD.set(pod)
    try:
        await _Attributed(work, pod, current_pod)
    finally:
        _POD.reset(token)


class _Attributed(Coroutine[Any, Any, T]):
    """A coroutine, and an awaitable, that stores its pod at the begin of every step and 0 at the end."""

    __slots__ = ("_coro", "_current_pod", "_pod")

    def __init__(self, coro: Coroutine[Any, Any, T], pod: int, current_pod: memoryview) -> None:
        self._coro = coro
        self._pod = pod
        self._current_pod = current_pod

    def send(self, value: Any) -> Any:
        self._current_pod[0] = self._pod
        try:
            return self._coro.send(value)
        finally:
            self._current_pod[0] = 0

    def throw(self, typ: Any, val: Any = None, tb: TracebackType | None = None) -> Any:
        self._current_pod[0] = self._pod
        try:
            return self._coro.throw(typ) if val is None and tb is None else self._coro.throw(typ, val, tb)
        finally:
            self._current_pod[0] = 0
            typ = val = tb = None  # they are, or have, the exception whose traceback has this frame: a cycle

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def __getattr__(self, name: str) -> Any:
        """Names, frames and code of the coroutine, for tools that show tasks."""
        return getattr(self._coro, name)
