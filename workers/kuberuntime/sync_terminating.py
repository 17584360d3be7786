"""A pod goes down: every container stopped within its grace period, the sandbox last.

Mirrors SyncTerminatingPod and SyncTerminatingRuntimePod (pkg/kubelet/kubelet.go). Different on purpose: an orphan gets
the grace period that its labels carry, not one second.
"""

from __future__ import annotations

from ipc.kubecontainer.pod_status import RuntimePodStatus
from workers.compute.kill_spec import kill_all
from workers.kuberuntime.kill_container import kill_pod
from workers.kuberuntime.leftover_processes import end_leftover_processes
from workers.sync.context import SyncRun


async def sync_terminating(run: SyncRun, status: RuntimePodStatus) -> None:
    """Raises SyncEnded. A shorter grace period cancels it and arrives as the next request."""
    targets = kill_all(run.request.pod, status, run.request.grace_period_s)
    run.found(f"{len(targets)} containers running")
    run.step(f"stopping {len(targets)} containers")
    await kill_pod(run, run.request.pod, targets, status.sandboxes)
    await end_leftover_processes(run, status.containers)
