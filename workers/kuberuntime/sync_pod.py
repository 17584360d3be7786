"""Bring a pod nearer to what is wanted: decide, then carry out in numbered steps.

Mirrors SyncPod (pkg/kubelet/kuberuntime/kuberuntime_manager.go, and of pkg/kubelet/kubelet.go what waits for volumes).
Different on purpose: an error after which the runtime's state is unknown ends the sync, because the next one begins
with a fresh observation anyway; containers that are killed in one sync stop at the same time, each within its own
window; and dead containers and sandboxes are removed at the end of the sync that finds them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager

from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from ipc.link.messages import event_reasons
from ipc.link.messages.pod_worker import SyncAction, SyncPod
from ipc.link.messages.sync_error import SyncError
from workers.cm import pod_cgroup
from workers.compute.kill_spec import ContainerKill, kill_all
from workers.compute.pod_actions import compute_pod_actions
from workers.compute.pull_first import needed_before_stops, without_replacements
from workers.compute.resize import NO_RESIZE
from workers.compute.types import ContainerStart, ContainerWait, PodActions
from workers.eviction.manager import evict_if_beyond_limits
from workers.kubecontainer.event_messages import crash_loop_event, crash_loop_message
from workers.kuberuntime.container_config import PodInputs
from workers.kuberuntime.container_images import PodImages
from workers.kuberuntime.context import SyncContext
from workers.kuberuntime.kill_container import kill_container, kill_pod, wait_freed
from workers.kuberuntime.leftover_processes import end_leftover_processes
from workers.kuberuntime.remove import remove_container, remove_sandbox
from workers.kuberuntime.resize_pod import resize_pod, restore_limits
from workers.kuberuntime.sandbox import create_sandbox, use_sandbox
from workers.kuberuntime.start_container import ContainerStarter
from workers.lifecycle.handlers import HandlerRunner
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun
from workers.volumemanager.set_up import set_up_volumes


async def sync_pod(context: SyncContext, run: SyncRun, request: SyncPod, of: PodSnapshot) -> None:
    """Raises SyncEnded when a step leaves nothing to go on from. A container that cannot start stops no other, but an
    init container those behind it."""
    pod, status, node, host = of.pod, of.status, context.node, context.volumes
    # 0. Give the pod its cgroup. One that vanished under it, or that it never had, takes the pod with it.
    if pod_cgroup.is_missing(run, node.resources, pod):
        if status.has_running_containers():
            await _kill_without_cgroup(run, context.handlers, of)
            return
        await pod_cgroup.create(run, node.resources, pod)
    # 1. Make the volumes ready, and what they show as new as it is.
    volumes = await set_up_volumes(run, host, of)
    # 2. Decide what is to be done.
    actions = _decide(context, run, request, of)
    images = PodImages(run, context.images, of)
    if node.keep_until_pulled:
        actions = await _until_pulled(run, images, of, actions)
    run.record.found(actions.reason)
    if actions.create_sandbox:
        await _check_network(run, pod, request.network_problem)
    # 3. Stop the whole pod, or those containers that are in the way, and what their processes have left.
    await _kill(run, context.handlers, of, actions)
    ended = _ended(status, actions)
    others = [container for container in status.containers if container not in ended]
    await end_leftover_processes(run, context.settled_ends, ended, others)
    # 4. Remove containers that have to begin as if they had never run.
    await _reset(run, actions)
    # 5. Prune dead init containers.
    for dead in actions.init_containers_to_prune:
        await remove_container(run, dead)
    # 6. Make the sandbox, or go on with the one that is there.
    if actions.create_sandbox:
        async with _images_of_first(images, pod, actions):
            sandbox = await create_sandbox(run, node, host.pods_dir, of, actions.attempt)
            await context.shaper.shape(run, pod, sandbox.network)
    else:
        sandbox = use_sandbox(run, node, host.pods_dir, of, actions.sandbox_id)
        if actions.resize == NO_RESIZE and _starts(actions):
            await pod_cgroup.follow(run, node.resources, pod, status.sandboxes[0])
        await context.shaper.shape(run, pod, sandbox.network)
    starter = ContainerStarter(run, context, PodInputs(of=of, volumes=volumes, sandbox=sandbox), images)
    # 7. Start ephemeral containers, 8. init containers: one after the other.
    await _start_each(starter, actions.ephemeral_containers_to_start)
    await _start_init(starter, pod, actions.init_containers_to_start)
    # 9. Resize what runs.
    if actions.resize != NO_RESIZE:
        await resize_pod(run, node.resources, pod, status, actions.resize)
    elif request.unsure_resources and not actions.kill_pod:
        await restore_limits(run, node.resources, pod, status)
    # 10. Start regular containers.
    await _start_each(starter, actions.containers_to_start)
    for wait in actions.waiting:
        await _back_off(run, pod, wait)
    # 11. Remove what nothing needs any more.
    await _remove(run, actions)
    # 12. When nothing was to do: end the pod if it takes more of the disk than it may.
    if not run.record.changed:
        await evict_if_beyond_limits(run, host, node.logs, pod, status)


async def _until_pulled(run: SyncRun, images: PodImages, of: PodSnapshot, actions: PodActions) -> PodActions:
    """The actions, less those that would stop what has no successor yet for want of an image. Raises SyncEnded."""
    missing = await images.missing(needed_before_stops(of.pod, of.status, actions))
    for name, error in missing.items():
        message = f"Container {name} goes on as it was made: no image for its new definition ({error.reason})"
        await run.event(event_reasons.REPLACEMENT_PUT_OFF, message, name)
        run.record.failed(SyncAction.START_CONTAINER, name, error.reason, error.message, error.retry_at)
    return without_replacements(of.status, actions, missing.keys())


def _starts(actions: PodActions) -> bool:
    return bool(actions.init_containers_to_start or actions.containers_to_start)


def _images_of_first(images: PodImages, pod: Pod, actions: PodActions) -> AbstractAsyncContextManager[None]:
    """The first container that starts may have its image pulled while the sandbox is made. Not before the volumes are
    there: a pod that fails to mount pulls nothing."""
    starts = (*actions.ephemeral_containers_to_start, *actions.init_containers_to_start, *actions.containers_to_start)
    first = next((start for start in starts if not start.created_id), None)
    found = find_container(pod.spec, first.name) if first is not None and first is starts[0] else None
    return images.ahead(found.container) if found is not None else contextlib.nullcontext()


async def _kill_without_cgroup(run: SyncRun, handlers: HandlerRunner, of: PodSnapshot) -> None:
    """Stop a pod that runs outside of the cgroup that it should be in. The next sync starts what is to start again by
    its restart policy: nothing of a pod that runs once. Raises SyncEnded."""
    run.record.found("the pod's cgroup is missing")
    run.step("stopping the pod, whose cgroup is missing")
    await kill_pod(run, handlers, of.pod, kill_all(of.pod, of.status), of.status.sandboxes)


async def _check_network(run: SyncRun, pod: Pod, problem: str) -> None:
    """Refuse to make a sandbox that could have no network (pkg/kubelet/kubelet.go, SyncPod). Upstream leaves every pod
    alone meanwhile; here containers of a sandbox that has its network go on, and start again. Raises SyncEnded."""
    if problem and not pod.spec.host_network:
        message = f"network is not ready: {problem}"
        await run.event(event_reasons.NETWORK_NOT_READY, message)
        raise SyncEnded(SyncError.NETWORK_NOT_READY, message)


def _decide(context: SyncContext, run: SyncRun, request: SyncPod, of: PodSnapshot) -> PodActions:
    return compute_pod_actions(
        of.pod,
        of.status,
        run.clock.now().wall,
        context.node.limits,
        probe_results=request.probe_results,
        restarting_all=request.restarting_all,
        gc=context.node.gc,
        dead_containers=request.dead_containers,
        actuated=request.actuated,
        restarts=request.restarts,
        controllers=context.node.resources.controllers,
    )


def _ended(status: RuntimePodStatus, actions: PodActions) -> list[RuntimeContainerStatus]:
    """The containers that have ended once the kills of these actions are done."""
    killed = {kill.id for kill in actions.containers_to_kill}
    killed |= {reset.container.id for reset in actions.containers_to_reset}
    exited = ContainerState.EXITED
    return [c for c in status.containers if actions.kill_pod or c.state is exited or c.id in killed]


async def _kill(run: SyncRun, handlers: HandlerRunner, of: PodSnapshot, actions: PodActions) -> None:
    status = of.status
    if actions.create_sandbox and actions.sandbox_id:
        await run.event(event_reasons.SANDBOX_CHANGED, "Pod sandbox changed, it will be killed and re-created.")
    if actions.kill_pod:
        run.step("stopping the pod")
        await kill_pod(run, handlers, of.pod, kill_all(of.pod, status), status.sandboxes)
        if actions.create_sandbox:
            await wait_freed(run, status.sandboxes)
        return
    resets = (reset.kill for reset in actions.containers_to_reset if reset.kill is not None)
    await _kill_each(run, handlers, [*actions.containers_to_kill, *resets])


async def _kill_each(run: SyncRun, handlers: HandlerRunner, targets: Sequence[ContainerKill]) -> None:
    """All at once. Raises SyncEnded when one of them fails, once all have come to their end."""
    if not targets:
        return
    run.step(f"stopping {', '.join(target.name for target in targets)}")
    kills = (kill_container(run, handlers, target) for target in targets)
    outcomes = await asyncio.gather(*kills, return_exceptions=True)
    for failure in (outcome for outcome in outcomes if isinstance(outcome, BaseException)):
        raise failure


async def _reset(run: SyncRun, actions: PodActions) -> None:
    """One after the other, for the order matters when it is interrupted (``workers.compute.restart_all``)."""
    for reset in actions.containers_to_reset:
        if not await remove_container(run, reset.container):
            raise SyncEnded(SyncError.REMOVE, f"container {reset.container.name} is in the way of its next start")


async def _start_each(starter: ContainerStarter, starts: Iterable[ContainerStart]) -> None:
    for start in starts:
        await starter.start(start)


async def _start_init(starter: ContainerStarter, pod: Pod, starts: Iterable[ContainerStart]) -> None:
    """A sidecar that does not start is tried again by the next sync, as upstream has it."""
    for start in starts:
        started = await starter.start(start)
        found = find_container(pod.spec, start.name)
        if not started and found is not None and not is_restartable_init(found.container):
            return


async def _back_off(run: SyncRun, pod: Pod, wait: ContainerWait) -> None:
    """doBackOff's half that says so."""
    message = crash_loop_message(pod, wait.name, wait.backoff_s)
    await run.event(event_reasons.BACK_OFF_START_CONTAINER, crash_loop_event(pod, wait.name), wait.name)
    run.record.failed(SyncAction.START_CONTAINER, wait.name, SyncError.CRASH_LOOP_BACK_OFF, message, wait.retry_at)


async def _remove(run: SyncRun, actions: PodActions) -> None:
    for container in actions.containers_to_remove:
        await remove_container(run, container)
    for sandbox in actions.sandboxes_to_remove:
        await remove_sandbox(run, sandbox)
