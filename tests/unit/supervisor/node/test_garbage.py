"""Garbage of the node: when images are collected, what is wanted meanwhile, and what requests are answered."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import ImageVolumeSource, Volume
from ipc.k8s.kubecontainer.image_gc import ImageReport
from ipc.link.messages.node_worker import ImagesCollected, LogsCollected
from supervisor.managers.image_gc import IMAGE_GC_PERIOD_S, NO_NODE_WORKER, NODE_WORKER_DIED, wanted_images
from supervisor.node.garbage import NOT_YET
from supervisor.processes.worker_pool import NODE_SLOT
from supervisor.protocol.events import GarbageRequest
from tests.support.dialogue import Talk, absent, pod

FULL = "Insufficient free disk space"


def started(*pods: Pod | str) -> Talk:
    """A loop that knows what is wanted and what runs, and whose first round has begun."""
    talk = Talk()
    talk.start(*pods)
    talk.tick(1.0)
    return talk


def failed(talk: Talk, error: str = FULL) -> None:
    talk.say(ImagesCollected(number=talk.image_requests[-1].number, error=error))


def test_a_round_begins_when_all_is_known_and_every_five_minutes() -> None:
    talk = Talk()
    talk.up(NODE_SLOT)
    talk.tick(1000.0)
    assert talk.image_requests == [], "nobody knows what is wanted"
    talk = started("x")
    assert [request.number for request in talk.image_requests] == [1]
    request = talk.image_requests[0]
    assert (request.wanted, request.all_unused, request.report) == ({"v1": "default/x"}, False, False)
    assert (request.policy.high_threshold_percent, request.policy.low_threshold_percent) == (85, 80)
    talk.tick(2 * IMAGE_GC_PERIOD_S)
    assert len(talk.image_requests) == 1, "the first one is under way"
    talk.say(ImagesCollected(number=1))
    talk.tick(1.0)
    assert len(talk.image_requests) == 2
    talk.say(ImagesCollected(number=2))
    talk.tick(IMAGE_GC_PERIOD_S - 10)
    assert len(talk.image_requests) == 2
    talk.tick(20.0)
    assert len(talk.image_requests) == 3


def test_images_of_all_containers_and_of_volumes_are_wanted() -> None:
    plain = pod("x", image="v2")
    volume = Volume(name="v", image=ImageVolumeSource(reference="quay.io/a/data:1"))
    mounted = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, volumes=(volume,)))
    assert wanted_images([("default/x", mounted), ("default/y", plain)]) == {
        "v2": "default/x",
        "quay.io/a/data:1": "default/x",
    }


def test_only_failures_in_a_row_are_an_event() -> None:
    talk = started()
    for error, events in ((FULL, 0), ("", 0), (FULL, 0), (FULL, 1), (FULL, 2)):
        failed(talk, error)
        assert sum(event.startswith("ImageGCFailed") for event in talk.events) == events
        talk.tick(IMAGE_GC_PERIOD_S)


def test_a_round_that_dies_with_the_node_worker_has_failed_and_the_next_one_comes() -> None:
    talk = started()
    for _ in range(2):
        talk.down(NODE_SLOT)
        talk.up(NODE_SLOT)
        talk.tick(IMAGE_GC_PERIOD_S)
    assert len(talk.image_requests) == 3
    assert sum(event.startswith("ImageGCFailed") for event in talk.events) == 1


def test_a_request_is_answered_when_images_and_directories_are_collected() -> None:
    talk = started("x")
    talk.say(ImagesCollected(number=1))
    assert talk.say(GarbageRequest(5, dry_run=True)) == []
    request = talk.image_requests[-1]
    assert (request.report, request.all_unused) == (True, False)
    found = ImageReport(id="i", names=("v0",), size_bytes=7)
    assert talk.say(ImagesCollected(number=request.number, images=(found,), capacity_bytes=9)) == []
    assert talk.say(LogsCollected(number=1, paths=("/logs/x",), failures=("cannot",))) == ["garbage 5"]
    report = talk.garbage[5]
    assert (report.dry_run, report.images, report.directories, report.errors, report.capacity_bytes) == (
        True,
        (found,),
        ("/logs/x",),
        ("cannot",),
        9,
    )
    talk.say(GarbageRequest(6, dry_run=False))
    assert talk.image_requests[-1].all_unused


def test_a_request_is_answered_whatever_becomes_of_the_node_worker() -> None:
    talk = started()
    talk.say(GarbageRequest(5, dry_run=False))
    assert "garbage 5" in talk.down(NODE_SLOT)
    assert talk.garbage[5].errors == (NODE_WORKER_DIED,)
    assert talk.say(GarbageRequest(6, dry_run=False)) == ["garbage 6"]
    assert talk.garbage[6].errors == (NO_NODE_WORKER,)


def test_nothing_is_collected_on_incomplete_knowledge() -> None:
    talk = Talk()
    talk.up(NODE_SLOT)
    assert talk.say(GarbageRequest(5, dry_run=False)) == ["garbage 5"]
    assert talk.garbage[5].errors == (NOT_YET,)
    assert talk.image_requests == []


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    talk = started()
    talk.see(absent("x"))
    assert talk.say(ImagesCollected(number=99, error="what?")) == []
    assert talk.say(LogsCollected(number=99)) == []
