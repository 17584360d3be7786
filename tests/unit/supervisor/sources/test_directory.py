"""Reading a manifest directory or file: what counts, what is an error, what is never opened or decoded twice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from supervisor.protocol.manifests import ManifestErrorKind, SourceSnapshot
from supervisor.sources import directory
from supervisor.sources.directory import MAX_FILES, MAX_NAMES, ManifestReader, changed_files, chosen, list_manifests
from tests.support.manifests import ORIGIN, errors, manifest, read, text


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    path = tmp_path / "manifests"
    path.mkdir()
    return path


def names(snapshot: SourceSnapshot) -> list[str]:
    return [item.pod.metadata.name for item in snapshot.pods]


def forbid(path: Path) -> None:
    """Take all permissions away; nothing to test for a root that reads all the same."""
    path.chmod(0)
    if os.access(path, os.R_OK):
        path.chmod(0o700)
        pytest.skip("permissions do not bind this user")


def test_files_are_read_in_the_order_of_their_names(manifests: Path) -> None:
    (manifests / "b.yml").write_bytes(text(manifest("b1"), manifest("b2")))
    (manifests / "c.json").write_text(
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},"spec":{"containers":[]}}'
    )
    (manifests / "a.yaml").write_bytes(text(manifest("a")))
    snapshot = read(manifests)
    assert names(snapshot) == ["a", "b1", "b2"]
    assert [(item.file, item.document) for item in snapshot.pods] == [("a.yaml", 1), ("b.yml", 1), ("b.yml", 2)]
    assert snapshot.complete
    assert snapshot.held_files() == {"c.json"}
    assert errors(snapshot)[0].startswith("c.json: document 1: spec.containers: ")


@pytest.mark.parametrize(
    "name",
    [
        ".web.yaml",
        ".web.yaml.swp",
        ".#web.yaml",
        "#web.yaml#",
        "web.yaml~",
        "web.yaml.swp",
        "web.yaml.tmp",
        "web.yaml.bak",
        "4913",
        "web.txt",
        "yaml",
        "..data",
    ],
)
def test_editors_temporary_files_are_no_manifests(manifests: Path, name: str) -> None:
    (manifests / name).write_bytes(b"\x00 not yaml")
    (manifests / "web.yaml").write_bytes(text(manifest()))
    assert (names(read(manifests)), errors(read(manifests))) == (["web"], [])


def test_sub_directories_are_ignored_unless_they_look_like_manifests(manifests: Path) -> None:
    (manifests / "sub").mkdir()
    (manifests / "sub" / "web.yaml").write_bytes(text(manifest()))
    (manifests / "x.yaml").mkdir()
    snapshot = read(manifests)
    assert names(snapshot) == []
    assert errors(snapshot) == ["x.yaml: is a directory, not a regular file"]
    assert snapshot.complete


def test_a_file_that_became_a_fifo_after_the_look_is_not_waited_for(manifests: Path) -> None:
    (manifests / "web.yaml").write_bytes(text(manifest()))
    listing = list_manifests(manifests)
    (manifests / "web.yaml").unlink()
    os.mkfifo(manifests / "web.yaml")
    snapshot = ManifestReader(manifests, ORIGIN).read(listing)
    assert errors(snapshot) == ["web.yaml: is a FIFO, not a regular file"]


def test_links_to_files_are_followed(manifests: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_bytes(text(manifest()))
    (manifests / "web.yaml").symlink_to(tmp_path / "elsewhere.txt")
    (manifests / "dangling.yaml").symlink_to(tmp_path / "nowhere")
    (manifests / "loop.yaml").symlink_to(manifests / "loop.yaml")
    snapshot = read(manifests)
    assert names(snapshot) == ["web"]
    assert errors(snapshot) == [
        "dangling.yaml: No such file or directory",
        "loop.yaml: Too many levels of symbolic links",
    ]


def test_an_unreadable_file_is_held_and_read_once_it_can_be(manifests: Path) -> None:
    (manifests / "web.yaml").write_bytes(text(manifest()))
    forbid(manifests / "web.yaml")
    reader = ManifestReader(manifests, ORIGIN)
    snapshot = reader.read(list_manifests(manifests))
    assert errors(snapshot) == ["web.yaml: Permission denied"]
    assert snapshot.complete
    (manifests / "web.yaml").chmod(0o600)
    assert names(reader.read(list_manifests(manifests))) == ["web"]


def test_an_unlistable_directory_is_not_an_empty_one(manifests: Path) -> None:
    forbid(manifests)
    try:
        snapshot = read(manifests)
    finally:
        manifests.chmod(0o700)
    assert not snapshot.complete
    assert errors(snapshot) == [f"{manifests}: Permission denied"]


def test_large_files_are_refused_without_being_read(manifests: Path) -> None:
    (manifests / "large.yaml").write_bytes(b"#" * (2 << 20))
    (manifests / "web.yaml").write_bytes(text(manifest()))
    snapshot = read(manifests)
    assert names(snapshot) == ["web"]
    assert errors(snapshot) == ["large.yaml: 2097152 bytes, more than the maximum of 1048576"]


def test_the_largest_file_is_read(manifests: Path) -> None:
    content = text(manifest())
    (manifests / "web.yaml").write_bytes(content + b"#" * ((1 << 20) - len(content)))
    assert names(read(manifests)) == ["web"]


def test_garbage_and_empty_files_are_held(manifests: Path) -> None:
    (manifests / "binary.yaml").write_bytes(bytes(range(256)))
    (manifests / "empty.yaml").write_bytes(b"")
    (manifests / "web.yaml").write_bytes(text(manifest()))
    snapshot = read(manifests)
    assert names(snapshot) == ["web"]
    assert errors(snapshot) == [
        "binary.yaml: is not UTF-8 text: byte 0x80 at offset 128",
        "empty.yaml: has no pod or other object in it; to end the pods that it had before, remove the file",
    ]
    assert snapshot.complete


def test_a_missing_directory_is_not_an_empty_one(manifests: Path) -> None:
    assert read(manifests) == SourceSnapshot(source="file", complete=True)
    manifests.rmdir()
    snapshot = read(manifests)
    assert not snapshot.complete
    assert errors(snapshot) == [f"{manifests}: No such file or directory"]


def test_a_directory_with_very_many_manifests_counts_as_not_read(
    manifests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_NAMES >= 10 * MAX_FILES
    monkeypatch.setattr(directory, "MAX_NAMES", 2)
    for index in range(3):
        (manifests / f"{index}.yaml").write_bytes(text(manifest(f"p{index}")))
    snapshot = read(manifests)
    assert (names(snapshot), snapshot.complete) == ([], False)
    assert errors(snapshot) == [f"{manifests}: more than 2 manifests"]


@pytest.mark.parametrize(
    ("known", "read", "unread"),
    [
        ((), "abc", "de"),
        ("e", "eab", "cd"),
        ("ed", "dea", "bc"),
        ("xyz", "abc", "de"),
        ("abcde", "abc", "de"),
    ],
)
def test_files_that_are_known_are_read_first(known: Sequence[str], read: str, unread: str) -> None:
    assert chosen("dbeca", frozenset(known), 3) == (tuple(read), tuple(unread))


def test_of_more_files_than_are_read_those_that_state_something_stay(
    manifests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of files ends no pod, and what is not read is told; also where the agent was restarted meanwhile."""
    (manifests / "web.yaml").write_bytes(text(manifest("web")))
    reader, restarted = ManifestReader(manifests, ORIGIN), ManifestReader(manifests, ORIGIN)
    reader.read(reader.look())
    restarted.expect(["web.yaml"])
    monkeypatch.setattr(directory, "MAX_FILES", 2)
    for name in "abc":
        (manifests / f"{name}.yaml").write_bytes(text(manifest(name)))
    for each in (reader, restarted):
        snapshot = each.read(each.look())
        assert (names(snapshot), snapshot.complete) == (["a", "web"], True)
        assert errors(snapshot) == [f"{manifests}: 2 manifests are not read, such as b.yaml: 2 files are the maximum"]
    (manifests / "a.yaml").unlink()
    assert names(reader.read(reader.look())) == ["b", "web"]


