"""When the next sync is due: the earliest that anything asks for, jittered only where nobody was told a time."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from typing import Any

import pytest

from ipc.host.clock import Instant
from ipc.link.messages.pod_worker import SyncAction, SyncDone, SyncResult, WorkType
from ipc.link.messages.sync_error import SyncError
from supervisor.config.settings import Settings
from supervisor.loop.requeue import SYNCS_TOGETHER, due_in
from supervisor.pods.parts import KnownPods
from supervisor.pods.work_queue import MAX_STALE, WorkQueue, jitter
from tests.support.work import work_of

NOW = Instant(mono=1234.5, wall=1_800_000_000.0)
SETTINGS = Settings()


def result(error: SyncError = SyncError.NONE, retry_in_s: float | None = None) -> SyncResult:
    retry_at = 0.0 if retry_in_s is None else NOW.wall + retry_in_s
    return SyncResult(action=SyncAction.START_CONTAINER, target="c", error=error, retry_at=retry_at)


OK, PULL = result(), result(SyncError.IMAGE_PULL)


def done(*results: SyncResult, error: SyncError = SyncError.NONE, **fields: Any) -> SyncDone:
    return SyncDone(uid="u", generation=1, incarnation=1, kind=WorkType.SYNC, results=results, error=error, **fields)


@pytest.mark.parametrize(
    ("answer", "least_s", "most_s"),
    [
        (done(), 60.0, 90.0),
        (done(OK), 60.0, 90.0),
        (done(PULL), 10.0, 15.0),
        (done(OK, PULL), 10.0, 15.0),
        (done(error=SyncError.TIMEOUT), 10.0, 15.0),
        (done(error=SyncError.FAILED_MOUNT, retry_at=NOW.wall + 0.5), 0.5, 0.5),
        (done(error=SyncError.FAILED_MOUNT, retry_at=NOW.wall + 122.0), 60.0, 60.0),
        (done(error=SyncError.FAILED_MOUNT, retry_at=NOW.wall - 9.0), 0.1, 0.1),
        (done(error=SyncError.STALE_VIEW), 0.0, 0.0),
        (done(cancelled=True), 0.0, 0.0),
        (done(result(SyncError.CRASH_LOOP_BACK_OFF, 20.0)), 20.0, 20.0),
        (done(result(SyncError.CRASH_LOOP_BACK_OFF, 20.0), result(SyncError.CRASH_LOOP_BACK_OFF, 7.0)), 7.0, 7.0),
        (done(result(SyncError.CRASH_LOOP_BACK_OFF, -5.0)), 0.0, 0.0),
        (done(result(SyncError.CRASH_LOOP_BACK_OFF, 300.0)), 60.0, 60.0),
        (done(result(SyncError.CRASH_LOOP_BACK_OFF, 50.0), PULL), 10.0, 15.0),
        (done(result(SyncError.CRASH_LOOP_BACK_OFF, 5.0), PULL), 5.0, 5.0),
        (done(result(SyncError.CRASH_LOOP_BACK_OFF, 50.0), error=SyncError.TIMEOUT), 10.0, 15.0),
    ],
)
def test_due_in(answer: SyncDone, least_s: float, most_s: float) -> None:
    for seed in range(50):
        for pods in (1, 100, 10_000):
            assert least_s <= due_in(answer, NOW, SETTINGS, random.Random(seed), pods) <= most_s


def rounds(pods: int) -> list[int]:
    """How many pods are synced at each moment, when each begins at another one and needs nothing for some periods."""
    rng = random.Random(7)
    at = [rng.uniform(0.0, SETTINGS.sync_frequency_s) for _ in range(pods)]
    moments: Counter[float] = Counter()
    for _ in range(4):
        at = [mono + due_in(done(OK), Instant(mono=mono, wall=0.0), SETTINGS, rng, pods) for mono in at]
        moments.update(round(mono, 3) for mono in at)
    return list(moments.values())


def test_what_needs_nothing_is_synced_together_but_not_too_many_at_a_time() -> None:
    assert statistics.mean(rounds(60)) > 2.0
    assert max(rounds(1000)) < 4 * SYNCS_TOGETHER


def test_jitter_only_adds() -> None:
    values = [jitter(10.0, 0.5, random.Random(seed)) for seed in range(200)]
    assert 10.0 <= min(values) < 10.5
    assert 14.5 < max(values) < 15.0


def test_the_queue_gives_what_is_due_once_and_in_order() -> None:
    known = KnownPods()
    queue = WorkQueue(known)
    for uid, due in (("a", 3.0), ("b", 1.0), ("c", 2.0), ("d", 9.0), ("a", 1.5)):
        queue.enqueue(uid, due)
    known.forget("c")
    assert queue.pop_due(0.5) == []
    assert queue.pop_due(3.0) == ["b", "a"], "the later enqueue replaced the earlier one"
    assert queue.pop_due(3.0) == []
    assert queue.pop_due(9.0) == ["d"]


def test_the_queue_forgets_due_times_that_were_replaced() -> None:
    queue = WorkQueue(KnownPods())
    for due in range(10_000, 0, -1):
        queue.enqueue("a", float(due))
    assert work_of(lambda: queue.pop_due(20_000.0)) < 10 * MAX_STALE
    assert queue.pop_due(20_000.0) == []
