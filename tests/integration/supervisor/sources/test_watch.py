"""Watching real directories: changes arrive, half-written files do not, a directory may come and go."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import monotonic
from ipc.link.eventloop.backoff import Backoff
from supervisor.protocol.manifests import ManifestErrorKind, SourceSnapshot
from supervisor.sources import directory, watch
from supervisor.sources.directory import ManifestReader, list_manifests
from supervisor.sources.source_place import PlaceRecord
from supervisor.sources.watch import SETTLE_S, watch_manifests, watch_targets
from tests.support.manifests import ORIGIN, eventually, manifest, text

NEVER_S = 600.0
"""A period that no test reaches: what arrives was notified."""


@pytest.fixture(autouse=True)
def _no_safety_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only notifications make an idle watch look whether its directory is still the same."""
    monkeypatch.setattr(watch, "TARGET_CHECK_S", NEVER_S)


class Watched:
    """The snapshots that a watch has given so far."""

    def __init__(self) -> None:
        self.snapshots: list[SourceSnapshot] = []

    @property
    def last(self) -> SourceSnapshot:
        return self.snapshots[-1]

    def names(self) -> list[str]:
        return [item.pod.metadata.name for item in self.last.pods]

    async def until(self, condition: Callable[[], bool]) -> None:
        async def holds() -> bool:
            return bool(self.snapshots) and condition()

        await eventually(holds)

    async def until_names(self, *names: str) -> None:
        await self.until(lambda: self.names() == list(names))