def test_a_single_file_needs_no_suffix(tmp_path: Path) -> None:
    path = tmp_path / "pods.conf"
    path.write_bytes(text(manifest("a"), manifest("b")))
    snapshot = read(path)
    assert (names(snapshot), snapshot.complete) == (["a", "b"], True)
    assert {item.file for item in snapshot.pods} == {"pods.conf"}
    path.unlink()
    assert not read(path).complete


def test_names_of_any_bytes_are_shown_on_one_line(manifests: Path) -> None:
    odd = os.fsencode(manifests) + b"/a\n\x1b[31m\xff.yaml"
    with open(odd, "wb") as file:
        file.write(text(manifest()))
    snapshot = read(manifests)
    assert snapshot.pods[0].file == r"a\n\x1b[31m\xff.yaml"


# --- what is read when ------------------------------------------------------------------------------------------


def test_an_unchanged_file_is_not_opened_again(manifests: Path) -> None:
    (manifests / "web.yaml").write_bytes(text(manifest()))
    reader = ManifestReader(manifests, ORIGIN)
    listing = list_manifests(manifests)
    first = reader.read(listing)
    (manifests / "web.yaml").unlink()
    second = reader.read(listing)
    assert second == first
    assert second.pods[0].pod is first.pods[0].pod


def test_a_replaced_file_is_read_even_when_size_and_mtime_are_the_same(manifests: Path) -> None:
    path, other = manifests / "web.yaml", manifests / "other"
    path.write_bytes(text(manifest("one")))
    reader = ManifestReader(manifests, ORIGIN)
    reader.read(list_manifests(manifests))
    other.write_bytes(text(manifest("two")))
    shutil.copystat(path, other)
    other.replace(path)
    assert names(reader.read(list_manifests(manifests))) == ["two"]


