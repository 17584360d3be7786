"""PodConfig: whole sets in, ordered differences out, nothing removed on partial knowledge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.annotations import CONFIG_SEEN, CONFIG_SOURCE
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import PodStatus
from supervisor.protocol.manifests import (
    DesiredPod,
    ManifestError,
    ManifestErrorKind,
    ManifestPod,
    SourceSnapshot,
    pod_key,
)
from supervisor.protocol.source_updates import PodOperation, PodUpdate, Update
from supervisor.sources.objects.merge import PodConfig
from tests.support.manifests import NOW, ORIGIN, pod, pod_updates

FILE, APPLY = "file", "apply"
APPLY_ORIGIN = msgspec.structs.replace(ORIGIN, source=APPLY)


def stated(*names: str, file: str = "a.yaml", origin: Any = ORIGIN, **fields: Any) -> list[ManifestPod]:
    return [
        ManifestPod(pod=pod(name, origin=origin, **fields), file=file, document=number)
        for number, name in enumerate(names, 1)
    ]


def snapshot(
    *pods: list[ManifestPod], source: str = FILE, bad: Iterable[str] = (), complete: bool = True
) -> SourceSnapshot:
    errors = tuple(ManifestError(kind=ManifestErrorKind.SYNTAX, file=file, message="bad") for file in bad)
    return SourceSnapshot(
        source=source, pods=tuple(p for group in pods for p in group), errors=errors, complete=complete
    )


def merge(config: PodConfig, *pods: list[ManifestPod], **fields: Any) -> list[tuple[str, list[str]]]:
    """Operations with the names of their pods."""
    return told(config.merge(snapshot(*pods, **fields), NOW))


def told(updates: Iterable[Update]) -> list[tuple[str, list[str]]]:
    return [(update.op.value, [pod.metadata.name for pod in update.pods]) for update in pod_updates(updates)]


def accepted(config: PodConfig) -> dict[str, str]:
    """Name to the file that holds it."""
    return {item.pod.metadata.name: item.file for item in config.desired()}


# --- differences ------------------------------------------------------------------------------------------------


def test_the_first_set_is_added() -> None:
    config = PodConfig([FILE])
    (update,) = pod_updates(config.merge(snapshot(stated("a", "b")), NOW))
    assert (update.op, update.source, len(update.pods)) == (PodOperation.ADD, FILE, 2)
    metadata = update.pods[0].metadata
    assert metadata.annotations[CONFIG_SEEN] == "2026-01-01T00:00:00.000000Z"
    assert metadata.annotations[CONFIG_SOURCE] == FILE
    assert (metadata.creation_timestamp, metadata.generation) == ("2026-01-01T00:00:00Z", 1)


def test_the_same_set_again_says_nothing() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a", "b"))
    before = config.desired()
    assert merge(config, stated("a", "b")) == []
    assert config.desired() == before


def test_delivery_is_in_upstreams_order() -> None:
    config = PodConfig([FILE])
    merge(config, stated("updated", "removed", "deleted", "reconciled"))
    reconciled, deleted = stated("reconciled", "deleted")
    deleted = msgspec.structs.replace(
        deleted,
        pod=msgspec.structs.replace(
            deleted.pod,
            metadata=msgspec.structs.replace(deleted.pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
        ),
    )
    reconciled = msgspec.structs.replace(
        reconciled, pod=msgspec.structs.replace(reconciled.pod, status=PodStatus(phase="Running"))
    )
    assert merge(config, [reconciled, deleted], stated("updated", image="other"), stated("added")) == [
        ("REMOVE", ["removed"]),
        ("ADD", ["added"]),
        ("UPDATE", ["updated"]),
        ("DELETE", ["deleted"]),
        ("RECONCILE", ["reconciled"]),
    ]


@pytest.mark.parametrize(
    ("fields", "operations"),
    [
        ({"image": "other"}, ["UPDATE"]),
        ({"metadata": {"labels": {"a": "b"}}}, ["UPDATE"]),
        ({"metadata": {"annotations": {"a": "b"}}}, ["UPDATE"]),
        ({"restartPolicy": "Never"}, ["UPDATE"]),
        ({"restartPolicy": "Always"}, []),
        ({"metadata": {"annotations": {CONFIG_SEEN: "x", CONFIG_SOURCE: "y", "kubernetes.io/config.mirror": "z"}}}, []),
        ({"metadata": {"finalizers": ["example.com/f"]}}, []),
        ({"metadata": {"uid": "another"}}, ["REMOVE", "ADD"]),
        ({"metadata": {"namespace": "another"}}, ["REMOVE", "ADD"]),
    ],
)
def test_what_counts_as_a_difference(fields: dict[str, Any], operations: list[str]) -> None:
    config = PodConfig([FILE])
    merge(config, stated("a"))
    assert [op for op, _ in merge(config, stated("a", **fields))] == operations


def test_an_update_keeps_what_this_host_gave_and_counts_the_generation() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a"))
    first = config.desired()[0].pod.metadata
    for generation, image in enumerate(("b", "c"), 2):
        merge(config, stated("a", image=image))
        metadata = config.desired()[0].pod.metadata
        assert metadata.generation == generation
        assert metadata.annotations[CONFIG_SEEN] == first.annotations[CONFIG_SEEN]
        assert (metadata.creation_timestamp, metadata.uid) == (first.creation_timestamp, first.uid)


def test_a_uid_under_another_name_is_another_pod() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a", metadata={"uid": "same"}))
    assert merge(config, stated("b", metadata={"uid": "same"})) == [("REMOVE", ["a"]), ("ADD", ["b"])]


def test_set_is_refused() -> None:
    with pytest.raises(ValueError, match="SET is not supported"):
        PodUpdate(op=PodOperation.SET, source=FILE)


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown source 'http'"):
        PodConfig([FILE]).merge(snapshot(source="http"), NOW)


# --- readiness --------------------------------------------------------------------------------------------------


def test_a_source_with_nothing_to_say_says_that_it_is_ready_once() -> None:
    config = PodConfig([FILE, APPLY])
    assert merge(config) == [("ADD", [])]
    assert merge(config) == []
    assert config.seen_sources() == {FILE}
    assert not config.all_ready()
    merge(config, source=APPLY)
    assert config.all_ready()


def test_an_incomplete_set_adds_and_updates_but_removes_nothing_and_is_not_ready() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a", "b"))
    assert merge(config, stated("a", image="new"), stated("c", file="c.yaml"), complete=False) == [
        ("ADD", ["c"]),
        ("UPDATE", ["a"]),
    ]
    assert merge(config, complete=False, bad=["/manifests"]) == []
    assert sorted(accepted(config)) == ["a", "b", "c"]
    other = PodConfig([FILE])
    assert merge(other, complete=False) == []
    assert not other.all_ready()


def test_an_absent_source_is_read_as_long_as_it_had_nothing() -> None:
    config = PodConfig([FILE])
    absent = SourceSnapshot(source=FILE, complete=False, absent=True)
    assert told(config.merge(absent, NOW)) == [("ADD", [])]
    assert config.all_ready()
    merge(config, stated("a"))
    assert told(config.merge(absent, NOW)) == []
    assert accepted(config) == {"a": "a.yaml"}
    other = PodConfig([FILE])
    other.restore(config.desired())
    assert told(other.merge(absent, NOW)) == []
    assert not other.all_ready()


# --- files with errors ------------------------------------------------------------------------------------------


def test_a_file_with_an_error_keeps_what_it_does_not_state_readably() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a", "b"), stated("c", file="c.yaml"))
    assert merge(config, stated("b", image="new"), bad=["a.yaml"]) == [("REMOVE", ["c"]), ("UPDATE", ["b"])]
    assert sorted(accepted(config)) == ["a", "b"]
    assert merge(config, stated("b", image="new")) == [("REMOVE", ["a"])]


def test_a_name_moved_out_of_a_file_that_broke_waits_until_it_can_be_read() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a"))
    assert merge(config, stated("a", file="b.yaml", image="new"), bad=["a.yaml"]) == []
    assert accepted(config) == {"a": "a.yaml"}
    assert [error.file for error in config.conflicts()] == ["b.yaml"]
    assert merge(config, stated("a", file="b.yaml", image="new")) == [("UPDATE", ["a"])]
    assert accepted(config) == {"a": "b.yaml"}


# --- two claims on one name -------------------------------------------------------------------------------------


def test_of_two_files_the_first_keeps_the_name_and_the_second_is_reported() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a", file="m.yaml"))
    assert merge(config, stated("a", file="b.yaml", image="other"), stated("a", file="m.yaml")) == []
    (error,) = config.conflicts()
    assert error.kind is ManifestErrorKind.CONFLICT
    assert str(error) == (
        "b.yaml: document 1: metadata.name: pod default/a already comes from file: m.yaml, which keeps it"
    )
    assert (error.namespace, error.name) == ("default", "a")
    assert merge(config, stated("a", file="b.yaml", image="other")) == [("UPDATE", ["a"])]
    assert config.conflicts() == ()


def test_of_two_documents_of_a_file_the_first_keeps_the_name() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a", "b"), [ManifestPod(pod=pod("a", image="other"), file="a.yaml", document=3)])
    assert [str(error).split(":")[1] for error in config.conflicts()] == [" document 3"]
    assert config.holder(("default", "a")) == config.desired()[0]


def test_of_two_sources_the_first_keeps_the_name_and_the_other_takes_over_in_the_same_merge() -> None:
    config = PodConfig([FILE, APPLY])
    merge(config, stated("a"))
    applied = stated("a", "x", file="default.a.json", origin=APPLY_ORIGIN)
    assert merge(config, applied, source=APPLY) == [("ADD", ["x"])]
    assert len(config.conflicts()) == 1
    assert config.desired_elsewhere(APPLY) == {("default", "a"): "file: a.yaml"}
    updates = pod_updates(config.merge(snapshot(stated("b")), NOW))
    assert [(update.source, update.op.value) for update in updates] == [
        (FILE, "REMOVE"),
        (FILE, "ADD"),
        (APPLY, "ADD"),
    ]
    assert config.conflicts() == ()
    assert {item.pod.metadata.name: item.source for item in config.desired()} == {"a": APPLY, "b": FILE, "x": APPLY}


def test_two_names_with_one_uid_are_a_conflict() -> None:
    config = PodConfig([FILE])
    merge(config, stated("a", metadata={"uid": "same"}), stated("b", file="b.yaml", metadata={"uid": "same"}))
    assert accepted(config) == {"a": "a.yaml"}
    assert [error.field for error in config.conflicts()] == ["metadata.uid"]


# --- RESTORE ----------------------------------------------------------------------------------------------------


def checkpointed() -> tuple[DesiredPod, ...]:
    config = PodConfig([FILE])
    merge(config, stated("a", "b"), stated("c", file="c.yaml"))
    merge(config, stated("a", image="v2"), stated("b"), stated("c", file="c.yaml"))
    return config.desired()


def test_a_restored_set_is_supervised_and_makes_nothing_ready() -> None:
    config = PodConfig([FILE, APPLY])
    assert told(config.restore(checkpointed())) == [("RESTORE", ["a", "b", "c"])]
    assert config.desired() == checkpointed()
    assert config.seen_sources() == frozenset()


def test_the_real_source_is_compared_with_the_restored_set() -> None:
    config = PodConfig([FILE])
    config.restore(checkpointed())
    assert merge(config, complete=False) == []
    assert merge(config, stated("a", image="v3"), stated("d", file="d.yaml"), bad=["c.yaml"]) == [
        ("REMOVE", ["b"]),
        ("ADD", ["d"]),
        ("UPDATE", ["a"]),
    ]
    generations = {item.pod.metadata.name: item.pod.metadata.generation for item in config.desired()}
    assert generations == {"a": 3, "c": 1, "d": 1}


def test_an_unchanged_set_after_a_restart_says_only_that_the_source_is_ready() -> None:
    config = PodConfig([FILE])
    config.restore(checkpointed())
    assert merge(config, stated("a", image="v2"), stated("b"), stated("c", file="c.yaml")) == [("ADD", [])]


def test_the_first_claim_stays_the_first_over_a_restart() -> None:
    config = PodConfig([FILE])
    config.restore(checkpointed())
    merge(config, stated("c", file="b.yaml", image="other"), stated("c", file="c.yaml"))
    assert accepted(config) == {"c": "c.yaml"}


def test_pods_of_a_source_that_is_not_configured_are_not_restored() -> None:
    config = PodConfig([APPLY])
    assert config.restore(checkpointed()) == ()
    assert config.desired() == ()


def test_restoring_after_a_source_spoke_is_refused() -> None:
    config = PodConfig([FILE])
    merge(config)
    with pytest.raises(ValueError, match="RESTORE after"):
        config.restore(checkpointed())


# --- properties -------------------------------------------------------------------------------------------------

PODS = {
    (name, image, source): pod(name, image=image, origin=ORIGIN if source == FILE else APPLY_ORIGIN)
    for name in "abcd"
    for image in ("v1", "v2")
    for source in (FILE, APPLY)
}
FILES = ("x.yaml", "y.yaml", "z.yaml")


@st.composite
def snapshots(draw: st.DrawFn) -> SourceSnapshot:
    source = draw(st.sampled_from((FILE, APPLY)))
    documents = draw(
        st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from("abcd"), st.sampled_from(("v1", "v2"))), max_size=6)
    )
    pods = [
        ManifestPod(pod=PODS[name, image, source], file=file, document=number)
        for number, (file, name, image) in enumerate(sorted(documents), 1)
    ]
    return snapshot(
        pods, source=source, bad=draw(st.sets(st.sampled_from(FILES), max_size=2)), complete=draw(st.booleans())
    )


def replay(world: dict[str, Pod], updates: Iterable[PodUpdate]) -> None:
    """Pods that the sync loop is left with; an operation on a pod in the wrong state is an error."""
    for update in updates:
        for item in update.pods:
            uid = item.metadata.uid
            assert (uid in world) == (update.op not in (PodOperation.ADD, PodOperation.RESTORE))
            if update.op is PodOperation.REMOVE:
                del world[uid]
            else:
                world[uid] = item


@given(st.lists(snapshots(), max_size=8), st.integers(0, 8))
def test_any_sequence_of_snapshots(sequence: list[SourceSnapshot], restart_at: int) -> None:
    config = PodConfig([FILE, APPLY])
    world: dict[str, Pod] = {}
    for number, current in enumerate(sequence):
        if number == restart_at:
            previous, config, world = config, PodConfig([FILE, APPLY]), {}
            replay(world, pod_updates(config.restore(previous.desired())))
        before = config.desired()
        updates = pod_updates(config.merge(current, NOW))
        replay(world, updates)
        assert world == {item.pod.metadata.uid: item.pod for item in config.desired()}
        names = [pod_key(item.pod) for item in config.desired()]
        assert len(names) == len(set(names))
        check_what_stays(current, before, config)
        check_what_is_stated(current, config)


def check_what_stays(current: SourceSnapshot, before: Iterable[DesiredPod], config: PodConfig) -> None:
    """Nothing is removed without complete knowledge, and nothing at all of another source."""
    now = {(item.source, pod_key(item.pod)) for item in config.desired()}
    gone = [item for item in before if (item.source, pod_key(item.pod)) not in now]
    assert all(item.source == current.source for item in gone)
    assert not gone or current.complete
    assert not {item.file for item in gone} & current.held_files()


def check_what_is_stated(current: SourceSnapshot, config: PodConfig) -> None:
    """Every stated name is held by somebody; every loser is reported; a complete set makes its source ready."""
    held = {pod_key(item.pod): item for item in config.desired()}
    assert all(pod_key(item.pod) in held for item in current.pods)
    places = {(item.file, item.document) for item in config.desired() if item.source == current.source}
    reported = {(error.file, error.document) for error in config.conflicts()}
    assert all((item.file, item.document) in places | reported for item in current.pods)
    assert not current.complete or current.source in config.seen_sources()
