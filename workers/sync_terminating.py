"""A pod goes down: every container stopped within its grace period, the sandbox last.

Mirrors SyncTerminatingPod and SyncTerminatingRuntimePod (pkg/kubelet/kubelet.go). Different on purpose: an orphan gets
the grace period that its labels carry, not one second.
"""

from __future__ import annotations

from ipc.runtime import RuntimePodStatus
from workers.kills import kill_all
from workers.stopping import kill_pod
from workers.strays import end_strays
from workers.sync_context import SyncRun


async def sync_terminating(run: SyncRun, status: RuntimePodStatus) -> None:
    """Raises SyncEnded. A shorter grace period cancels it and arrives as the next request."""
    targets = kill_all(run.request.pod, status, run.request.grace_period_s)
    run.found(f"{len(targets)} containers running")
    run.step(f"stopping {len(targets)} containers")
    await kill_pod(run, run.request.pod, targets, status.sandboxes)
    await end_strays(run, status.containers)
