"""A cgroup in which nothing runs is not read whole in each round."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.workers.stats.test_cgroup import FILES
from workers.stats import flat_files
from workers.stats.cgroup import ROUNDS, SIGNS, OwnCgroup

CALM = "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"
STALLED = CALM.replace("avg300=0.00", "avg300=0.01")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read."""
    names: list[str] = []
    real = flat_files.read_record

    def noting(path: str) -> bytes | None:
        names.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(flat_files, "read_record", noting)
    return names


def test_what_is_idle_has_the_figures_of_before_under_the_new_date(directory: Path, read: list[str]) -> None:
    own = OwnCgroup(str(directory), turn=0)
    first = own.read(1.0)
    read.clear()
    second = own.read(2.0)
    assert read == list(SIGNS)
    assert second == first.at(2.0)
    assert first.cpu is not None
    assert second.cpu is not None
    assert second.memory is not None
    assert (first.cpu.time, second.cpu.time, second.memory.time) == (1.0, 2.0, 2.0)
    assert second.io is not None
    assert second.io.time == 1.0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cpu.stat", "usage_usec 6\nuser_usec 4\nsystem_usec 2\n"),
        ("memory.current", "1001\n"),
        ("memory.max", "3000\n"),
    ],
)
def test_what_says_that_something_ran_or_is_limited_otherwise_has_all_read(
    directory: Path, name: str, text: str
) -> None:
    own = OwnCgroup(str(directory), turn=0)
    own.read(1.0)
    (directory / name).write_text(text)
    (directory / "memory.stat").write_text("anon 200\n")
    found = own.read(2.0)
    assert found.memory is not None
    assert found.memory.rss == 200


def test_what_the_kernel_does_meanwhile_shows_after_some_rounds(directory: Path) -> None:
    own = OwnCgroup(str(directory), turn=0)
    own.read(1.0)
    (directory / "io.stat").write_text("8:0 rbytes=1 wbytes=9 rios=3 wios=4\n")
    written = [found.io.write_bytes for number in range(ROUNDS) if (found := own.read(number)).io is not None]
    assert written == [2] * (ROUNDS - 2) + [9, 9]


@pytest.mark.parametrize(("text", "is_read"), [(CALM, False), (STALLED, True)])
def test_averages_that_fall_are_read_until_they_are_zero(
    directory: Path, read: list[str], text: str, is_read: bool
) -> None:
    (directory / "memory.pressure").write_text(text)
    own = OwnCgroup(str(directory), turn=0)
    own.read(1.0)
    read.clear()
    own.read(2.0)
    assert ("memory.pressure" in read) == is_read


def test_cgroups_that_a_container_makes_are_seen(directory: Path) -> None:
    own = OwnCgroup(str(directory), turn=0)

    def count(usec: int) -> int | None:
        (directory / "cpu.stat").write_text(f"usage_usec {usec}\n")
        processes = own.read(float(usec)).processes
        return processes.count if processes is not None else None

    assert count(1) == 2
    (directory / "init.scope").mkdir()
    (directory / "init.scope" / "cgroup.procs").write_text("3\n4\n5\n")
    assert count(2) == 5
    shutil.rmtree(directory / "init.scope")
    assert count(3) == 2


def test_the_peak_of_memory_is_never_below_its_usage(directory: Path) -> None:
    (directory / "memory.peak").write_text("1000\n")
    own = OwnCgroup(str(directory), turn=0)
    own.read(1.0)
    (directory / "memory.peak").write_text("5000\n")
    peaks = []
    for usage in range(4001, 4001 + ROUNDS):
        (directory / "memory.current").write_text(f"{usage}\n")
        memory = own.read(2.0).memory
        assert memory is not None
        peaks.append(memory.max_usage)
    assert peaks == [4001, 4002, 4003, 4004, 5000, 5000]


def test_after_a_pause_everything_is_read(directory: Path, read: list[str]) -> None:
    own = OwnCgroup(str(directory), turn=0)
    own.read(1.0)
    own.forget()
    read.clear()
    own.read(2.0)
    assert len(read) > len(SIGNS)


def test_without_the_memory_controller_processes_are_not_counted_here(directory: Path) -> None:
    (directory / "memory.current").unlink()
    own = OwnCgroup(str(directory), turn=0)
    assert not own.has_memory
    found = own.read(1.0)
    assert found.cpu is not None
    assert (found.memory, found.processes) == (None, None)
