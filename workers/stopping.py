"""Stopping containers and sandboxes: the stop signal, the grace period, SIGKILL, and knowing that it is over.

Mirrors killContainer, killContainersWithSyncResult (pkg/kubelet/kuberuntime/kuberuntime_container.go) and
killPodWithSyncResult (kuberuntime_manager.go). The grace period is spent waiting for the container's process, not in
a Podman call, so that no thread is held and a shorter grace period can cut it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Container, Sequence
from typing import Final

from ipc.messages import SyncAction
from ipc.runtime import SandboxState, SandboxStatus
from workers.kills import ContainerKill
from workers.removing import remove_id
from workers.runtime import ErrorKind, RuntimeCallError
from workers.sync_context import NORMAL, WARNING, SyncEnded, SyncRun

DEFAULT_STOP_SIGNAL: Final = "SIGTERM"
KILL_WAIT_S: Final = 10.0
"""How long a process may take to vanish after SIGKILL before it counts as unkillable, in seconds."""
NOTICE_WAIT_S: Final = 5.0
"""How long Podman may take to notice that a process has ended, in seconds."""
NOTICE_POLL_S: Final = 0.02
"""Between the first two looks, in seconds; each next one comes after twice the time."""

_ENDED: Final = frozenset({"stopped", "exited"})
"""Podman's words for a container whose end it has noticed."""
_FREED: Final = frozenset({"exited"})
"""And for one whose network and ports can be had again."""

KILL_CONTAINER_ERROR: Final = "KillContainerError"
KILL_SANDBOX_ERROR: Final = "KillPodSandboxError"


async def kill_container(run: SyncRun, target: ContainerKill) -> None:
    """Stop one container and record it. Raises SyncEnded when that fails."""
    await run.event(NORMAL, "Killing", target.message, target.name)
    try:
        await _stop(run, target.id, target.pid, await _stop_signal(run, target.image), target.window_s)
        if not await _noticed(run, target.id, _ENDED) or target.remove:
            # A container whose end Podman missed (its monitor is gone) would show as running for ever.
            await remove_id(run, run.runtime.remove_container, target.id)
    except RuntimeCallError as error:
        run.failed(SyncAction.KILL_CONTAINER, target.name, KILL_CONTAINER_ERROR, error.message)
        raise SyncEnded(KILL_CONTAINER_ERROR, f"container {target.name}: {error.message}") from error
    run.succeeded(SyncAction.KILL_CONTAINER, target.name)
    run.did(f"stopped {target.name}")


async def kill_pod(run: SyncRun, targets: Sequence[ContainerKill], sandboxes: Sequence[SandboxStatus]) -> None:
    """Stop these containers all at once, then the sandboxes. Raises SyncEnded when one of them fails."""
    try:
        outcomes = await asyncio.gather(*(kill_container(run, target) for target in targets), return_exceptions=True)
        for failure in (outcome for outcome in outcomes if isinstance(outcome, BaseException)):
            raise failure
        for sandbox in sandboxes:
            if sandbox.state is SandboxState.READY:
                await _kill_sandbox(run, sandbox)
    except SyncEnded as ended:
        if not ended.cancelled:
            await run.event(WARNING, "FailedKillPod", f"error killing pod: {ended.message}")
        raise


async def _kill_sandbox(run: SyncRun, sandbox: SandboxStatus) -> None:
    """Its infra container only holds namespaces: there is nothing that it could do in a grace period."""
    try:
        await _kill(run, sandbox.infra_id, 0)
        if not await _noticed(run, sandbox.infra_id, _ENDED):
            # It would show as ready for ever; its containers are dead, and their logs are ours.
            await remove_id(run, run.runtime.remove_pod, sandbox.id)
    except RuntimeCallError as error:
        run.failed(SyncAction.KILL_SANDBOX, run.pod.name, KILL_SANDBOX_ERROR, error.message)
        raise SyncEnded(KILL_SANDBOX_ERROR, f"sandbox {sandbox.attempt}: {error.message}") from error
    run.succeeded(SyncAction.KILL_SANDBOX, run.pod.name)
    run.did(f"stopped sandbox {sandbox.attempt}")


async def wait_freed(run: SyncRun, sandboxes: Sequence[SandboxStatus]) -> None:
    """Give Podman the time to hand back what these killed sandboxes held, host ports above all, but not for ever."""
    for sandbox in sandboxes:
        if sandbox.state is SandboxState.READY:
            with contextlib.suppress(RuntimeCallError):  # not to know is to go on
                await _noticed(run, sandbox.infra_id, _FREED)


async def _stop_signal(run: SyncRun, image: str) -> str:
    """The image's STOPSIGNAL."""
    found = await run.read(run.runtime.inspect_image, image) if image else None
    return (found.stop_signal if found else "") or DEFAULT_STOP_SIGNAL


async def _stop(run: SyncRun, id: str, pid: int, signal: str, window_s: float) -> None:
    """Raises RuntimeCallError when it still runs in the end."""
    await run.act(run.runtime.kill_container, id, signal)
    if not await run.unless_cancelled(run.runtime.wait_exit, id, pid, window_s):
        await _kill(run, id, pid)


async def _kill(run: SyncRun, id: str, pid: int) -> None:
    await run.act(run.runtime.kill_container, id, "SIGKILL")
    if not await run.unless_cancelled(run.runtime.wait_exit, id, pid, KILL_WAIT_S):
        raise RuntimeCallError(ErrorKind.INTERNAL, "kill container", f"still runs {KILL_WAIT_S:g} s after SIGKILL")


async def _noticed(run: SyncRun, id: str, states: Container[str]) -> bool:
    """Wait until Podman shows one of the states, or nothing; False when it does not within NOTICE_WAIT_S."""
    pause_s = NOTICE_POLL_S
    try:
        async with asyncio.timeout(NOTICE_WAIT_S):
            while (await run.read(run.runtime.inspect_container, id)).state not in states:
                await asyncio.sleep(pause_s)
                pause_s *= 2
    except TimeoutError:
        return False
    except RuntimeCallError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
    return True
