"""Every call of a Runtime as a span of a trace. Off, a call costs one look at an attribute more."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, cast

from ipc.shm.trace import TRACER
from workers.kubecontainer.runtime import Runtime


def traced(runtime: Runtime) -> Runtime:
    """The same runtime. What it does for a pod is told as that of the task's pod (`ipc.shm.trace.Tracer.of`)."""
    return cast(Runtime, _Traced(runtime))


class _Traced:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __getattr__(self, name: str) -> Any:
        """The verb itself, or while a trace is under way one that tells its time."""
        verb = getattr(self._runtime, name)
        return _told(name, verb) if TRACER.on and inspect.iscoroutinefunction(verb) else verb


def _told(name: str, verb: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    words = f"Podman: {name.replace('_', ' ')}"

    async def call(*args: Any, **kwargs: Any) -> Any:
        with TRACER.span(words):
            return await verb(*args, **kwargs)

    return call
