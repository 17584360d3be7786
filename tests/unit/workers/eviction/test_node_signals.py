"""Signals of eviction, as this host has them and as cgroups limit them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.k8s.eviction.signals import Signal
from workers.eviction import node_signals
from workers.eviction.node_signals import SignalPaths, observe_node

EVERY = frozenset(Signal)
NOWHERE = SignalPaths(directories=())
MIB = 1024 * 1024


def test_this_host(tmp_path: Path) -> None:
    seen = observe_node(EVERY, SignalPaths(directories=(str(tmp_path),), image_root=str(tmp_path)), 5.0)
    assert seen.signals.keys() >= {Signal.MEMORY_AVAILABLE, Signal.NODEFS_AVAILABLE, Signal.PID_AVAILABLE}
    assert (seen.has_image_fs, seen.is_split) == (False, False)
    for observed in seen.signals.values():
        assert 0 <= observed.available <= observed.capacity
        assert observed.time == 5.0
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert seen.signals[Signal.MEMORY_AVAILABLE].capacity <= total * 1.01


def test_only_what_is_wanted(tmp_path: Path) -> None:
    seen = observe_node({Signal.PID_AVAILABLE}, SignalPaths(directories=(str(tmp_path),)), 0.0)
    assert seen.signals.keys() == {Signal.PID_AVAILABLE}


def test_a_directory_that_is_not_there_yet_is_on_the_file_system_above_it(tmp_path: Path) -> None:
    seen = observe_node(EVERY, SignalPaths(directories=(str(tmp_path / "a" / "b"),)), 0.0)
    assert Signal.NODEFS_AVAILABLE in seen.signals


def test_images_on_a_file_system_of_their_own_are_told_apart(tmp_path: Path) -> None:
    elsewhere = "/dev/shm"
    if os.stat(elsewhere).st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("/dev/shm is no file system of its own here")
    seen = observe_node(EVERY, SignalPaths(directories=(str(tmp_path),), image_root=elsewhere), 0.0)
    assert seen.has_image_fs
    capacities = {seen.signals[s].capacity for s in (Signal.NODEFS_AVAILABLE, Signal.IMAGEFS_AVAILABLE)}
    assert len(capacities) == 2
    assert seen.signals[Signal.CONTAINERFS_AVAILABLE] == seen.signals[Signal.IMAGEFS_AVAILABLE]


class Kernel:
    """Files that the kernel would show."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: dict[str, bytes] = {
            "/proc/meminfo": b"MemTotal:  8388608 kB\nMemFree:  4194304 kB\nInactive(file):  1048576 kB\n",
            "/proc/sys/kernel/pid_max": b"4194304\n",
            "/proc/sys/kernel/threads-max": b"1000\n",
            "/proc/loadavg": b"0.00 0.00 0.00 1/400 4711\n",
            "/proc/self/cgroup": b"0::/user.slice/user-1.slice/user@1.service/app.slice/rootlet.service\n",
        }
        monkeypatch.setattr(node_signals, "_read", lambda path: self.files.get(path, b""))

    def cgroup(self, path: str, **files: str) -> None:
        for name, text in files.items():
            self.files[f"/sys/fs/cgroup/{path}/{name.replace('_', '.', 1)}"] = text.encode()

    def available(self, signal: Signal, places: SignalPaths = NOWHERE) -> tuple[int, int]:
        found = observe_node({signal}, places, 0.0).signals[signal]
        return found.available, found.capacity


def test_memory_without_what_can_be_dropped_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Kernel(monkeypatch).available(Signal.MEMORY_AVAILABLE) == (5120 * MIB, 8192 * MIB)


def test_a_slice_with_less_memory_left_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    kernel.cgroup("user.slice", memory_max="max\n", memory_current="1\n", memory_stat="inactive_file 0\n")
    kernel.cgroup(
        "user.slice/user-1.slice",
        memory_max=str(1024 * MIB),
        memory_current=str(1000 * MIB),
        memory_stat=f"anon 1\ninactive_file {76 * MIB}\n",
    )
    assert kernel.available(Signal.MEMORY_AVAILABLE) == (100 * MIB, 1024 * MIB)


def test_a_slice_of_the_agent_alone_does_not_count_and_one_of_the_pods_alone_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No pod that goes makes room where none lies."""
    kernel, manager = Kernel(monkeypatch), "user.slice/user-1.slice/user@1.service"
    pods = SignalPaths(directories=(), pods_cgroup=f"/sys/fs/cgroup/{manager}/rootlet.slice")
    used = {"memory_current": str(90 * MIB), "memory_stat": "inactive_file 0\n", "pids_current": "90\n"}
    kernel.cgroup(f"{manager}/app.slice", memory_max=str(100 * MIB), pids_max="100\n", **used)
    assert kernel.available(Signal.MEMORY_AVAILABLE, pods) == (5120 * MIB, 8192 * MIB)
    assert kernel.available(Signal.PID_AVAILABLE, pods) == (600, 1000)
    kernel.files["/proc/self/cgroup"] = b"0::/system.slice/rootlet.service\n"
    kernel.cgroup("user.slice/user-1.slice", memory_max=str(200 * MIB), pids_max="200\n", **used)
    assert kernel.available(Signal.MEMORY_AVAILABLE, pods) == (110 * MIB, 200 * MIB)
    assert kernel.available(Signal.PID_AVAILABLE, pods) == (110, 200)


def test_memory_of_all_pods_is_their_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit less the working set; without a limit or a slice it is no signal."""
    kernel, wanted = Kernel(monkeypatch), {Signal.ALLOCATABLE_MEMORY_AVAILABLE}
    pods = SignalPaths(directories=(), pods_cgroup="/sys/fs/cgroup/rootlet.slice")
    assert observe_node(wanted, pods, 0.0).signals == {}
    used = {"memory_current": str(300 * MIB), "memory_stat": f"anon 1\ninactive_file {100 * MIB}\n"}
    kernel.cgroup("rootlet.slice", memory_max="max\n", **used)
    assert observe_node(wanted, pods, 0.0).signals == {}
    kernel.cgroup("rootlet.slice", memory_max=f"{1024 * MIB}\n", **used)
    found = observe_node(wanted, pods, 7.0).signals[Signal.ALLOCATABLE_MEMORY_AVAILABLE]
    assert (found.available, found.capacity, found.time) == (824 * MIB, 1024 * MIB, 7.0)
    assert observe_node(wanted, NOWHERE, 0.0).signals == {}


def test_pids_of_the_host_or_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    assert kernel.available(Signal.PID_AVAILABLE) == (600, 1000)
    kernel.cgroup("user.slice/user-1.slice", pids_max="300\n", pids_current="290\n")
    assert kernel.available(Signal.PID_AVAILABLE) == (10, 300)


def test_what_the_kernel_does_not_tell_is_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    kernel.files = {"/proc/meminfo": b"MemTotal: 1 kB\n", "/proc/self/cgroup": b"0::/../a/b\n"}
    assert observe_node({Signal.MEMORY_AVAILABLE, Signal.PID_AVAILABLE}, NOWHERE, 0.0).signals == {}
