"""Event aggregation and the informer feed."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.text.safe_text import MAX_EVENT_BYTES
from ipc.k8s.api.annotations import CONFIG_SEEN
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.status import PodStatus
from ipc.link.messages.api_server import EventChanged, EventGone, FeedSynced, PodChanged, PodGone
from ipc.link.messages.base import EventReport
from ipc.link.messages.catalogue import API_SERVER
from ipc.link.messages.event_reasons import EventType
from ipc.link.wire.channel import MAX_PENDING_BYTES
from supervisor.config.settings import MAX_EVENTS
from supervisor.record.feed import Feed
from supervisor.record.recorder import COMBINED, MAX_EVENTS_PER_OBJECT, MAX_SIMILAR, SIMILAR_INTERVAL_S, EventRecorder

WALL = 1_800_000_000.0


def report(message: str = "m", name: str = "p", type_: EventType = EventType.NORMAL) -> EventReport:
    return EventReport(uid="u-" + name, namespace="default", name=name, type=type_, reason="R", message=message)


def test_the_same_report_counts_instead_of_repeating() -> None:
    recorder = EventRecorder("node", 10, 3600.0)
    first, _ = recorder.record(report(), WALL)
    again, _ = recorder.record(report(), WALL + 9)
    assert (again.count, again.metadata.name) == (2, first.metadata.name)
    assert again.first_timestamp == first.first_timestamp
    assert again.last_timestamp != first.last_timestamp
    assert len(recorder.events()) == 1


def test_a_warning_is_not_the_normal_event_of_the_same_words() -> None:
    recorder = EventRecorder("node", 10, 3600.0)
    recorder.record(report(type_=EventType.NORMAL), WALL)
    recorder.record(report(type_=EventType.WARNING), WALL)
    assert [event.count for event in recorder.events()] == [1, 1]


def test_events_that_differ_in_their_message_only_are_combined_from_the_tenth_on() -> None:
    recorder = EventRecorder("node", 100, 3600.0)
    for number in range(MAX_SIMILAR + 2):
        newest, _ = recorder.record(report(f"m{number}"), WALL + number)
    assert (newest.message, newest.count) == (f"{COMBINED}m11", 3)
    assert newest.first_timestamp != newest.last_timestamp
    assert len(recorder.events()) == MAX_SIMILAR
    known, _ = recorder.record(report("m0"), WALL)
    assert (known.message, known.count) == ("m0", 2), "the first nine are still counted on their own"
    other, _ = recorder.record(report("m99", name="other"), WALL)
    assert other.message == "m99", "another object"


def test_events_of_the_node_are_about_different_things_and_not_combined() -> None:
    recorder = EventRecorder("node", 100, 3600.0)
    for number in range(2 * MAX_SIMILAR):
        wrong = EventReport(
            uid="", namespace="", name="node", type=EventType.WARNING, reason="R", message=f"{number}.yaml"
        )
        event, _ = recorder.record(wrong, WALL)
        assert event.message == f"{number}.yaml"
    assert len(recorder.events()) == 2 * MAX_SIMILAR


def test_after_ten_quiet_minutes_messages_are_kept_apart_again() -> None:
    recorder = EventRecorder("node", 100, 36000.0)
    for number in range(MAX_SIMILAR):
        recorder.record(report(f"m{number}"), WALL)
    late, _ = recorder.record(report("late"), WALL + SIMILAR_INTERVAL_S + 1)
    assert late.message == "late"


def test_a_pod_that_comes_again_has_events_of_its_own() -> None:
    recorder = EventRecorder("node", 100, 3600.0)
    for number in range(MAX_SIMILAR):
        recorder.record(report(f"m{number}"), WALL, "yesterday")
    first, _ = recorder.record(report("m0"), WALL + 1, "today")
    assert (first.count, first.metadata.annotations) == (1, {CONFIG_SEEN: "today"})
    restored = EventRecorder("node", 100, 3600.0)
    restored.restore(recorder.events(), WALL + 2)
    again, _ = restored.record(report("m0"), WALL + 2, "today")
    assert (again.count, again.metadata.name) == (2, first.metadata.name)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 14), st.integers(0, 400)), max_size=80))
def test_every_report_is_counted_once(reports: list[tuple[str, int, int]]) -> None:
    recorder, wall = EventRecorder("node", 1000, 1e9), WALL
    for name, message, pause_s in reports:
        wall += pause_s
        recorder.record(report(f"m{message}", name=name), wall)
    assert sum(event.count for event in recorder.events()) == len(reports)
    assert len({event.metadata.name for event in recorder.events()}) == len(recorder.events())


def test_a_namespace_with_too_many_events_loses_its_own_and_nobody_elses() -> None:
    recorder = EventRecorder("node", 10, 3600.0)
    recorder.record(report("of a user"), WALL)
    for number in range(50):
        load = msgspec.structs.replace(report(name=f"load-{number}"), namespace="load-test")
        _, gone = recorder.record(load, WALL + 1)
    kept = [event.involved_object.name for event in recorder.events()]
    assert kept == ["p", *(f"load-{number}" for number in range(41, 50))]
    assert len(gone) == 1
    recorder.resize(2, 3600.0)
    assert len(recorder.expire(WALL + 2)) == 8
    assert [event.involved_object.name for event in recorder.events()] == ["p", "load-49"]


def test_an_object_with_too_many_events_loses_its_own_oldest_and_nobody_elses() -> None:
    recorder = EventRecorder("node", 1000, 1e9)
    quiet, _ = recorder.record(report("quiet", name="quiet"), WALL)
    noise = [
        EventReport(uid="u", namespace="default", name="noisy", type=EventType.NORMAL, reason=f"R{number}", message="m")
        for number in range(MAX_EVENTS_PER_OBJECT + 2)
    ]
    gone = [name for each in noise for name in recorder.record(each, WALL)[1]]
    assert len(gone) == 2
    assert len(recorder.events()) == MAX_EVENTS_PER_OBJECT + 1
    assert quiet in recorder.events()
    assert recorder.events()[-1].reason == noise[-1].reason, "the newest is never kept back"


def test_old_events_go_without_a_new_one() -> None:
    recorder = EventRecorder("node", 10, 60.0)
    old, _ = recorder.record(report(), WALL)
    assert recorder.expire(WALL + 60) == []
    assert recorder.expire(WALL + 61) == [old.metadata.name]
    assert recorder.events() == ()


def test_a_smaller_history_takes_effect_at_once() -> None:
    recorder = EventRecorder("node", 10, 60.0)
    names = [recorder.record(report(name=name), WALL)[0].metadata.name for name in "abc"]
    recorder.resize(1, 60.0)
    assert recorder.expire(WALL) == names[:2]


def restored(recorder: EventRecorder, wall: float = WALL, ttl_s: float = 3600.0) -> EventRecorder:
    """Another life's."""
    next_life = EventRecorder("node", 1000, ttl_s)
    next_life.restore(recorder.events(), wall)
    return next_life


