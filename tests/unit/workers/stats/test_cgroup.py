"""Figures from a cgroup's files: with all controllers, with some, with none."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.stats import cgroup
from workers.stats.cgroup import Texts, cgroups_below

ID = "a" * 64
FILES = {
    "cpu.stat": "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 4\nnr_throttled 1\nthrottled_usec 9\n",
    "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
    "memory.current": "1000\n",
    "memory.stat": "anon 100\nfile 300\ninactive_file 250\npgfault 7\npgmajfault 1\n",
    "memory.max": "2000\n",
    "memory.swap.current": "0\n",
    "memory.swap.max": "max\n",
    "memory.events": "low 0\nmax 3\noom_kill 1\n",
    "io.stat": "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n",
    "pids.current": "6\n",
    "cgroup.procs": "1\n2\n",
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_cpu(directory: Path) -> None:
    found = cgroup.read_cpu(Texts(str(directory)), 1.0)
    assert found is not None
    assert (found.usage_ns, found.user_ns, found.system_ns) == (5000, 3000, 2000)
    assert (found.periods, found.throttled_periods, found.throttled_ns) == (4, 1, 9000)
    assert found.pressure is not None
    assert found.nano_cores is None


def test_memory(directory: Path) -> None:
    found = cgroup.read_memory(Texts(str(directory)), 1.0)
    assert found is not None
    assert (found.usage, found.working_set, found.rss, found.cache) == (1000, 750, 100, 300)
    assert (found.limit, found.swap, found.swap_limit, found.max_usage) == (2000, 0, None, None)
    assert (found.page_faults, found.major_page_faults, found.oom_kills, found.limit_hits) == (7, 1, 1, 3)


def test_io_and_processes(directory: Path) -> None:
    (directory / "container").mkdir()
    (directory / "container" / "cgroup.procs").write_text("3\n")
    texts = Texts(str(directory))
    io, processes = cgroup.read_io(texts, 1.0), cgroup.read_processes(texts, cgroups_below(str(directory)))
    assert io is not None
    assert (io.read_bytes, io.write_bytes, io.reads, io.writes, io.pressure) == (1, 2, 3, 4, None)
    assert (processes.count, processes.threads) == (3, 6)


def test_without_controllers_only_cpu_time_is_known(directory: Path) -> None:
    for name in FILES.keys() - {"cpu.stat", "cgroup.procs"}:
        (directory / name).unlink()
    assert cgroup.read_memory(Texts(str(directory)), 1.0) is None
    assert cgroup.read_io(Texts(str(directory)), 1.0) is None
    cpu = cgroup.read_cpu(Texts(str(directory)), 1.0)
    assert cpu is not None
    assert cpu.pressure is None
    assert cgroup.read_processes(Texts(str(directory)), ()).threads is None


def test_a_cgroup_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    gone = Texts(str(tmp_path / "gone"))
    assert cgroup.read_cpu(gone, 1.0) is None
    assert cgroup.read_memory(gone, 1.0) is None
    assert cgroup.read_io(gone, 1.0) is None
    assert cgroup.read_processes(gone, ()).count is None


def test_usage_below_the_inactive_file_pages_is_no_negative_working_set(directory: Path) -> None:
    (directory / "memory.current").write_text("100\n")
    found = cgroup.read_memory(Texts(str(directory)), 1.0)
    assert found is not None
    assert found.working_set == 0
