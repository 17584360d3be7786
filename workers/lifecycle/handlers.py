"""Runs one lifecycle handler in a container: exec, httpGet or sleep.

Mirrors handlerRunner.Run (pkg/kubelet/lifecycle/handlers.go). Output of a hook is never logged or sent: it may hold
secrets.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ipc.k8s.api.v1.probe import ExecAction, HTTPGetAction, LifecycleHandler
from ipc.link.eventloop.tasks import note_failure
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.lifecycle.http_hook import HttpHookClient, HttpHookFailed
from workers.lifecycle.pre_stops import PreStops
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun

MAX_HOOK_S: Final = 86_400.0
"""Deadline of a hook's call, in seconds: hooks have no timeout of their own."""

_INVALID: Final = "invalid handler"
"""Upstream's message, for tcpSocket too."""


class HookTarget(msgspec.Struct, frozen=True):
    """The container in which a hook runs."""

    id: str
    name: str


class HookFailed(Exception):
    """The hook failed or could not be run. The message has no output of it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class HandlerRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Runs the lifecycle handlers of one worker's containers (HandlerRunner, pkg/kubelet/container/runtime.go)."""

    http: HttpHookClient
    pre_stops: PreStops = msgspec.field(default_factory=PreStops)
    """The preStop hooks that have begun."""

    async def run(self, run: SyncRun, handler: LifecycleHandler, target: HookTarget) -> None:
        """Return when the hook has done its work.

        May be cancelled: then a command is left to end with its container. Raises HookFailed, and SyncEnded when the
        runtime does not answer. An unexpected error is a failure of the hook, too.
        """
        try:
            await self._run(run, handler, target)
        except (HookFailed, SyncEnded):
            raise
        except Exception as error:
            note_failure(f"hook of container {target.id[:12]}", error)
            raise HookFailed(f"hook of container {target.name}: {type(error).__name__}") from error

    async def _run(self, run: SyncRun, handler: LifecycleHandler, target: HookTarget) -> None:
        if handler.exec is not None:
            await _exec(run, handler.exec, target)
        elif handler.sleep is not None:
            await _sleep(handler.sleep.seconds)
        elif handler.http_get is not None:
            await self._http_get(run, handler.http_get, target)
        else:
            raise HookFailed(f"hook of container {target.name}: {_INVALID}")

    async def _http_get(self, run: SyncRun, action: HTTPGetAction, target: HookTarget) -> None:
        try:
            await self.http.get(run, action, target.name, target.id, MAX_HOOK_S)
        except HttpHookFailed as error:
            raise HookFailed(f"httpGet hook of container {target.name}: {error}") from error
        except RuntimeCallError as error:
            raise HookFailed(f"httpGet hook of container {target.name} did not run: {error.kind}") from error


async def _sleep(seconds: float) -> None:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        METERS.counter(metrics.SLEEPS_CUT_SHORT).inc()
        raise


async def _exec(run: SyncRun, action: ExecAction, target: HookTarget) -> None:
    try:
        result = await run.runtime.exec_container(target.id, action.command, MAX_HOOK_S)
    except RuntimeCallError as error:
        if error.kind is ErrorKind.UNAVAILABLE:
            raise SyncEnded(SyncError.UNAVAILABLE, str(error)) from error
        raise HookFailed(f"exec hook of container {target.name} did not run: {error.kind}") from error
    if result.exit_code:
        raise HookFailed(f"exec hook of container {target.name} ended with exit code {result.exit_code}")