@contextlib.asynccontextmanager
async def watched(path: Path, period_s: float = NEVER_S, keeper: PlaceRecord | None = None) -> AsyncIterator[Watched]:
    result = Watched()

    async def collect() -> None:
        reader = ManifestReader(path, ORIGIN, apart=True)
        async with contextlib.aclosing(watch_manifests(reader, period_s, keeper)) as snapshots:
            async for snapshot in snapshots:
                result.snapshots.append(snapshot)

    task = asyncio.create_task(collect())
    try:
        yield result
    finally:
        assert not task.done(), task.exception()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def replace(path: Path, *manifests: dict[str, Any]) -> None:
    """As careful editors and tools write: a temporary file, renamed."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(text(*manifests))
    temporary.replace(path)


def make(path: Path) -> None:
    path.mkdir(parents=True)


def swap(path: Path, other: Path) -> None:
    path.rename(path.with_name("old"))
    other.rename(path)


def exchange(path: Path, away: Path) -> None:
    """For an empty one, as an unmount does."""
    path.rename(away)
    path.mkdir()


def come_back(path: Path, away: Path) -> None:
    path.rmdir()
    away.rename(path)


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    path = tmp_path / "manifests"
    path.mkdir()
    return path


async def test_files_that_come_change_and_go(manifests: Path) -> None:
    async with watched(manifests) as seen:
        await seen.until_names()
        assert seen.last.complete
        replace(manifests / "a.yaml", manifest("a"))
        await seen.until_names("a")
        (manifests / "b.yaml").write_bytes(text(manifest("b1"), manifest("b2")))
        await seen.until_names("a", "b1", "b2")
        replace(manifests / "a.yaml", manifest("a", image="new"))
        await seen.until(lambda: seen.last.pods[0].pod.spec.containers[0].image == "new")
        (manifests / "a.yaml").unlink()
        await seen.until_names("b1", "b2")


async def test_what_is_there_is_read_at_once(manifests: Path) -> None:
    replace(manifests / "a.yaml", manifest("a"))
    async with watched(manifests) as seen:
        await seen.until_names("a")
        assert len(seen.snapshots) == 1


async def test_what_does_not_differ_is_not_told_again(manifests: Path) -> None:
    replace(manifests / "a.yaml", manifest("a"))
    async with watched(manifests) as seen:
        await seen.until_names("a")
        replace(manifests / "a.yaml", manifest("a"))
        (manifests / "note.txt").write_text("no manifest")
        replace(manifests / "b.yaml", manifest("b"))
        await seen.until_names("a", "b")
        assert [len(snapshot.pods) for snapshot in seen.snapshots] == [1, 2]


async def test_a_file_written_in_pieces_is_never_taken_half(manifests: Path) -> None:
    """Every prefix that ends behind a document is valid YAML and states fewer pods."""
    replace(manifests / "a.yaml", *(manifest(f"p{index}") for index in range(6)))
    async with watched(manifests) as seen:
        await seen.until(lambda: len(seen.last.pods) == 6)
        with (manifests / "a.yaml").open("wb") as file:
            for index in range(6):
                file.write(b"---\n" + text(manifest(f"p{index}", image="new")) + b"\n")
                file.flush()
                await asyncio.sleep(SETTLE_S / 4)
        await seen.until(lambda: bool(seen.last.pods) and seen.last.pods[0].pod.spec.containers[0].image == "new")
        assert {len(snapshot.pods) for snapshot in seen.snapshots if not snapshot.held_files()} == {6}


async def test_a_file_that_never_holds_still_is_held_and_does_not_stop_the_others(manifests: Path) -> None:
    replace(manifests / "a.yaml", manifest("a"))
    stop = threading.Event()

    def scribble() -> None:
        with (manifests / "noisy.yaml").open("ab") as file:
            while not stop.wait(SETTLE_S / 10):
                file.write(b"# and on\n")
                file.flush()

    scribbling = asyncio.create_task(asyncio.to_thread(scribble))
    try:
        async with watched(manifests) as seen:
            await seen.until_names("a")
            assert [error.kind for error in seen.last.errors] == [ManifestErrorKind.CHANGING]
            assert seen.last.held_files() == {"noisy.yaml"}
            stop.set()
            await seen.until(lambda: seen.last.errors[0].kind is ManifestErrorKind.INVALID)
    finally:
        stop.set()
        await scribbling


async def test_a_file_that_is_unlinked_and_written_anew_never_seems_removed(manifests: Path) -> None:
    replace(manifests / "a.yaml", manifest("a"))
    async with watched(manifests) as seen:
        await seen.until_names("a")
        for image in ("v1", "v2", "v3"):
            (manifests / "a.yaml").unlink()
            await asyncio.sleep(SETTLE_S / 4)
            (manifests / "a.yaml").write_bytes(text(manifest("a", image=image)))
        await seen.until(lambda: bool(seen.last.pods) and seen.last.pods[0].pod.spec.containers[0].image == "v3")
        assert all(snapshot.pods or snapshot.held_files() for snapshot in seen.snapshots)


async def test_a_directory_that_is_deleted_and_made_again(manifests: Path) -> None:
    replace(manifests / "a.yaml", manifest("a"))
    async with watched(manifests) as seen:
        await seen.until_names("a")
        shutil.rmtree(manifests)
        await seen.until(lambda: not seen.last.complete)
        assert str(seen.last.errors[0]) == f"{manifests}: No such file or directory"
        assert all(snapshot.pods for snapshot in seen.snapshots if snapshot.complete)
        make(manifests)
        replace(manifests / "a.yaml", manifest("a"))
        await seen.until(lambda: seen.last.complete and seen.names() == ["a"])
        replace(manifests / "b.yaml", manifest("b"))
        await seen.until_names("a", "b")


async def test_a_directory_that_is_replaced_by_another(manifests: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    replace(other / "b.yaml", manifest("b"))
    async with watched(manifests) as seen:
        await seen.until_names()
        swap(manifests, other)
        await seen.until_names("b")
        replace(manifests / "c.yaml", manifest("c"))
        await seen.until_names("b", "c")


async def test_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    path = tmp_path / "config" / "manifests"
    async with watched(path) as seen:
        await seen.until(lambda: not seen.last.complete)
        make(path)
        replace(path / "a.yaml", manifest("a"))
        await seen.until_names("a")
        replace(path / "b.yaml", manifest("b"))
        await seen.until_names("a", "b")


async def test_a_single_file(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    async with watched(path) as seen:
        await seen.until(lambda: not seen.last.complete)
        replace(path, manifest("a"))
        await seen.until_names("a")
        path.write_bytes(text(manifest("b")))
        await seen.until_names("b")
        path.unlink()
        await seen.until(lambda: not seen.last.complete)


async def test_links_that_are_switched_at_once_as_config_map_volumes_do(manifests: Path) -> None:
    for version in ("v1", "v2"):
        (manifests / f"..{version}").mkdir()
        (manifests / f"..{version}" / "a.yaml").write_bytes(text(manifest("a", image=version)))
    (manifests / "..data").symlink_to("..v1")
    (manifests / "a.yaml").symlink_to("..data/a.yaml")
    async with watched(manifests) as seen:
        await seen.until_names("a")
        (manifests / "..data_tmp").symlink_to("..v2")
        (manifests / "..data_tmp").rename(manifests / "..data")
        await seen.until(lambda: seen.last.pods[0].pod.spec.containers[0].image == "v2")


async def test_the_periodic_look_finds_what_nobody_notified(manifests: Path, tmp_path: Path) -> None:
    target = tmp_path / "far" / "a.txt"
    target.parent.mkdir()
    target.write_bytes(text(manifest("a")))
    (manifests / "a.yaml").symlink_to(target)
    async with watched(manifests, period_s=0.2) as seen:
        await seen.until_names("a")
        target.write_bytes(text(manifest("b")))
        await seen.until_names("b")


async def test_without_notifications_the_period_remains(
    manifests: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_more_watches(*_: object, **__: object) -> object:
        raise OSError(errno.ENOSPC, "no more watches")

    monkeypatch.setattr(watch, "DirectoryWatch", no_more_watches)
    async with watched(manifests, period_s=0.2) as seen:
        await seen.until_names()
        replace(manifests / "a.yaml", manifest("a"))
        await seen.until_names("a")
    assert f"cannot watch {manifests}, reading it periodically instead: no more watches" in caplog.text


async def test_errors_are_told_and_taken_back(manifests: Path) -> None:
    async with watched(manifests) as seen:
        (manifests / "a.yaml").write_text("kind: [")
        await seen.until(lambda: bool(seen.last.errors))
        assert seen.last.errors[0].kind is ManifestErrorKind.SYNTAX
        assert seen.last.complete
        replace(manifests / "a.yaml", manifest("a"))
        await seen.until(lambda: not seen.last.errors)
        assert seen.names() == ["a"]


async def test_closing_is_prompt_and_leaves_no_task(manifests: Path) -> None:
    tasks = asyncio.all_tasks()
    async with watched(manifests) as seen:
        await seen.until_names()
        start = monotonic()
    assert monotonic() - start < NEVER_S / 10
    assert asyncio.all_tasks() == tasks


def test_the_directory_and_its_parent_are_watched(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "f").write_text("")
    assert [target[0] for target in watch_targets(tmp_path / "m")] == [str(tmp_path / "m"), str(tmp_path)]
    assert [target[0] for target in watch_targets(tmp_path / "f")] == [str(tmp_path)]
    assert watch_targets(tmp_path / "x" / "y") == ()


# --- what a watcher cannot name ---

NO_UTF8 = b"\xff-\xfe.yaml"


def put(directory: Path, name: bytes, content: bytes) -> None:
    with open(os.path.join(os.fsencode(directory), name), "wb") as file:
        file.write(content)


async def test_a_manifest_whose_name_is_no_text_is_read(manifests: Path) -> None:
    """The watcher may fail over it: reading is the truth, and goes on."""
    async with watched(manifests, period_s=1.0) as seen:
        await seen.until_names()
        put(manifests, NO_UTF8, text(manifest("strange")))
        await seen.until_names("strange")
        put(manifests, b"b.yaml", text(manifest("plain")))
        await seen.until(lambda: sorted(seen.names()) == ["plain", "strange"])
        os.unlink(os.path.join(os.fsencode(manifests), NO_UTF8))
        await seen.until_names("plain")


async def test_it_is_named_as_text_when_something_is_wrong_with_it(manifests: Path) -> None:
    async with watched(manifests, period_s=1.0) as seen:
        put(manifests, NO_UTF8, b"{")
        await seen.until(lambda: bool(seen.last.errors))
        assert seen.last.errors[0].file == "\\xff-\\xfe.yaml"


async def test_a_name_in_the_parent_that_is_no_text_hurts_nobody(manifests: Path) -> None:
    async with watched(manifests, period_s=1.0) as seen:
        await seen.until_names()
        for number in range(5):
            put(manifests.parent, NO_UTF8 + bytes([48 + number]), b"")
        replace(manifests / "a.yaml", manifest("a"))
        await seen.until_names("a")


async def test_a_watcher_that_fails_is_said_once_and_reading_goes_on(
    manifests: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EMFILE, "too many instances")

    monkeypatch.setattr(watch, "DirectoryWatch", broken)
    monkeypatch.setattr(watch, "RETRIES", Backoff(0.01, 0.05))
    async with watched(manifests, period_s=0.2) as seen:
        for name in ("a", "b", "c"):
            replace(manifests / f"{name}.yaml", manifest(name))
            await seen.until(lambda name=name: name in seen.names())  # type: ignore[misc]
    said = [record.getMessage() for record in caplog.records if "cannot watch" in record.getMessage()]
    assert len(said) == 1
    assert "too many instances" in said[0]


# --- what never holds still ---


async def test_a_link_to_what_the_kernel_makes_up_is_refused_once_and_no_other_file_waits(manifests: Path) -> None:
    (manifests / "environ.yaml").symlink_to("/proc/self/environ")
    async with watched(manifests) as seen:
        await seen.until(lambda: seen.last.complete)
        replace(manifests / "a.yaml", manifest("a"))
        await seen.until_names("a")
        assert [[error.kind for error in snapshot.errors] for snapshot in seen.snapshots] == [
            [ManifestErrorKind.UNREADABLE]
        ] * len(seen.snapshots)
        assert "type proc" in seen.last.errors[0].message


async def test_a_link_to_a_regular_file_is_that_file_as_in_a_mounted_config_map(manifests: Path) -> None:
    (manifests / "..1").mkdir()
    (manifests / "..1" / "a.yaml").write_bytes(text(manifest("a")))
    (manifests / "..data").symlink_to("..1")
    (manifests / "a.yaml").symlink_to("..data/a.yaml")
    async with watched(manifests) as seen:
        await seen.until_names("a")
        assert seen.last.errors == ()


async def test_a_file_that_never_holds_still_is_looked_at_less_and_less(
    manifests: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside it others are read at once."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "log"
    target.write_text("x")
    observation_requests: list[float] = []
    original = list_manifests

    def counted(path: Path, *known: Any) -> Any:
        observation_requests.append(monotonic())
        with target.open("a") as file:
            file.write("more")
        return original(path, *known)

    monkeypatch.setattr(directory, "list_manifests", counted)
    monkeypatch.setattr(watch, "MAX_SETTLE_LOOKS", 1)
    (manifests / "log.yaml").symlink_to(target)
    async with watched(manifests) as seen:
        await seen.until(lambda: len(observation_requests) >= 10)
        gaps = [later - earlier for earlier, later in itertools.pairwise(observation_requests)]
        assert max(gaps[-2:]) > 4 * SETTLE_S
        replace(manifests / "a.yaml", manifest("a"))
        await seen.until(lambda: "a" in seen.names())


async def test_a_directory_in_doubt_is_told_and_followed_when_it_is_back(manifests: Path, tmp_path: Path) -> None:
    keeper = PlaceRecord(manifests, tmp_path / "manifest_source")
    replace(manifests / "a.yaml", manifest("a"))
    async with watched(manifests, keeper=keeper) as seen:
        await seen.until_names("a")
        exchange(manifests, tmp_path / "away")
        await seen.until(lambda: "is another directory than before" in str(seen.last.errors))
        assert not seen.last.complete
        come_back(manifests, tmp_path / "away")
        await seen.until(lambda: seen.last.complete and seen.names() == ["a"])
        replace(manifests / "b.yaml", manifest("b"))
        await seen.until_names("a", "b")
