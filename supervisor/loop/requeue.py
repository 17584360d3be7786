"""Due time of a pod's next sync after one has ended (pkg/kubelet/pod_workers.go, completeWork)."""

from __future__ import annotations

import math
import random
from typing import Final

from ipc.host.clock import Instant
from ipc.link.messages.pod_worker import SyncDone
from ipc.link.messages.sync_error import SyncError
from supervisor.config.settings import Settings
from supervisor.pods.work_queue import jitter

BACK_OFF_PERIOD_S: Final = 10.0
"""After an error that says no better time (pkg/kubelet/kubelet.go, backOffPeriod)."""
JITTER_FACTOR: Final = 0.5
SHORTEST_S: Final = 0.1
"""After a sync that failed as a whole, however soon it may be tried again."""
MIN_TICKS: Final = 12
"""Into so many moments at least a sync period is divided, at which pods are synced that need nothing."""
SYNCS_TOGETHER: Final = 25
"""Pods that are synced together at such a moment; with many pods there are more moments, not more pods at each."""


def due_in(done: SyncDone, now: Instant, settings: Settings, rng: random.Random, pods: int) -> float:
    """Seconds from now, the earliest that any failure asks for. A container that backs off is tried when its time has
    come, not later and not earlier. ``pods``: how many there are.

    Upstream adds its jitter to a back-off's end too; a user who has read the time of the next try should see it then.
    """
    resync_s = settings.sync_frequency_s
    if done.error is SyncError.STALE_VIEW or done.cancelled:
        return 0.0
    failed = [result for result in done.results if result.error]
    waits = [max(result.retry_at - now.wall, 0.0) for result in failed if result.retry_at]
    if done.error and done.retry_at:
        waits.append(max(done.retry_at - now.wall, SHORTEST_S))
    elif done.error or len(waits) < len(failed):
        waits.append(jitter(BACK_OFF_PERIOD_S, JITTER_FACTOR, rng))
    return min(*waits, resync_s) if waits else periodic(now.mono, resync_s, pods, rng)


def periodic(now_mono: float, resync_s: float, pods: int, rng: random.Random) -> float:
    """Seconds until the next sync of a pod that needs nothing. Within upstream's bounds, at a moment at which others
    are synced too: a sync that finds nothing to do costs less than waking master and worker for it."""
    tick_s = resync_s * min(1 / MIN_TICKS, SYNCS_TOGETHER / pods)
    earliest = now_mono + jitter(resync_s, JITTER_FACTOR - tick_s / resync_s, rng)
    return math.ceil(earliest / tick_s) * tick_s - now_mono
