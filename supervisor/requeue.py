"""When a pod's next sync is due after one has ended (pkg/kubelet/pod_workers.go, completeWork)."""

from __future__ import annotations

import random

from ipc.messages import SyncDone
from supervisor.settings import Settings
from supervisor.work_queue import jitter

BACK_OFF_PERIOD_S = 10.0
"""After an error that says no better time (pkg/kubelet/kubelet.go, backOffPeriod)."""
JITTER_FACTOR = 0.5
STALE_VIEW = "StaleView"


def due_in(done: SyncDone, now_wall: float, settings: Settings, rng: random.Random) -> float:
    """Seconds from now, the earliest that any failure asks for. A container that backs off is tried when its time has
    come, not later and not earlier.

    Upstream adds its jitter to a back-off's end too; a user who was told the time of the next try should see it then.
    """
    resync_s = settings.sync_frequency_s
    if done.error == STALE_VIEW or done.cancelled:
        return 0.0
    failed = [result for result in done.results if result.error]
    waits = [max(result.retry_at - now_wall, 0.0) for result in failed if result.retry_at]
    if done.error or len(waits) < len(failed):
        waits.append(jitter(BACK_OFF_PERIOD_S, JITTER_FACTOR, rng))
    return min(*waits, resync_s) if waits else jitter(resync_s, JITTER_FACTOR, rng)
