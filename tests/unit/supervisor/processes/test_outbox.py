"""Messages that wait for a child that is behind: a difference, in an order that a reader's versions bear."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.link.messages.api_server import (
    EventChanged,
    EventGone,
    FeedSynced,
    ObjectGone,
    PackedEventChanged,
    PodChanged,
    PodGone,
    Reply,
)
from ipc.link.messages.base import Shutdown
from ipc.link.messages.catalogue import ChildCommand
from ipc.link.messages.cluster import PodsTaken
from ipc.link.messages.node_worker import Observe, Relist
from supervisor.processes.outbox import MAX_WAITING, Outbox, OutboxFull

SYNCED = FeedSynced()
ANSWER = Reply(request_id=1, code=200)


def changed(uid: str, version: int) -> PodChanged:
    pod = Pod(metadata=ObjectMeta(name=uid, uid=uid), spec=PodSpec(containers=(Container(name="c"),)))
    return PodChanged(resource_version=version, pod=pod, status=PodStatus(), source="file")


def gone(uid: str, version: int) -> PodGone:
    return PodGone(resource_version=version, uid=uid)


def told(name: str, version: int) -> EventChanged:
    return EventChanged(
        resource_version=version, event=Event(metadata=ObjectMeta(name=name), involved_object=ObjectReference())
    )


def outbox(*messages: ChildCommand, copied: bool = True) -> Outbox:
    """Outbox with these messages; ``copied``: the child has its copy already."""
    made = Outbox()
    if copied:
        made.put(SYNCED)
        assert made.take() == SYNCED
    for message in messages:
        made.put(message)
    return made


def rest(of: Outbox) -> list[ChildCommand]:
    found = []
    while (message := of.take()) is not None:
        found.append(message)
    assert not of
    return found


def versions(messages: Iterable[ChildCommand]) -> list[int]:
    return [
        message.resource_version for message in messages if isinstance(message, PodChanged | PodGone | EventChanged)
    ]


def test_of_an_object_only_the_newest_message_waits() -> None:
    box = outbox(changed("a", 1), changed("b", 2), changed("a", 3), told("e", 4), told("e", 5))
    assert rest(box) == [changed("b", 2), changed("a", 3), told("e", 5)]


def test_versions_rise_whatever_was_left_out() -> None:
    box = outbox(*(changed(f"p{number % 3}", number) for number in range(1, 20)))
    assert versions(rest(box)) == [17, 18, 19]


def test_an_answer_comes_after_what_it_answers() -> None:
    """A client that has applied a pod and asks for it finds it, whatever has become of it meanwhile."""
    box = outbox(changed("a", 1), ANSWER, changed("a", 2))
    assert rest(box) == [changed("a", 1), ANSWER, changed("a", 2)]


def test_that_the_pods_were_taken_comes_after_them() -> None:
    box = outbox(changed("a", 1), PodsTaken(), changed("a", 2))
    assert rest(box) == [changed("a", 1), PodsTaken(), changed("a", 2)]


def test_an_object_that_was_gone_between_is_told_as_gone() -> None:
    box = outbox(changed("a", 1), gone("a", 2), changed("a", 3), changed("a", 4))
    assert rest(box) == [gone("a", 2), changed("a", 4)]


def test_other_messages_keep_their_order_and_go_first() -> None:
    orders: list[ChildCommand] = [Observe(uids=("a",)), Relist(), Shutdown()]
    box = outbox(changed("a", 1), orders[0], ANSWER, *orders[1:])
    assert rest(box) == [*orders, changed("a", 1), ANSWER]


def test_a_copy_is_whole_before_its_end_is_told() -> None:
    """A pod that changes meanwhile is in the copy, and so is a new one; later changes come behind it."""
    packed = PackedEventChanged(resource_version=3, event=msgspec.Raw(b"\x80"))
    box = outbox(changed("a", 1), changed("b", 2), packed, SYNCED, ANSWER, copied=False)
    assert box.take() == changed("a", 1)
    for message in (changed("b", 4), told("e", 5), changed("c", 6), changed("a", 7)):
        box.put(message)
    assert rest(box) == [changed("b", 4), packed, told("e", 5), changed("c", 6), changed("a", 7), SYNCED, ANSWER]
    box.put(changed("a", 8))
    assert rest(box) == [changed("a", 8)]


def test_what_went_before_the_copy_had_it_is_told_as_gone() -> None:
    absent = ObjectGone(resource_version=4, kind=ObjectKind.CONFIG_MAP, namespace="n", name="c")
    box = outbox(changed("a", 1), SYNCED, gone("a", 2), EventGone(resource_version=3, name="e"), absent, copied=False)
    assert rest(box) == [gone("a", 2), EventGone(resource_version=3, name="e"), absent, SYNCED]


def test_a_child_that_reads_nothing_is_not_waited_for_for_ever() -> None:
    box = outbox(*(Relist() for _ in range(MAX_WAITING)))
    with pytest.raises(OutboxFull):
        box.put(Relist())
    box.put(changed("a", 1))
    assert len(rest(box)) == MAX_WAITING + 1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("change"), st.sampled_from("abc")),
            st.tuples(st.just("go"), st.sampled_from("abc")),
            st.tuples(st.just("take"), st.just("")),
            st.tuples(st.just("answer"), st.just("")),
            st.tuples(st.just("end"), st.just("")),
        ),
        max_size=60,
    )
)
def test_a_reader_ends_with_what_there_is(acts: list[tuple[str, str]]) -> None:
    """No distance and no moment of reading changes that; versions rise from the end of the copy on."""
    box, there, taken = Outbox(), dict[str, int](), list[ChildCommand]()
    ended = False
    for version, (act, uid) in enumerate(acts, 1):
        match act:
            case "change":
                there[uid] = version
                box.put(changed(uid, version))
            case "go":
                there.pop(uid, None)
                box.put(gone(uid, version))
            case "answer":
                box.put(ANSWER)
            case "end" if not ended:
                ended = True
                box.put(SYNCED)
            case "take" if (message := box.take()) is not None:
                taken.append(message)
    taken += rest(box)
    copy: dict[str, int] = {}
    for message in taken:
        if isinstance(message, PodChanged):
            copy[message.pod.metadata.uid] = message.resource_version
        elif isinstance(message, PodGone):
            copy.pop(message.uid, None)
    assert copy == there
    if ended:
        place = taken.index(SYNCED)
        after, before = versions(taken[place:]), versions(taken[:place])
        assert after == sorted(after)
        assert not after or not before or max(before) < after[0]
