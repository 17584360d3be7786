"""Signals of eviction, read from the host: few files, no process. Blocks: for a thread.

Mirrors what the kubelet takes from cAdvisor's root container, statvfs(2) and pkg/kubelet/stats/pidlimit. Different on
purpose: where a cgroup that pods lie in (the user's slice) has less left than the host, that counts; and nodefs
is that of the two file systems of pods' directories and logs which has the smaller share left.

The statistics' collector reads the same files, and its types are not imported for this: it runs on every node, always.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from ipc.k8s.eviction.observations import SignalObservation, of_disk, of_memory, of_pids
from ipc.k8s.eviction.signals import Signal

KIB: Final = 1024
MAX_BYTES: Final = 64 * 1024
"""Most that is read of a file of the kernel."""
CGROUPS: Final = "/sys/fs/cgroup"
_V2: Final = b"0::"
CONTAINERFS: Final = frozenset({Signal.CONTAINERFS_AVAILABLE, Signal.CONTAINERFS_INODES_FREE})
"""Signals whose thresholds follow those of another file system."""


class NodeSignals(msgspec.Struct, frozen=True, kw_only=True):
    """Signals at one time, and which file systems there are."""

    signals: dict[Signal, SignalObservation]
    has_image_fs: bool = False
    is_split: bool = False


class _Disk(msgspec.Struct, frozen=True):
    """The file system that a path lies on (statvfs)."""

    device: int
    bytes: SignalObservation | None
    inodes: SignalObservation | None

    @property
    def share_left(self) -> float:
        """The smaller of the shares of bytes and of inodes."""
        return min((o.available / o.capacity for o in (self.bytes, self.inodes) if o is not None), default=1.0)


class SignalPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where the signals are observed."""

    directories: tuple[str, ...]
    """Directories of pods and of their logs."""
    image_root: str = ""
    """Directory of Podman's storage; empty while it is not known."""
    pods_cgroup: str = ""
    """Cgroup of all pods; empty where there is none."""


def observe_node(wanted: Collection[Signal], places: SignalPaths, time: float) -> NodeSignals:
    """The wanted signals that can be observed."""
    found: dict[Signal, SignalObservation | None] = {}
    if Signal.MEMORY_AVAILABLE in wanted:
        found[Signal.MEMORY_AVAILABLE] = _least((_host_memory(time), *_memory_of_cgroups(places, time)))
    if Signal.ALLOCATABLE_MEMORY_AVAILABLE in wanted and places.pods_cgroup:
        found[Signal.ALLOCATABLE_MEMORY_AVAILABLE] = _memory_of_cgroup(places.pods_cgroup, time)
    if Signal.PID_AVAILABLE in wanted:
        found[Signal.PID_AVAILABLE] = _least((_host_pids(time), *_pids_of_cgroups(places, time)))
    disks = [disk for path in places.directories if (disk := _disk(path, time)) is not None]
    node = min(disks, key=lambda disk: disk.share_left, default=None)
    images = _disk(places.image_root, time) if places.image_root else None
    if node is not None:
        found |= {Signal.NODEFS_AVAILABLE: node.bytes, Signal.NODEFS_INODES_FREE: node.inodes}
    if images is not None:
        found |= {Signal.IMAGEFS_AVAILABLE: images.bytes, Signal.IMAGEFS_INODES_FREE: images.inodes}
        found |= {Signal.CONTAINERFS_AVAILABLE: images.bytes, Signal.CONTAINERFS_INODES_FREE: images.inodes}
    has_image_fs = images is not None and images.device not in {disk.device for disk in disks}
    known = {signal: each for signal, each in found.items() if each is not None and signal in wanted}
    return NodeSignals(signals=known, has_image_fs=has_image_fs)


def _least(found: Iterable[SignalObservation | None]) -> SignalObservation | None:
    """The one with the least left."""
    known = [each for each in found if each is not None]
    return min(known, key=lambda each: each.available, default=None)


# --- memory and processes ---


def _host_memory(time: float) -> SignalObservation | None:
    """Capacity without the working set: what is in use and cannot be dropped at once."""
    text = _read("/proc/meminfo")
    total, free, inactive = (_number(text, key) for key in (b"MemTotal:", b"MemFree:", b"Inactive(file):"))
    if total is None or free is None or inactive is None:
        return None
    return of_memory(total * KIB, max(0, total - free - inactive) * KIB, time)


def _host_pids(time: float) -> SignalObservation | None:
    limits = [_number(_read(f"/proc/sys/kernel/{name}")) for name in ("pid_max", "threads-max")]
    fields = _read("/proc/loadavg").split()
    tasks = _number(fields[3].partition(b"/")[2]) if len(fields) > 3 else None
    return of_pids(min((limit for limit in limits if limit is not None), default=None), tasks, time)


def _memory_of_cgroups(places: SignalPaths, time: float) -> Iterator[SignalObservation | None]:
    for directory in _cgroups_above_pods(places):
        yield _memory_of_cgroup(directory, time)


def _memory_of_cgroup(directory: str, time: float) -> SignalObservation | None:
    """None of one without a limit, or without the controller."""
    used = _number(_read(f"{directory}/memory.current"))
    inactive = _number(_read(f"{directory}/memory.stat"), b"inactive_file ")
    if used is None or inactive is None:
        return None
    return of_memory(_number(_read(f"{directory}/memory.max")), max(0, used - inactive), time)


def _pids_of_cgroups(places: SignalPaths, time: float) -> Iterator[SignalObservation | None]:
    for directory in _cgroups_above_pods(places):
        limit = _number(_read(f"{directory}/pids.max"))
        yield of_pids(limit, _number(_read(f"{directory}/pids.current")), time)


def _cgroups_above_pods(places: SignalPaths) -> Iterator[str]:
    """Not the root. Without a cgroup of all pods: those above this process's own, in which containers lie, too."""
    parts = PurePosixPath(places.pods_cgroup).relative_to(CGROUPS).parts if places.pods_cgroup else _own_cgroup()
    if ".." in parts:
        return
    for end in range(1, len(parts)):
        yield str(PurePosixPath(CGROUPS, *parts[:end]))


def _own_cgroup() -> tuple[str, ...]:
    line = next((line for line in _read("/proc/self/cgroup").splitlines() if line.startswith(_V2)), b"")
    return PurePosixPath(os.fsdecode(line.removeprefix(_V2)).lstrip("/")).parts


# --- disks ---


def _disk(path: str, time: float) -> _Disk | None:
    """None of one that cannot be looked at."""
    try:
        existing = next(part for part in (Path(path), *Path(path).parents) if part.exists())
        found, device = os.statvfs(existing), os.stat(existing).st_dev
    except (OSError, StopIteration):
        return None
    return _Disk(
        device,
        of_disk(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize, time),
        of_disk(found.f_ffree, found.f_files, time),
    )


# --- files of the kernel ---


def _read(path: str) -> bytes:
    """Empty when it is not there."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(MAX_BYTES)
    return b""


def _number(text: bytes, key: bytes = b"") -> int | None:
    """The number behind the key at the begin of a line, or of the whole text; None for *max*, or without one."""
    match = re.search(rb"^" + re.escape(key) + rb"\s*(\d+)", text, re.MULTILINE)
    return int(match[1]) if match is not None else None
