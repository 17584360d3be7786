"""The informer's store on its own: what a position in its window is worth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.link.messages.api_server import AgentChanged, FeedSynced, PodChanged, PodGone
from tests.support.api_server import agent_changed, event_changed, pod_changed
from workers.api_server.store.objects import WatchedObject, pod_object, watch_line
from workers.api_server.store.store import ChangeType, Expired, ObjectStore, Store, seen_as

EPOCH = 1_000_000


def everything(_: Any) -> bool:
    return True


def test_an_object_is_told_of_from_its_begin_to_its_end() -> None:
    store = Store(EPOCH)
    for message in (FeedSynced(), pod_changed(1, "a"), pod_changed(2, "a"), PodGone(resource_version=3, uid="uid-a")):
        store.take(message)
    changes = store.pods.changes_after(EPOCH, 10)
    assert [seen_as(c, everything) for c in changes] == [ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED]
    assert b'"resourceVersion":"1000003"' in changes[-1].current.json
    assert store.pods.find("default", "a") is None


def test_only_what_is_there_keeps_its_message() -> None:
    """A feed's JSON would be as large as the object beside it, and nobody asks for that of an object as it was."""
    store = Store(EPOCH)
    for message in (FeedSynced(), pod_changed(1, "a"), pod_changed(2, "a"), PodGone(resource_version=3, uid="uid-a")):
        store.take(message)
    changes = store.pods.changes_after(EPOCH, 10)
    shown = [each for change in changes for each in (change.previous, change.current) if each is not None]
    assert {type(each) for each in shown} == {WatchedObject}
    assert changes[1].previous == changes[0].current


def test_the_end_of_an_unknown_object_is_nothing() -> None:
    store = Store(EPOCH)
    store.take(PodGone(resource_version=1, uid="never"))
    assert store.pods.changes_after(0, 10) == []


def test_what_came_before_the_feed_was_complete_is_no_history() -> None:
    store = Store(EPOCH)
    for message in (pod_changed(9, "b"), pod_changed(4, "a"), event_changed(12, "e", "a"), FeedSynced()):
        store.take(message)
    assert store.resource_version == EPOCH + 12
    assert store.pods.changes_after(store.resource_version, 10) == []
    with pytest.raises(Expired):
        store.pods.changes_after(store.resource_version - 1, 10)


def test_of_two_pods_with_one_name_the_one_that_stays_is_meant() -> None:
    store = Store(EPOCH)
    store.take(pod_changed(5, "web", uid="old", deletion_timestamp="2026-01-01T00:00:00Z"))
    store.take(pod_changed(4, "web", uid="new"))
    found = store.pods.find("default", "web")
    assert found is not None
    assert found.key == "new"


def test_the_agent_is_remembered() -> None:
    store = Store(EPOCH)
    store.take(agent_changed())
    assert isinstance(store.agent, AgentChanged)


def test_the_window_is_bounded_in_changes_and_bytes() -> None:
    few: ObjectStore[PodChanged] = ObjectStore(pod_object, max_changes=3)
    for version in range(1, 10):
        few.change(pod_changed(version, "a"), version)
    assert [c.resource_version for c in few.changes_after(6, 10)] == [7, 8, 9]
    with pytest.raises(Expired):
        few.changes_after(5, 10)
    size = len(pod_object(pod_changed(1, "a"), 1).json)
    small: ObjectStore[PodChanged] = ObjectStore(pod_object, max_bytes=2 * size)
    for version in range(1, 10):
        small.change(pod_changed(version, "a"), version)
    assert len(small.changes_after(7, 10)) == 2


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["change", "remove", "relabel"])), max_size=40),
    st.integers(1, 5),
)
def test_a_watcher_with_a_selector_ends_up_with_what_a_list_shows(steps: list[tuple[str, str]], limit: int) -> None:
    store: ObjectStore[PodChanged] = ObjectStore(pod_object)

    def wanted(found: Any) -> bool:
        return bool(found.labels.get("app") == "x")

    seen: dict[str, bytes] = {}
    position = 0
    for version, (name, step) in enumerate(steps, start=1):
        if step == "remove":
            store.remove(f"uid-{name}", version)
        else:
            store.change(pod_changed(version, name, labels={"app": "x" if step == "change" else "y"}), version)
        if version % 3 == 0 or version == len(steps):
            while changes := store.changes_after(position, limit):
                position = changes[-1].resource_version
                for change in changes:
                    kind = seen_as(change, wanted)
                    if kind is ChangeType.DELETED:
                        del seen[change.current.key]
                    elif kind is not None:
                        assert (kind is ChangeType.MODIFIED) == (change.current.key in seen)
                        seen[change.current.key] = change.current.json
    assert seen == {found.key: found.json for found in store.select(wanted)}


def test_a_watch_line_says_how_old_its_truth_is() -> None:
    assert watch_line("MODIFIED", b"{}", 12.5) == b'{"type":"MODIFIED","object":{},"observedAt":12.5}\n'
    assert watch_line("ADDED", b"{}") == b'{"type":"ADDED","object":{}}\n'
