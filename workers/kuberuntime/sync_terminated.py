"""A pod is down. When nobody wants it any more, nothing of it stays; else its containers stay for their logs.

Of one that was evicted its containers go, with what they have written, and their logs stay.

Mirrors SyncTerminatedPod (pkg/kubelet/kubelet.go) and, for a removed pod, what the kubelet's garbage collection does
to it (pkg/kubelet/kuberuntime/kuberuntime_gc.go).
"""

from __future__ import annotations

import asyncio

from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.sync_error import SyncError
from workers.eviction.manager import keep_evicted
from workers.kuberuntime.remove import remove_container, remove_garbage, remove_sandbox
from workers.logs import layout
from workers.logs.pod_dirs import remove_pod_directory
from workers.sync.context import SyncEnded, SyncRun
from workers.volumemanager.tear_down import tear_down_volumes


async def sync_terminated(run: SyncRun, status: RuntimePodStatus) -> None:
    """Raises SyncEnded when something could not be removed; what could be is."""
    run.found(f"{len(status.sandboxes)} sandboxes, {len(status.containers)} containers")
    stuck = await tear_down_volumes(run)
    if run.request.remove:
        await _remove_containers(run, status)
    elif run.request.evicted:
        await keep_evicted(run, run.request.evicted)
        await _remove_containers(run, status)
    else:
        await remove_garbage(run, status)
    if stuck:
        raise SyncEnded(SyncError.FAILED_UNMOUNT, "; ".join(map(str, stuck)))
    if run.request.remove:
        await _remove_directories(run)


async def _remove_containers(run: SyncRun, status: RuntimePodStatus) -> None:
    """Raises SyncEnded."""
    run.step("removing")
    sandbox_ids = {sandbox.id for sandbox in status.sandboxes}
    outside = [container for container in status.containers if container.sandbox_id not in sandbox_ids]
    removed = [await remove_sandbox(run, sandbox) for sandbox in status.sandboxes]
    removed += [await remove_container(run, container) for container in outside]
    if not all(removed):
        raise SyncEnded(SyncError.REMOVE, f"{removed.count(False)} of {len(removed)} removals failed")


async def _remove_directories(run: SyncRun) -> None:
    """Raises SyncEnded."""
    if not run.pod.name:
        return
    try:
        await asyncio.to_thread(layout.remove, run.logs)
        for root in (run.context.memory_dir, run.context.pods_dir):
            await run.in_files(root, remove_pod_directory, root, run.pod.uid, run.context.unshare)
    except OSError as error:
        raise SyncEnded(SyncError.REMOVE, f"directories: {error}") from error
