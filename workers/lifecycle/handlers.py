"""Carrying out one lifecycle handler in a container: exec, httpGet or sleep.

Mirrors handlerRunner.Run (pkg/kubelet/lifecycle/handlers.go). What a hook writes is never told: it may hold secrets.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ipc.api.v1.probe import ExecAction, HTTPGetAction, LifecycleHandler
from ipc.host.tasks import note_failure
from ipc.messages.sync_error import SyncError
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.lifecycle.http_hook import HttpHookFailed, run_http_hook
from workers.sync.context import SyncEnded, SyncRun

MAX_HOOK_S: Final = 86_400.0
"""A hook has no timeout of its own, but a call needs a deadline: a day, in seconds."""

_INVALID: Final = "invalid handler"
"""Upstream's word, for tcpSocket too."""


class HookTarget(msgspec.Struct, frozen=True):
    """The container in which a hook runs."""

    id: str
    name: str


class HookFailed(Exception):
    """The hook failed or could not be run. The message never has its output."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


async def run_hook(run: SyncRun, handler: LifecycleHandler, target: HookTarget) -> None:
    """Return when the hook has done its work.

    May be cancelled: then a command is left to end with its container. Raises HookFailed, and SyncEnded when nobody
    answers. What nobody expected is a failure of the hook, too.
    """
    try:
        await _run_hook(run, handler, target)
    except (HookFailed, SyncEnded):
        raise
    except Exception as error:
        note_failure(f"hook of container {target.id[:12]}", error)
        raise HookFailed(f"hook of container {target.name}: {type(error).__name__}") from error


async def _run_hook(run: SyncRun, handler: LifecycleHandler, target: HookTarget) -> None:
    if handler.exec is not None:
        await _exec(run, handler.exec, target)
    elif handler.sleep is not None:
        await asyncio.sleep(handler.sleep.seconds)
    elif handler.http_get is not None:
        await _http_get(run, handler.http_get, target)
    else:
        raise HookFailed(f"hook of container {target.name}: {_INVALID}")


async def _exec(run: SyncRun, action: ExecAction, target: HookTarget) -> None:
    try:
        result = await run.runtime.exec_container(target.id, action.command, MAX_HOOK_S)
    except RuntimeCallError as error:
        if error.kind is ErrorKind.UNAVAILABLE:
            raise SyncEnded(SyncError.UNAVAILABLE, str(error)) from error
        raise HookFailed(f"exec hook of container {target.name} did not run: {error.kind}") from error
    if result.exit_code:
        raise HookFailed(f"exec hook of container {target.name} ended with exit code {result.exit_code}")


async def _http_get(run: SyncRun, action: HTTPGetAction, target: HookTarget) -> None:
    try:
        await run_http_hook(run, action, target.name, MAX_HOOK_S)
    except HttpHookFailed as error:
        raise HookFailed(f"httpGet hook of container {target.name}: {error}") from error
    except RuntimeCallError as error:
        raise HookFailed(f"httpGet hook of container {target.name} did not run: {error.kind}") from error
