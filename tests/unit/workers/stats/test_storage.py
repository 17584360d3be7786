"""Usage of directories: rarely counted, within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from workers.stats import storage
from workers.stats.storage import COST_FACTOR, PERIOD_S, DiskUsage, file_system, sum_of, used_on, volumes_in
from workers.userns.unshare import Step, Unshare, UnshareError


class Inside(Unshare, frozen=True):
    """Podman's namespaces, where counting has these results; none at all fails."""

    results: tuple[Any, ...] = ()

    def run(self, steps: Sequence[Step]) -> tuple[Any, ...]:
        if not self.results:
            raise UnshareError("no Podman")
        assert len(steps) == len(self.results)
        return self.results


NOBODY = Inside()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(bytes(100_000))
    return tmp_path


def counted(now: list[float]) -> DiskUsage:
    return DiskUsage(NOBODY, lambda: now[0])


def test_a_directory_is_counted_once_in_a_period(tree: Path) -> None:
    now = [1000.0]
    disk, path = counted(now), str(tree)
    disk.count([path])
    first = disk.of(path)
    assert first is not None
    assert first[0] >= 100_000
    assert first[1] == 3
    (tree / "more").write_bytes(bytes(100_000))
    now[0] += PERIOD_S - 1
    disk.count([path])
    assert disk.of(path) == first
    now[0] += 2
    disk.count([path])
    second = disk.of(path)
    assert second is not None
    assert second[1] == 4


def test_a_directory_that_takes_long_is_counted_rarely(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    calls = []

    def slow(path: str, max_files: int) -> tuple[int, int]:
        calls.append(path)
        now[0] += 2.0
        return 1, 1

    monkeypatch.setattr(storage, "used_bytes_and_inodes", slow)
    disk = counted(now)
    disk.count(["/x"])
    now[0] += COST_FACTOR * 2.0 - 1
    disk.count(["/x"])
    assert len(calls) == 1
    now[0] += 2
    disk.count(["/x"])
    assert len(calls) == 2


def test_one_round_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    calls = []

    def slow(path: str, max_files: int) -> tuple[int, int]:
        calls.append(path)
        now[0] += storage.ROUND_S
        return 1, 1

    monkeypatch.setattr(storage, "used_bytes_and_inodes", slow)
    disk, paths = counted(now), ["/a", "/b", "/c"]
    for _ in paths:
        disk.count(paths)
    assert sorted(calls) == paths, "the others come in the next rounds"


def test_too_many_files_are_no_size(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_FILES", 1)
    disk = counted([1000.0])
    disk.count([str(tree)])
    assert disk.of(str(tree)) is None


@pytest.mark.parametrize(("inside", "expected"), [(((7, 2),), (7, 2)), ((None,), None), ((), None)])
def test_directories_that_are_closed_are_counted_inside_podmans_namespaces(
    tree: Path, monkeypatch: pytest.MonkeyPatch, inside: tuple[Any, ...], expected: tuple[int, int] | None
) -> None:
    def closed(path: str, max_files: int) -> tuple[int, int]:
        raise PermissionError(13, "closed", path)

    monkeypatch.setattr(storage, "used_bytes_and_inodes", closed)
    disk = DiskUsage(Inside(results=inside), lambda: 1000.0)
    disk.count([str(tree)])
    assert disk.of(str(tree)) == expected


def test_what_is_not_asked_for_any_more_is_forgotten(tree: Path) -> None:
    disk = counted([1000.0])
    disk.count([str(tree)])
    disk.count([])
    assert disk.of(str(tree)) is None


def test_a_file_system(tree: Path) -> None:
    found = file_system(str(tree), 1.0)
    assert found is not None
    assert found.capacity is not None
    assert found.used is not None
    assert found.capacity > found.used
    assert file_system(str(tree / "nothing"), 1.0) is None


def test_a_directory_of_unknown_size_has_its_file_systems_capacity(tree: Path) -> None:
    fs = file_system(str(tree), 1.0)
    assert fs is not None
    found = used_on(fs, None, "/x")
    assert found is not None
    assert (found.used, found.inodes_used, found.path, found.capacity) == (None, None, "/x", fs.capacity)
    assert used_on(None, (1, 1), "/x") is None


def test_volumes_of_a_pod(tmp_path: Path) -> None:
    (tmp_path / "uid" / "volumes" / "kubernetes.io~empty-dir" / "data").mkdir(parents=True)
    assert volumes_in(str(tmp_path), "uid") == [("kubernetes.io~empty-dir", "data")]
    assert volumes_in(str(tmp_path), "other") == []


def test_a_sum_of_sizes_of_which_one_is_unknown_is_unknown() -> None:
    assert sum_of([(1, 2), (3, 4)]) == (4, 6)
    assert sum_of([(1, 2), None]) is None
    assert sum_of([]) == (0, 0)
