"""Removing dead containers and sandboxes. A failure is recorded and stops nothing else: tear-down goes all the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ipc.messages import SyncAction
from ipc.runtime import RuntimeContainerStatus, SandboxStatus
from workers.runtime import RuntimeCallError
from workers.sync_context import SyncRun

REMOVE_TRIES: Final = 2
"""Podman 4.3 fails to remove a container whose process it has lost, and succeeds the second time."""
REMOVE_ERROR: Final = "RemoveError"


async def remove_id(run: SyncRun, remove: Callable[[str], Awaitable[None]], id: str) -> None:
    """Raises RuntimeCallError."""
    for remaining in reversed(range(REMOVE_TRIES)):
        try:
            return await run.act(remove, id)
        except RuntimeCallError:
            if not remaining:
                raise
    return None


async def remove_container(run: SyncRun, container: RuntimeContainerStatus) -> bool:
    """False when it failed."""
    what = f"{container.name} ({container.attempt})"
    return await _remove(run, SyncAction.REMOVE_CONTAINER, what, run.runtime.remove_container, container.id)


async def remove_sandbox(run: SyncRun, sandbox: SandboxStatus) -> bool:
    """With everything in it. False when it failed."""
    what = f"sandbox {sandbox.attempt}"
    return await _remove(run, SyncAction.REMOVE_SANDBOX, what, run.runtime.remove_pod, sandbox.id)


async def _remove(
    run: SyncRun, action: SyncAction, what: str, remove: Callable[[str], Awaitable[None]], id: str
) -> bool:
    try:
        await remove_id(run, remove, id)
    except RuntimeCallError as error:
        run.failed(action, what, REMOVE_ERROR, error.message)
        return False
    run.succeeded(action, what)
    run.did(f"removed {what}")
    return True
