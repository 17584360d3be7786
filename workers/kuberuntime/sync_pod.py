"""Bring a pod nearer to what is wanted: decide, then carry out in numbered steps.

Mirrors SyncPod and startContainer (pkg/kubelet/kuberuntime/kuberuntime_manager.go, kuberuntime_container.go).
Different on purpose: an error after which the runtime's state is unknown ends the sync, because the next one begins
with a fresh look anyway; containers that are killed in one sync stop at the same time, each within its own window;
and dead containers and sandboxes are removed at the end of the sync that finds them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.pod_containers import find_container
from ipc.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.kubecontainer.restart_policy import is_restartable_init
from ipc.messages.pod_worker import SyncAction
from workers.compute.kill_spec import ContainerKill, kill_all
from workers.compute.pod_actions import compute_pod_actions
from workers.compute.types import ContainerStart, ContainerWait, PodActions
from workers.eviction.manager import evict_if_beyond_limits
from workers.kubecontainer.event_messages import crash_loop_event, crash_loop_message
from workers.kuberuntime.etc_files import EtcFileError, refresh_etc_files
from workers.kuberuntime.kill_container import kill_container, kill_pod, wait_freed
from workers.kuberuntime.leftover_processes import end_leftover_processes
from workers.kuberuntime.remove import REMOVE_ERROR, remove_container, remove_sandbox
from workers.kuberuntime.sandbox import create_sandbox
from workers.kuberuntime.start_container import start_container
from workers.network.sandbox_network import seen_network
from workers.sync.context import NORMAL, WARNING, SyncEnded, SyncRun
from workers.volumemanager.set_up import set_up_volumes

ETC_FILE_ERROR: Final = "EtcFileError"
CRASH_LOOP_BACK_OFF: Final = "CrashLoopBackOff"


async def sync_pod(run: SyncRun, pod: Pod, status: RuntimePodStatus) -> None:
    """Raises SyncEnded when a step leaves nothing to go on from. A container that cannot start stops no other, but an
    init container those behind it."""
    # 1. Make the volumes ready, and what they show as new as it is; then decide.
    run.volumes = await set_up_volumes(run, pod)
    actions = _decide(run, pod, status)
    run.found(actions.reason)
    # 2. Stop the whole pod, or those containers that are in the way.
    await _kill(run, pod, status, actions)
    ended = _ended(status, actions)
    await end_leftover_processes(run, ended, [container for container in status.containers if container not in ended])
    # 3. Take away what has to begin as if it had never run.
    await _reset(run, actions)
    # 4. Prune dead init containers.
    for dead in actions.init_containers_to_prune:
        await remove_container(run, dead)
    # 5. Make the sandbox.
    sandbox_id = actions.sandbox_id
    if actions.create_sandbox:
        sandbox_id = await create_sandbox(run, pod, actions.attempt)
    else:
        _use_sandbox(run, pod, status, sandbox_id)
    # 6. Start ephemeral containers, 7. init containers, 8. regular ones: one after the other.
    await _start_each(run, pod, sandbox_id, actions.ephemeral_containers_to_start)
    await _start_init(run, pod, sandbox_id, actions.init_containers_to_start)
    await _start_each(run, pod, sandbox_id, actions.containers_to_start)
    for wait in actions.waiting:
        await _back_off(run, pod, wait)
    # 9. Remove what nothing needs any more.
    await _remove(run, actions)
    # 10. When nothing was to do: end it if it takes more of the disk than it may.
    if not run.changed:
        await evict_if_beyond_limits(run, pod, status)


def _decide(run: SyncRun, pod: Pod, status: RuntimePodStatus) -> PodActions:
    return compute_pod_actions(
        pod,
        status,
        run.context.clock.now().wall,
        run.context.limits,
        probe_results=run.request.probe_results,
        restarting_all=run.request.restarting_all,
        gc=run.context.gc,
        garbage=run.request.garbage,
    )


def _ended(status: RuntimePodStatus, actions: PodActions) -> list[RuntimeContainerStatus]:
    """By now."""
    killed = {kill.id for kill in actions.containers_to_kill}
    killed |= {reset.container.id for reset in actions.containers_to_reset}
    exited = ContainerState.EXITED
    return [c for c in status.containers if actions.kill_pod or c.state is exited or c.id in killed]


async def _kill(run: SyncRun, pod: Pod, status: RuntimePodStatus, actions: PodActions) -> None:
    if actions.create_sandbox and actions.sandbox_id:
        await run.event(NORMAL, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
    if actions.kill_pod:
        run.step("stopping the pod")
        await kill_pod(run, pod, kill_all(pod, status), status.sandboxes)
        if actions.create_sandbox:
            await wait_freed(run, status.sandboxes)
        return
    resets = (reset.kill for reset in actions.containers_to_reset if reset.kill is not None)
    await _kill_each(run, [*actions.containers_to_kill, *resets])


async def _kill_each(run: SyncRun, targets: Sequence[ContainerKill]) -> None:
    """All at once. Raises SyncEnded when one of them fails, once all have come to their end."""
    if not targets:
        return
    run.step(f"stopping {', '.join(target.name for target in targets)}")
    outcomes = await asyncio.gather(*(kill_container(run, target) for target in targets), return_exceptions=True)
    for failure in (outcome for outcome in outcomes if isinstance(outcome, BaseException)):
        raise failure


async def _reset(run: SyncRun, actions: PodActions) -> None:
    """One after the other, for the order matters when it is interrupted (``workers.compute.restart_all``)."""
    for reset in actions.containers_to_reset:
        if not await remove_container(run, reset.container):
            raise SyncEnded(REMOVE_ERROR, f"container {reset.container.name} is in the way of its next start")


def _use_sandbox(run: SyncRun, pod: Pod, status: RuntimePodStatus, sandbox_id: str) -> None:
    """The one that is there. Raises SyncEnded."""
    run.network = seen_network(pod, status, sandbox_id, run.context.host_ips())
    try:
        refresh_etc_files(run, pod)
    except EtcFileError as error:
        raise SyncEnded(ETC_FILE_ERROR, str(error)) from error


async def _start_each(run: SyncRun, pod: Pod, sandbox_id: str, starts: Iterable[ContainerStart]) -> None:
    for start in starts:
        await start_container(run, pod, sandbox_id, start)


async def _start_init(run: SyncRun, pod: Pod, sandbox_id: str, starts: Iterable[ContainerStart]) -> None:
    """A sidecar that does not start is tried again by the next sync, as upstream has it."""
    for start in starts:
        started = await start_container(run, pod, sandbox_id, start)
        found = find_container(pod.spec, start.name)
        if not started and found is not None and not is_restartable_init(found.container):
            return


async def _back_off(run: SyncRun, pod: Pod, wait: ContainerWait) -> None:
    """doBackOff's half that says so."""
    message = crash_loop_message(pod, wait.name, wait.backoff_s)
    await run.event(WARNING, "BackOff", crash_loop_event(pod, wait.name), wait.name)
    run.failed(SyncAction.START_CONTAINER, wait.name, CRASH_LOOP_BACK_OFF, message, wait.retry_at)


async def _remove(run: SyncRun, actions: PodActions) -> None:
    for container in actions.containers_to_remove:
        await remove_container(run, container)
    for sandbox in actions.sandboxes_to_remove:
        await remove_sandbox(run, sandbox)
