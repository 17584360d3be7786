"""Counts of the sync loop's own parts: rejections, orphans, restarts, events, the queue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipc.link.metrics import kubelet, rootlet
from ipc.link.shm.metric_cells import METERS
from supervisor.pods.parts import KnownPods
from supervisor.pods.work_queue import WorkQueue
from tests.support.dialogue import Talk, pod, running


@pytest.fixture(autouse=True)
def _from_zero() -> Iterator[None]:
    METERS.detach()
    yield
    METERS.detach()


def test_rejections_by_reason() -> None:
    talk = Talk(max_pods=2)
    talk.start(pod("a", host_port=8080))
    talk.add(pod("b", host_port=8080))
    talk.add(pod("c"), pod("d"))
    assert METERS.value(kubelet.ADMISSION_REJECTIONS, "NodePorts") == 1.0
    assert METERS.value(kubelet.ADMISSION_REJECTIONS, "OutOfpods") == 1.0


def test_events_by_type() -> None:
    talk = Talk()
    talk.start(pod("a", host_port=8080))
    before = METERS.value(rootlet.EVENTS, "Warning")
    talk.add(pod("b", host_port=8080))
    assert METERS.value(rootlet.EVENTS, "Warning") == before + 1.0


def test_orphans() -> None:
    talk = Talk()
    talk.ready()
    talk.relist(running("stranger"))
    talk.keep_house()
    assert METERS.value(kubelet.ORPHANED_RUNTIME_PODS) == 1.0


def test_a_pod_that_is_stated_anew_while_it_goes_down() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.add("a")
    assert METERS.value(kubelet.RESTARTED_PODS, "true") == 1.0


def test_the_queue_of_later_syncs() -> None:
    known, name = KnownPods(), kubelet.PODS_QUEUE
    queue = WorkQueue(known)
    for uid in ("a", "b", "a"):
        queue.enqueue(uid, 1.0)
    assert METERS.value(kubelet.WORKQUEUE_ADDS, name) == 3.0
    assert METERS.value(kubelet.WORKQUEUE_DEPTH, name) == 2.0
    known.forget("b")
    assert METERS.value(kubelet.WORKQUEUE_DEPTH, name) == 1.0
    assert queue.pop_due(2.0) == ["a"]
    assert METERS.value(kubelet.WORKQUEUE_DEPTH, name) == 0.0
