"""Pods that a cluster binds at once: all are with their workers before anything is said of the first."""

from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.link.messages.cluster import PodValuesStated
from supervisor.protocol.events import StatusesDue
from supervisor.protocol.source_updates import PodOperation, PodUpdate
from tests.support.dialogue import Talk, pod, running

STARTED = "2026-01-01T00:00:00Z"


@pytest.fixture
def talk() -> Talk:
    """Everything was read and seen, and there is nothing."""
    talk = Talk(rows=16, pods_per_worker=4, workers=2)
    talk.ready()
    talk.relist()
    return talk


def hurry(talk: Talk, *pods: Pod | str) -> list[str]:
    made = tuple(each if isinstance(each, Pod) else pod(each) for each in pods)
    return talk.say(PodUpdate(op=PodOperation.ADD, source=API_SOURCE, pods=made, is_batched=True))


def test_every_sync_goes_out_before_the_first_status(talk: Talk) -> None:
    assert [word for word in hurry(talk, "a", "b") if "sync" in word] == ["sync a", "sync b"]
    assert [word for word in hurry(talk, "c") if "sync" in word] == ["sync c"]
    assert talk.told == {}
    talk.say(StatusesDue())
    assert {uid: told.status.phase for uid, told in talk.told.items()} == dict.fromkeys("abc", "Pending")


def test_what_was_put_off_is_told_once(talk: Talk) -> None:
    hurry(talk, "a")
    talk.say(StatusesDue())
    talk.told.clear()
    talk.say(StatusesDue())
    assert talk.told == {}


def test_a_second_is_the_longest_silence(talk: Talk) -> None:
    """Nobody may be left who says that the burst is over."""
    hurry(talk, "a")
    talk.tick()
    assert talk.told["a"].status.phase == "Pending"


def test_what_is_seen_of_a_pod_is_told_at_once(talk: Talk) -> None:
    hurry(talk, "a", "b")
    talk.see(running("a"))
    assert set(talk.told) == {"a"}
    assert talk.told["a"].status.phase == "Running"


def test_the_answer_of_a_worker_is_told_at_once(talk: Talk) -> None:
    hurry(talk, "a")
    talk.done("a", error="ImagePull", message="no such image")
    assert talk.told["a"].summary


def test_a_pod_that_is_not_admitted_is_told_of_at_once() -> None:
    talk = Talk(rows=16, max_pods=1)
    talk.ready()
    talk.relist()
    hurry(talk, "a", "b")
    assert {uid: told.status.phase for uid, told in talk.told.items()} == {"b": "Failed"}


def test_a_pod_with_a_past_is_told_of_before_it_is_synced(talk: Talk) -> None:
    """A pod may be at its end: what an agent before this one has said of it decides, or what is there of it."""
    known = msgspec.structs.replace(
        pod("a"),
        status=PodStatus(phase="Running", start_time=STARTED),
        spec=msgspec.structs.replace(pod("a").spec, active_deadline_seconds=1),
    )
    talk.see(running("b"))
    words = hurry(talk, known, "b")
    assert set(talk.told) == {"a", "b"}
    assert "sync a" not in words, "its deadline is over"


def test_warnings_of_fields_come_with_the_statuses(talk: Talk) -> None:
    made = msgspec.structs.replace(pod("a"), spec=msgspec.structs.replace(pod("a").spec, priority_class_name="unknown"))
    hurry(talk, made)
    assert talk.events == []
    talk.say(StatusesDue())
    assert talk.events == ["UnsupportedField a"]
    talk.say(StatusesDue())
    assert talk.events == ["UnsupportedField a"], "once"


def test_the_worker_that_pods_bring_is_asked_for_when_all_are_on_their_way() -> None:
    talk = Talk(rows=16, pods_per_worker=2, workers=2)
    talk.ready()
    talk.relist()
    words = hurry(talk, "a", "b", "c")
    assert {"sync a", "sync b", "sync c"} <= set(words)
    assert not any("workers" in word for word in words)
    assert any("workers" in word for word in talk.say(StatusesDue()))


def test_values_of_a_pod_that_is_to_come_are_no_event(talk: Talk) -> None:
    values = ClusterValues(service_variables={"HOST": "1.2.3.4"})
    assert talk.loop.takes_early(PodValuesStated(uid="a", values=values))
    hurry(talk, "a")
    assert talk.syncs["a"].objects.cluster == values
    assert not talk.loop.takes_early(PodValuesStated(uid="a", values=values))
