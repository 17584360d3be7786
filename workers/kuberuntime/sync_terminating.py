"""Bring a pod down, and clean up after one that is down.

Mirrors SyncTerminatingPod, SyncTerminatingRuntimePod and SyncTerminatedPod (pkg/kubelet/kubelet.go) and, for a pod that
is no longer wanted, what the kubelet's garbage collection does to it (pkg/kubelet/kuberuntime/kuberuntime_gc.go).
Different on purpose: an orphan gets the grace period that its labels carry, not one second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages.pod_worker import SyncPod
from ipc.link.messages.sync_error import SyncError
from workers.cm import pod_cgroup
from workers.compute.kill_spec import kill_all
from workers.eviction.manager import keep_evicted
from workers.fs.directories import is_name
from workers.fs.tree_removal import Stuck
from workers.kuberuntime.context import SyncContext
from workers.kuberuntime.kill_container import end_before_removal, kill_pod
from workers.kuberuntime.leftover_processes import end_leftover_processes
from workers.kuberuntime.pause_pod import thaw
from workers.kuberuntime.remove import remove_container, remove_dead_containers, remove_sandbox
from workers.logs import layout
from workers.logs.pod_dirs import remove_pod_directory
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun
from workers.volumemanager.plugins.ephemeral import remove_ephemeral_volumes
from workers.volumemanager.plugins.volume_host import VolumeHost
from workers.volumemanager.tear_down import tear_down_volumes


async def sync_terminating(context: SyncContext, run: SyncRun, request: SyncPod, status: RuntimePodStatus) -> None:
    """Stop every container within its grace period, the sandbox last, unless the pod's removal follows, which ends the
    sandbox in one call with all that is left. A paused pod goes on first, lest its processes miss their signals. That
    it was evicted is kept before all, so that no later agent goes back on it. Raises SyncEnded. A shorter grace period
    cancels it and arrives as the next request."""
    if request.remove:
        run.keep_place()
    elif request.evicted is not None:
        await keep_evicted(run, context.volumes.pods_dir, request.evicted)
    targets = kill_all(request.pod, status, request.grace_period_s)
    run.record.found(f"{len(targets)} containers running")
    await thaw(run, status)
    run.step(f"stopping {len(targets)} containers")
    sandboxes = () if request.remove else status.sandboxes
    await kill_pod(run, context.handlers, request.pod, targets, sandboxes)
    if request.remove and targets:
        run.await_removal([target.process for target in targets])
    await end_leftover_processes(run, context.settled_ends, status.containers)


async def sync_terminated(context: SyncContext, run: SyncRun, request: SyncPod, status: RuntimePodStatus) -> None:
    """Remove the volumes of a pod that is down, and all that is left of it when it is no longer wanted.

    A pod that is still wanted keeps its containers for their logs, an evicted one its logs alone. Raises SyncEnded when
    something could not be removed; what could be is.
    """
    ended = run.take_kept_place()
    run.record.found(f"{len(status.sandboxes)} sandboxes, {len(status.containers)} containers")
    if request.remove:
        for process in ended:  # the status has told of their ends
            run.runtime.dismiss_monitor(process)
        await _remove_all(context, run, status)
        await _destroy_cgroup(context, run, request)
        return
    stuck = await tear_down_volumes(run, context.volumes)
    await _destroy_cgroup(context, run, request)
    if request.evicted is not None:
        await keep_evicted(run, context.volumes.pods_dir, request.evicted)
        await _remove_containers(run, status)
    else:
        await remove_dead_containers(run, status, request.dead_containers)
    _raise_stuck(stuck)


async def _remove_all(context: SyncContext, run: SyncRun, status: RuntimePodStatus) -> None:
    """Remove volumes beside the call that removes the containers; the directories when nothing else is left. Raises
    SyncEnded."""
    volumes, containers = await asyncio.gather(
        tear_down_volumes(run, context.volumes), _remove_containers(run, status), return_exceptions=True
    )
    for failure in (outcome for outcome in (containers, volumes) if isinstance(outcome, BaseException)):
        raise failure
    assert not isinstance(volumes, BaseException)
    _raise_stuck(volumes)
    await remove_ephemeral_volumes(run, context.volumes)
    await _remove_directories(run, context.volumes, context.node.logs(run.pod))


async def _destroy_cgroup(context: SyncContext, run: SyncRun, request: SyncPod) -> None:
    """Stop the slice of a pod that is down. An orphan's, whose QoS class nobody knows, is left to `workers.cm.cleanup`.
    Raises SyncEnded."""
    if request.pod is not None:
        await pod_cgroup.destroy(run, context.node.resources, request.pod)


def _raise_stuck(stuck: Sequence[Stuck]) -> None:
    if stuck:
        raise SyncEnded(SyncError.FAILED_UNMOUNT, "; ".join(map(str, stuck)))


async def _remove_containers(run: SyncRun, status: RuntimePodStatus) -> None:
    """Raises SyncEnded."""
    run.step("removing")
    sandbox_ids = {sandbox.id for sandbox in status.sandboxes}
    outside = [container for container in status.containers if container.sandbox_id not in sandbox_ids]
    removed = []
    try:
        for sandbox in status.sandboxes:
            await end_before_removal(run, sandbox)
            removed.append(await remove_sandbox(run, sandbox))
        removed += [await remove_container(run, container) for container in outside]
    finally:
        run.leave_removal_gate()
    if not all(removed):
        raise SyncEnded(SyncError.REMOVE, f"{removed.count(False)} of {len(removed)} removals failed")


async def _remove_directories(run: SyncRun, host: VolumeHost, logs: Path) -> None:
    """Raises SyncEnded."""
    if not run.pod.name:
        return
    try:
        await run.in_files(layout.SUBJECT, layout.remove, logs)
        for root in (host.memory_dir, host.pods_dir):
            if not (is_name(run.pod.uid) and run.has_no_files(root, (root, run.pod.uid))):
                await run.in_files(root, remove_pod_directory, root, run.pod.uid, host.unshare)
    except OSError as error:
        raise SyncEnded(SyncError.REMOVE, f"directories: {error}") from error
