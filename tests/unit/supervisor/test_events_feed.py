"""Event aggregation and the informer feed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipc.api import Container, ObjectMeta, Pod, PodSpec, PodStatus
from ipc.messages import EventChanged, EventGone, EventReport, FeedSynced, PodChanged, PodGone
from supervisor.events import MAX_MESSAGE_BYTES, EventRecorder
from supervisor.feed import Feed

WALL = 1_800_000_000.0


def report(message: str = "m", name: str = "p", type_: str = "Normal") -> EventReport:
    return EventReport(uid="u-" + name, namespace="default", name=name, type=type_, reason="R", message=message)


def test_the_same_report_counts_instead_of_repeating() -> None:
    recorder = EventRecorder("node", 10, 3600.0)
    first, _ = recorder.record(report(), WALL)
    again, _ = recorder.record(report(), WALL + 9)
    assert (again.count, again.metadata.name) == (2, first.metadata.name)
    assert again.first_timestamp == first.first_timestamp
    assert again.last_timestamp != first.last_timestamp
    assert len(recorder.events()) == 1


def test_an_event_without_a_pod_is_the_nodes() -> None:
    event, _ = EventRecorder("node", 10, 3600.0).record(
        EventReport(uid="", namespace="", name="node", type="Warning", reason="R", message="m"), WALL
    )
    assert event.involved_object.kind == "Node"


def test_long_messages_are_cut() -> None:
    event, _ = EventRecorder("node", 10, 3600.0).record(report("x" * 5000), WALL)
    assert len(event.message) == MAX_MESSAGE_BYTES


@given(names=st.lists(st.sampled_from([f"p{n}" for n in range(9)]), max_size=60), limit=st.integers(1, 5))
def test_history_is_bounded_and_tells_what_it_dropped(names: list[str], limit: int) -> None:
    recorder = EventRecorder("node", limit, 1e9)
    kept: set[str] = set()
    for name in names:
        event, gone = recorder.record(report(name=name), WALL)
        kept.add(event.metadata.name)
        kept -= set(gone)
    assert {event.metadata.name for event in recorder.events()} == kept
    assert len(kept) <= limit


def test_old_events_expire() -> None:
    recorder = EventRecorder("node", 10, 60.0)
    old, _ = recorder.record(report("old"), WALL)
    _, gone = recorder.record(report("new"), WALL + 61)
    assert gone == [old.metadata.name]


def pod_changed(phase: str = "Pending") -> PodChanged:
    pod = Pod(metadata=ObjectMeta(name="p", uid="u"), spec=PodSpec(containers=(Container(name="c"),)))
    return PodChanged(resource_version=0, pod=pod, status=PodStatus(phase=phase), source="file")  # type: ignore[arg-type]


def test_only_news_travel_and_versions_rise() -> None:
    feed = Feed()
    [first] = feed.pod(pod_changed())
    assert feed.pod(pod_changed()) == []
    [second] = feed.pod(pod_changed("Running"))
    [gone] = feed.pod_gone("u")
    assert isinstance(first, PodChanged)
    assert isinstance(second, PodChanged)
    assert isinstance(gone, PodGone)
    assert first.resource_version < second.resource_version < gone.resource_version
    assert feed.pod_gone("u") == []


def test_a_new_api_server_gets_everything_that_is() -> None:
    feed = Feed()
    recorder = EventRecorder("node", 1, 3600.0)
    feed.pod(pod_changed())
    feed.event(*recorder.record(report("a"), WALL))
    kinds = [type(message) for message in feed.event(*recorder.record(report("b"), WALL))]
    assert kinds == [EventChanged, EventGone]
    assert [type(message) for message in feed.everything()] == [PodChanged, EventChanged, FeedSynced]