def test_counts_go_on_in_the_next_life() -> None:
    recorder = EventRecorder("node", 100, 3600.0)
    node = EventReport(uid="", namespace="", name="node", type=EventType.WARNING, reason="R", message="m")
    for _ in range(3):
        recorder.record(report(), WALL)
        recorder.record(node, WALL)
    next_life = restored(recorder)
    assert next_life.events() == recorder.events()
    assert next_life.changed_after(0) == (), "that is on disk already"
    again, _ = next_life.record(report(), WALL + 5)
    assert (again.count, again.metadata.name) == (4, recorder.events()[0].metadata.name)
    assert next_life.record(node, WALL + 5)[0].count == 4
    assert {event.count for event in next_life.changed_after(0)} == {4}


def test_of_an_event_that_went_and_came_again_the_newer_one_is_restored() -> None:
    """The file may still have the line of the one that went."""
    first, _ = EventRecorder("node", 100, 3600.0).record(report(), WALL)
    second, _ = EventRecorder("node", 100, 3600.0).record(report(), WALL + 1)
    next_life = EventRecorder("node", 100, 3600.0)
    next_life.restore([first, second], WALL + 2)
    assert next_life.events() == (second,)
    assert list(next_life.packed()) == [second.metadata.name], "under its name it is told again, and taken back"