def test_an_edit_that_keeps_size_and_mtime_is_seen(manifests: Path) -> None:
    path = manifests / "web.yaml"
    path.write_bytes(text(manifest("one")))
    reader = ManifestReader(manifests, ORIGIN)
    reader.read(list_manifests(manifests))
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # until the file system's clock has ticked
        path.write_bytes(text(manifest("two")))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert names(reader.read(list_manifests(manifests))) == ["two"]


def test_a_removed_file_is_forgotten(manifests: Path) -> None:
    (manifests / "web.yaml").write_bytes(text(manifest()))
    reader = ManifestReader(manifests, ORIGIN)
    before = list_manifests(manifests)
    reader.read(before)
    (manifests / "web.yaml").unlink()
    assert reader.read(list_manifests(manifests)).pods == ()
    assert errors(reader.read(before)) == ["web.yaml: No such file or directory"]


def test_a_file_that_changed_after_the_look_is_held(manifests: Path) -> None:
    (manifests / "web.yaml").write_bytes(text(manifest()))
    listing = list_manifests(manifests)
    with (manifests / "web.yaml").open("ab") as file:
        file.write(b"\n---\n")
    reader = ManifestReader(manifests, ORIGIN)
    snapshot = reader.read(listing)
    assert [error.kind for error in snapshot.errors] == [ManifestErrorKind.CHANGING]
    assert (snapshot.pods, snapshot.complete) == ((), True)
    assert names(reader.read(list_manifests(manifests))) == ["web"]


def test_changes_are_files_that_came_went_or_differ(manifests: Path) -> None:
    for name in ("same.yaml", "gone.yaml", "edited.yaml"):
        (manifests / name).write_bytes(text(manifest()))
    before = list_manifests(manifests)
    (manifests / "gone.yaml").unlink()
    (manifests / "edited.yaml").write_bytes(text(manifest(), manifest("b")))
    (manifests / "new.yaml").write_bytes(b"")
    now = list_manifests(manifests)
    assert changed_files(before, now) == {"gone.yaml", "edited.yaml", "new.yaml"}
    assert changed_files(now, now) == frozenset()


def test_changing_files_are_held_also_when_they_are_gone(manifests: Path) -> None:
    (manifests / "web.yaml").write_bytes(text(manifest()))
    reader = ManifestReader(manifests, ORIGIN)
    snapshot = reader.read(list_manifests(manifests), frozenset({"web.yaml", "vanished.yaml"}))
    assert snapshot.pods == ()
    assert snapshot.held_files() == {"web.yaml", "vanished.yaml"}


def test_files_that_are_no_manifests_are_named(tmp_path: Path) -> None:
    for name in (
        "web.yaml",
        "a.json",
        "web.yaml.txt",
        "README.md",
        "web",
        ".hidden",
        "x.yaml~",
        "#x.yaml#",
        "a\n.YAML",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for below in ("team/web.yaml", "notes/web.txt", ".git/web.yaml", "lost+found/.keep"):
        (tmp_path / below).parent.mkdir()
        (tmp_path / below).write_text("")
    listing = list_manifests(tmp_path)
    assert listing.skipped == {"README.md", "a\\n.YAML", "web", "web.yaml.txt", "team/"}
    assert listing.files.keys() == {"web.yaml", "a.json"}
    assert list_manifests(tmp_path / "absent").skipped == frozenset()
