"""Bring a pod nearer to what is wanted: decide, then carry out in numbered steps.

Mirrors SyncPod and startContainer (pkg/kubelet/kuberuntime/kuberuntime_manager.go, kuberuntime_container.go).
Different on purpose: an error after which the runtime's state is unknown ends the sync, because the next one begins
with a fresh look anyway; and dead containers and sandboxes are removed at the end of the sync that finds them.
"""

from __future__ import annotations

from typing import Final

from ipc.api import Pod
from ipc.messages import SyncAction
from ipc.runtime import RuntimePodStatus
from workers.event_texts import crash_loop_event, crash_loop_message
from workers.kills import kill_all
from workers.pod_actions import ContainerWait, PodActions, compute_pod_actions
from workers.removing import remove_container, remove_garbage, remove_sandbox
from workers.sandboxes import create_sandbox
from workers.starting import start_container
from workers.stopping import kill_container, kill_pod, wait_freed
from workers.sync_context import NORMAL, WARNING, SyncRun

CRASH_LOOP_BACK_OFF: Final = "CrashLoopBackOff"


async def sync_pod(run: SyncRun, pod: Pod, status: RuntimePodStatus) -> None:
    """Raises SyncEnded when a step leaves nothing to go on from. A container that cannot start stops no other."""
    # 1. Decide.
    actions = compute_pod_actions(pod, status, run.context.clock.now().wall, run.context.limits)
    run.found(actions.reason)
    # 2. Stop the whole pod, or 3. those containers that are in the way.
    await _kill(run, pod, status, actions)
    # 4. Make the sandbox.
    sandbox_id = actions.sandbox_id
    if actions.create_sandbox:
        sandbox_id = await create_sandbox(run, pod, actions.attempt)
    # 5. Start containers, one after the other.
    for start in actions.containers_to_start:
        await start_container(run, pod, sandbox_id, start)
    for wait in actions.waiting:
        await _back_off(run, pod, wait)
    # 6. Remove what nothing needs any more.
    await _remove(run, actions, status)


async def _kill(run: SyncRun, pod: Pod, status: RuntimePodStatus, actions: PodActions) -> None:
    if actions.create_sandbox and actions.sandbox_id:
        await run.event(NORMAL, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
    if actions.kill_pod:
        run.step("stopping the pod")
        await kill_pod(run, kill_all(pod, status), status.sandboxes)
        if actions.create_sandbox:
            await wait_freed(run, status.sandboxes)
        return
    for target in actions.containers_to_kill:
        run.step(f"stopping {target.name}")
        await kill_container(run, target)


async def _back_off(run: SyncRun, pod: Pod, wait: ContainerWait) -> None:
    """doBackOff's half that says so."""
    message = crash_loop_message(pod, wait.name, wait.backoff_s)
    await run.event(WARNING, "BackOff", crash_loop_event(pod, wait.name), wait.name)
    run.failed(SyncAction.START_CONTAINER, wait.name, CRASH_LOOP_BACK_OFF, message, wait.retry_at)


async def _remove(run: SyncRun, actions: PodActions, status: RuntimePodStatus) -> None:
    for container in actions.containers_to_remove:
        await remove_container(run, container)
    for sandbox in actions.sandboxes_to_remove:
        await remove_sandbox(run, sandbox)
    await remove_garbage(run, status, done={container.id for container in actions.containers_to_remove})