def test_combining_goes_on_in_the_next_life() -> None:
    recorder = EventRecorder("node", 100, 3600.0)
    for number in range(MAX_SIMILAR + 1):
        recorder.record(report(f"m{number}"), WALL)
    next_life = restored(recorder)
    again, _ = next_life.record(report("new"), WALL + 1)
    assert (again.message, again.count) == (f"{COMBINED}new", 3)
    assert next_life.record(report("m3"), WALL + 1)[0].count == 2


def test_what_is_too_old_by_now_does_not_come_back() -> None:
    recorder = EventRecorder("node", 100, 60.0)
    recorder.record(report(), WALL)
    assert restored(recorder, WALL + 61, ttl_s=60.0).events() == ()


def test_an_event_of_the_future_expires_as_if_it_were_of_now() -> None:
    recorder = EventRecorder("node", 100, 60.0)
    recorder.record(report(), WALL + 1e6)
    next_life = restored(recorder, WALL, ttl_s=60.0)
    assert len(next_life.events()) == 1
    assert len(next_life.expire(WALL + 61)) == 1


def test_what_changed_is_told_once_and_as_it_is_now() -> None:
    recorder = EventRecorder("node", 10, 3600.0)
    recorder.record(report("a"), WALL)
    position = recorder.sequence
    recorder.record(report("b"), WALL)
    recorder.record(report("b"), WALL)
    (changed,) = recorder.changed_after(position)
    assert (changed.message, changed.count) == ("b", 2)
    assert recorder.changed_after(recorder.sequence) == ()


def test_an_event_without_a_pod_is_the_nodes() -> None:
    event, _ = EventRecorder("node", 10, 3600.0).record(
        EventReport(uid="", namespace="", name="node", type=EventType.WARNING, reason="R", message="m"), WALL
    )
    assert event.involved_object.kind == "Node"


def test_long_messages_are_cut() -> None:
    event, _ = EventRecorder("node", 10, 3600.0).record(report("x" * 5000), WALL)
    assert len(event.message) == MAX_EVENT_BYTES


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
    feed = Feed(dict)
    [first] = feed.pod(pod_changed())
    assert feed.pod(pod_changed()) == []
    [second] = feed.pod(pod_changed("Running"))
    [gone] = feed.pod_gone("u")
    assert isinstance(first, PodChanged)
    assert isinstance(second, PodChanged)
    assert isinstance(gone, PodGone)
    assert first.resource_version < second.resource_version < gone.resource_version
    assert feed.pod_gone("u") == []


def test_the_largest_history_fits_into_the_link_of_a_new_api_server() -> None:
    longest = EventReport(
        uid="u" * 36, namespace="n" * 63, name="p" * 253, type=EventType.WARNING, reason="r" * 64, message="m" * 2000
    )
    event, _ = EventRecorder("n" * 253, MAX_EVENTS, 60.0).record(longest, WALL)
    told = msgspec.msgpack.encode(EventChanged(resource_version=2**62, event=event))
    assert len(told) * MAX_EVENTS < MAX_PENDING_BYTES


def test_a_new_api_server_gets_everything_that_is() -> None:
    recorder = EventRecorder("node", 1, 3600.0)
    feed = Feed(recorder.packed)
    feed.pod(pod_changed())
    feed.event(*recorder.record(report("a"), WALL))
    told, gone = feed.event(*recorder.record(report("b"), WALL))
    assert (type(told), type(gone)) == (EventChanged, EventGone)
    pod, event, synced = (
        msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=API_SERVER.commands)
        for message in feed.everything()
    )
    assert (type(pod), event, synced) == (PodChanged, told, FeedSynced())


def test_an_event_is_kept_as_it_was_told() -> None:
    recorder = EventRecorder("node", 10, 3600.0)
    told, _ = recorder.record(msgspec.structs.replace(report("a"), field_path="spec", annotations={"k": "v"}), WALL)
    again, _ = recorder.record(report("b"), WALL)
    events = recorder.events()
    assert (*events,) == (told, again)
    assert (events[1], *events[:1], *reversed(events)) == (again, told, again, told)
