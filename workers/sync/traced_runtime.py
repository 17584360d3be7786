"""Every call of a Runtime counted (`ipc.link.metrics`), and as a span of a trace while there is one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, cast

from ipc.host.clock import monotonic
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from ipc.link.shm.trace import TRACER
from workers.kubecontainer.runtime import ErrorKind, Runtime, RuntimeCallError

Verb = Callable[..., Coroutine[Any, Any, Any]]


def traced(runtime: Runtime) -> Runtime:
    """The same runtime. What it does for a pod is told as that of the task's pod (`ipc.link.shm.trace.Tracer.of`)."""
    return cast(Runtime, _Traced(runtime))


class _Traced:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __getattr__(self, name: str) -> Any:
        """The verb, made into one that is told about; asked for once."""
        verb = getattr(self._runtime, name)
        if inspect.iscoroutinefunction(verb):
            operation = metrics.RUNTIME_OPERATIONS.get(name)
            verb = _counted(name, operation, verb) if operation else _reported(name, verb)
        setattr(self, name, verb)
        return verb


def _words(name: str) -> str:
    return f"Podman: {name.replace('_', ' ')}"


def _reported(name: str, verb: Verb) -> Verb:
    words = _words(name)

    async def call(*args: Any, **kwargs: Any) -> Any:
        with TRACER.span(words):
            return await verb(*args, **kwargs)

    return call


def _counted(name: str, operation: str, verb: Verb) -> Verb:
    """`_reported`, and counted: recordOperation and recordError (pkg/kubelet/kuberuntime/instrumented_services.go)."""
    words = _words(name)
    calls = METERS.counter(metrics.RUNTIME_OPERATIONS_TOTAL, operation)
    errors = METERS.counter(metrics.RUNTIME_OPERATIONS_ERRORS, operation)
    durations = METERS.histogram(metrics.RUNTIME_OPERATIONS_DURATION, operation)

    async def call(*args: Any, **kwargs: Any) -> Any:
        began = monotonic()
        calls.inc()
        try:
            with TRACER.span(words):
                return await verb(*args, **kwargs)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                errors.inc()
            raise
        finally:
            durations.observe(monotonic() - began)

    return call
