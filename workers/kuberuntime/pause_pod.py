"""Pause and resume the processes of a pod, by the freezer of their cgroups. The kubelet has no such thing.

Podman does it (libpod/pod_api.go, Pause and Unpause), container by container, so a pod may be left paused in part: one
that cannot be paused as a whole goes on as a whole.
"""

from __future__ import annotations

from typing import Final

from ipc.k8s.kubecontainer.frozen import frozen_containers
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus, SandboxState
from ipc.link.messages.pod_worker import Freeze, SyncAction
from ipc.link.messages.sync_error import SyncError
from workers.kubecontainer.runtime import RuntimeCallError
from workers.sync.run import SyncRun

ADVICE: Final = (
    "to pause a pod, its containers need cgroups (v2) of their own below one that is delegated to this user, as a "
    "session of systemd has it"
)


async def freeze_pod(run: SyncRun, status: RuntimePodStatus, freeze: Freeze) -> None:
    """Carry out a wish, and record the result. Raises SyncEnded when the runtime does not answer."""
    run.record.found(f"to be {freeze}d")
    run.step(f"{freeze[:-1]}ing the pod")
    if freeze is Freeze.PAUSE:
        await _pause(run, status)
    else:
        await _resume(run, status)


async def thaw(run: SyncRun, status: RuntimePodStatus) -> None:
    """Let what is paused go on, so that it can end in order. Where that fails it is killed as it is. Raises
    SyncEnded."""
    frozen = {container.sandbox_id for container in frozen_containers(status)}
    for id in (sandbox.id for sandbox in status.sandboxes if sandbox.id in frozen):
        try:
            await run.act(run.runtime.resume_pod, id)
        except RuntimeCallError as error:
            run.record.did(f"could not resume it: {error.message}")


async def _pause(run: SyncRun, status: RuntimePodStatus) -> None:
    id = next((sandbox.id for sandbox in status.sandboxes if sandbox.state is SandboxState.READY), "")
    if not id:
        _failed(run, SyncAction.PAUSE_POD, "nothing of it runs")
        return
    try:
        await run.act(run.runtime.pause_pod, id)
    except RuntimeCallError as error:
        await _undo(run, id)
        _failed(run, SyncAction.PAUSE_POD, f"Podman says: {error.message}; {ADVICE}")
    else:
        _succeeded(run, SyncAction.PAUSE_POD, "paused")
    _touch(run, status)


async def _undo(run: SyncRun, id: str) -> None:
    """Resume containers that were paused before one could not be. Raises SyncEnded."""
    try:
        await run.act(run.runtime.resume_pod, id)
    except RuntimeCallError as error:
        run.record.did(f"could not resume it: {error.message}")


async def _resume(run: SyncRun, status: RuntimePodStatus) -> None:
    try:
        for sandbox in status.sandboxes:
            await run.act(run.runtime.resume_pod, sandbox.id)
    except RuntimeCallError as error:
        _failed(run, SyncAction.RESUME_POD, f"Podman says: {error.message}")
    else:
        _succeeded(run, SyncAction.RESUME_POD, "resumed")
    _touch(run, status)


def _touch(run: SyncRun, status: RuntimePodStatus) -> None:
    """Each is looked at again: a sandbox's look is one at its infra container alone."""
    for container in status.containers:
        if container.state is ContainerState.RUNNING:
            run.record.touched(container.id)


def _succeeded(run: SyncRun, action: SyncAction, done: str) -> None:
    run.record.succeeded(action, run.pod.name)
    run.record.did(done)


def _failed(run: SyncRun, action: SyncAction, message: str) -> None:
    run.record.failed(action, run.pod.name, SyncError.FREEZE_POD, message)
