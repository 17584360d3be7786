"""`rootlet apply`: what is stored, what is said, what is refused, and that a restart reads the same."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from supervisor.protocol.manifests import APPLY_SOURCE, FILE_SOURCE, ManifestErrorKind, SourceSnapshot
from supervisor.sources import applied
from supervisor.sources.applied import AppliedStore, file_name
from supervisor.sources.objects.identity import Origin, pod_uid
from supervisor.sources.objects.merge import PodConfig
from supervisor.sources.secret_places import last_directory
from tests.support.applied import patched
from tests.support.manifests import NOW, manifest, text

ORIGIN = Origin(instance="test", node_name="node-1", source=APPLY_SOURCE)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "applied"


@pytest.fixture
def pods(directory: Path) -> AppliedStore:
    return AppliedStore(directory, ORIGIN)


def apply(pods: AppliedStore, *manifests: dict[str, Any]) -> tuple[str, ...]:
    result = pods.apply("-", text(*manifests), {})
    assert result.errors == ()
    return result.lines


def refused(pods: AppliedStore, body: bytes, **elsewhere: str) -> list[str]:
    result = pods.apply("in.yaml", body, {("default", name): place for name, place in elsewhere.items()})
    assert result.lines == ()
    return [str(error) for error in result.errors]


def names(pods: AppliedStore) -> list[str]:
    return [item.pod.metadata.name for item in pods.read().pods]


def test_nothing_applied_is_a_complete_set(pods: AppliedStore) -> None:
    assert pods.read() == SourceSnapshot(source=APPLY_SOURCE, complete=True)


def test_what_apply_says(pods: AppliedStore) -> None:
    assert apply(pods, manifest("a"), manifest("b")) == ("pod/a created", "pod/b created")
    assert apply(pods, manifest("a", image="new"), manifest("b")) == ("pod/a configured", "pod/b unchanged")
    assert names(pods) == ["a", "b"]


def test_pods_of_different_namespaces_live_side_by_side(pods: AppliedStore) -> None:
    assert apply(pods, manifest("a"), manifest("a", metadata={"namespace": "prod"})) == ("pod/a created",) * 2
    assert pods.delete(("prod", "a"))
    assert [item.pod.metadata.namespace for item in pods.read().pods] == ["default"]


def test_delete_forgets(pods: AppliedStore) -> None:
    apply(pods, manifest("a"), manifest("b"))
    assert pods.delete(("default", "a"))
    assert not pods.delete(("default", "a"))
    assert names(pods) == ["b"]


def test_everything_stored_is_private(pods: AppliedStore, directory: Path) -> None:
    apply(pods, manifest("a"))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [(path.name, stat.S_IMODE(path.stat().st_mode)) for path in directory.iterdir()] == [
        ("default.a.json", 0o600)
    ]


def test_a_restart_reads_the_same_pods(pods: AppliedStore, directory: Path) -> None:
    apply(pods, manifest("a", metadata={"labels": {"x": "y"}}), manifest("b", restartPolicy="Never"))
    before, after = pods.read(), AppliedStore(directory, ORIGIN).read()
    assert after == before
    assert after.pods[0].pod.metadata.uid == pod_uid("test", APPLY_SOURCE, "default", "a")
    assert apply(AppliedStore(directory, ORIGIN), manifest("a", metadata={"labels": {"x": "y"}})) == (
        "pod/a unchanged",
    )


def test_what_a_killed_write_left_behind_is_no_pod(pods: AppliedStore, directory: Path) -> None:
    apply(pods, manifest("a"))
    (directory / ".default.a.json.tmp").write_bytes(b'{"half": ')
    assert (names(pods), pods.read().errors) == (["a"], ())
    assert apply(pods, manifest("a", image="new")) == ("pod/a configured",)
    assert [path.name for path in directory.iterdir()] == ["default.a.json"]


def test_one_error_and_nothing_is_applied(pods: AppliedStore) -> None:
    bad = manifest("b")
    bad["spec"]["containers"][0]["imag"] = "x"
    (message,) = refused(pods, text(manifest("a"), bad))
    assert message.startswith("in.yaml: document 2: spec.containers[0].imag: unknown field")
    assert names(pods) == []


def test_a_name_twice_in_one_request_is_refused(pods: AppliedStore) -> None:
    assert refused(pods, text(manifest("a"), manifest("a", image="other"))) == [
        "in.yaml: document 2: metadata.name: pod default/a already comes from document 1"
    ]


def test_a_name_that_another_source_states_is_refused(pods: AppliedStore) -> None:
    assert refused(pods, text(manifest("a"), manifest("b")), b="file: web.yaml") == [
        "in.yaml: document 2: metadata.name: pod default/b already comes from file: web.yaml"
    ]
    assert names(pods) == []


def test_what_is_too_large_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(AppliedStore(directory, ORIGIN, 1024), b"#" * 1025) == ["in.yaml: more than 1024 bytes"]
    monkeypatch.setattr(applied, "MAX_APPLIED_OBJECTS", 2)
    pods = AppliedStore(directory, ORIGIN)
    apply(pods, manifest("a"), manifest("b"))
    assert refused(pods, text(manifest("c"))) == ["in.yaml: more than 2 applied objects"]
    assert apply(pods, manifest("a", image="new")) == ("pod/a configured",)


def test_nothing_is_an_error(pods: AppliedStore) -> None:
    (message,) = refused(pods, b"")
    assert "has no pod or other object in it" in message


def test_a_damaged_store_is_reported_and_keeps_its_pods(pods: AppliedStore, directory: Path) -> None:
    apply(pods, manifest("a"), manifest("b"))
    config = PodConfig([APPLY_SOURCE])
    config.merge(pods.read(), NOW)
    (directory / "default.a.json").write_bytes(b"\x00\x00")
    snapshot = pods.read()
    assert snapshot.complete
    assert config.merge(snapshot, NOW) == ()
    assert {item.pod.metadata.name for item in config.desired()} == {"a", "b"}


def test_a_store_that_cannot_be_read_is_not_complete(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a directory should be")
    snapshot = AppliedStore(tmp_path / "state" / "applied", ORIGIN).read()
    assert not snapshot.complete
    assert [error.kind for error in snapshot.errors] == [ManifestErrorKind.UNREADABLE]


def test_a_full_disk_is_the_callers_to_tell(pods: AppliedStore, directory: Path) -> None:
    directory.mkdir(parents=True)
    directory.chmod(0o500)
    with pytest.raises(PermissionError):
        pods.apply("-", text(manifest("a")), {})
    assert names(pods) == []


@pytest.mark.parametrize(
    ("namespace", "name", "plain"),
    [
        ("default", "web", True),
        ("default", "web.example", True),
        ("default", "x" * 253, False),
        ("..", "..", False),
        ("default", "../../etc/passwd", False),
        ("", "a\0b", False),
        ("default", "\udc80", False),
    ],
)
def test_file_names_stay_in_their_directory(namespace: str, name: str, plain: bool) -> None:
    made = file_name((namespace, name))
    assert (made == f"{namespace}.{name}.json") == plain
    assert not set(made) & {"/", "\0"}
    assert len(made) < 255
    assert not made.startswith(".")


def test_deleting_what_was_never_a_pod_is_harmless(pods: AppliedStore) -> None:
    pods.read()
    assert not pods.delete(("..", "../../../etc/passwd"))


def test_long_names_are_stored(pods: AppliedStore) -> None:
    long = ".".join(["x" * 60] * 4)
    assert apply(pods, manifest(long)) == (f"pod/{long} created",)
    assert names(pods) == [long]
    assert pods.delete(("default", long))


def test_applied_pods_and_files_share_one_set_of_names(pods: AppliedStore) -> None:
    config = PodConfig([FILE_SOURCE, APPLY_SOURCE])
    apply(pods, manifest("a"))
    config.merge(pods.read(), NOW)
    assert config.desired_elsewhere(FILE_SOURCE) == {("default", "a"): "apply: default.a.json"}
    assert config.desired_elsewhere(APPLY_SOURCE) == {}
    again = pods.apply("-", text(manifest("a", image="new")), config.desired_elsewhere(APPLY_SOURCE))
    assert (again.lines, again.errors) == (("pod/a configured",), ())


def _vanish(directory: Path, how: str) -> None:
    if how == "removed":
        shutil.rmtree(directory.parent)
    elif how == "emptied":
        for path in directory.iterdir():
            path.unlink()
    else:
        (directory / "default.a.json").unlink()


@pytest.mark.parametrize("how", ["removed", "emptied", "one file"])
def test_a_directory_that_went_away_ends_no_pod_and_is_written_again(
    pods: AppliedStore, directory: Path, how: str
) -> None:
    apply(pods, manifest("a"), manifest("b"))
    before = pods.read()
    assert not pods.has_gaps()
    _vanish(directory, how)
    assert pods.has_gaps()
    assert apply(pods, manifest("c")) == ("pod/c created",)
    assert names(pods) == ["a", "b", "c"]
    assert AppliedStore(directory, ORIGIN).read().pods[:2] == before.pods
    again = {path.name for path in pods.take_written_again()}
    assert again == ({"default.a.json"} if how == "one file" else {"default.a.json", "default.b.json"})
    assert (pods.take_written_again(), pods.has_gaps()) == ((), False)


@pytest.mark.parametrize("by", ["who has changed it", "its successor"])
@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_what_was_applied_last_is_written_again(pods: AppliedStore, directory: Path, by: str, how: str) -> None:
    """Else the next apply would not know which label a command has set, and which one a manifest."""
    apply(pods, manifest("a"))
    labels = b'{"metadata": {"labels": {"by": "hand"}}}'
    assert patched(pods, ("default", "a"), "application/merge-patch+json", labels) is not None
    store = pods if by == "who has changed it" else AppliedStore(directory, ORIGIN)
    store.read()
    last = last_directory(directory)
    [kept] = last.iterdir()
    before = kept.read_bytes()
    assert not store.has_gaps()
    _vanish(directory, "removed")
    if how == "emptied":
        last.mkdir(parents=True)
    assert store.has_gaps()
    store.read()
    assert (kept.read_bytes(), store.has_gaps()) == (before, False)
    assert kept in store.take_written_again()
    assert store.delete(("default", "a"))
    assert not store.has_gaps(), "deleted with its object"


def test_an_object_whose_file_went_away_is_deleted_as_any_other(pods: AppliedStore, directory: Path) -> None:
    apply(pods, manifest("a"), manifest("b"))
    _vanish(directory, "removed")
    assert pods.delete(("default", "a"))
    assert names(pods) == ["b"]


def test_what_cannot_be_written_again_is_held_and_told(pods: AppliedStore, directory: Path) -> None:
    apply(pods, manifest("a"))
    _vanish(directory, "removed")
    directory.parent.write_text("in the way")
    snapshot = pods.read()
    assert not snapshot.complete
    assert [error.file for error in snapshot.errors] == [str(directory)]


def test_a_file_in_the_place_of_the_directory_is_no_empty_one(directory: Path) -> None:
    directory.parent.mkdir()
    directory.write_text("in the way")
    assert not AppliedStore(directory, ORIGIN).read().complete


def test_a_directory_that_went_away_while_no_agent_ran_is_that_of_the_checkpoint(directory: Path) -> None:
    first = AppliedStore(directory, ORIGIN)
    apply(first, manifest("a"), manifest("b"))
    accepted = [item.pod for item in first.read().pods]
    first.delete(("default", "b"))
    emptied = AppliedStore(directory, ORIGIN)
    emptied.expect(accepted)  # the checkpoint was not written any more: the directory is the truth
    assert names(emptied) == ["a"]
    _vanish(directory, "removed")
    successor = AppliedStore(directory, ORIGIN)
    successor.expect(accepted[:1])
    assert names(successor) == ["a"]
    assert [path.name for path in successor.take_written_again()] == ["default.a.json"]
