"""Files of containers that nobody can see any more: removed, while a process has them open.

They take room until the last descriptor is closed, and no walk over directories finds them: a kubelet sees them where
file systems have quotas (pkg/volume/util/fsquota). Here the descriptors of a container's processes are looked at. Not
found: what is held by a mapping alone, by a message in a socket that nobody has received, by a loop device, or by a
thread with a table of descriptors of its own. In Podman's user namespace one may look at every container's processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from workers.fs.disk_usage import BLOCK_BYTES
from workers.userns.steps.syscalls import LIBC, checked

MAX_DESCRIPTORS: Final = 100_000
"""Most descriptors that are looked at in one pod, which takes half a second; those beyond count for nobody."""
MAX_CGROUPS: Final = 1000
"""Most cgroups of one container, with its own."""
MAX_PROCESSES: Final = 10_000
"""Most processes of a container without a cgroup."""
MAX_TEXT_BYTES: Final = 1 << 20
"""Most that is read of a file of the kernel."""
DELETED: Final = " (deleted)"
CGROUPS: Final = "/sys/fs/cgroup"
_IN_MEMORY: Final = frozenset({0x01021994, 0x958458F6, 0x858458F6})
"""statfs(2): tmpfs, hugetlbfs, ramfs. A file of memfd_create(2) lies on no mount that anybody sees."""
_OF_MEMORY: Final = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
_UNDER_ROOTS: Final = frozenset({"overlay", "fuse.fuse-overlayfs"})
"""Types of file systems that hold what a container writes into its root, also where they are mounted once more."""

Used = tuple[int, int]
"""Bytes and inodes."""


class Mount(NamedTuple):
    """A line of /proc/PID/mountinfo."""

    root: str
    point: str
    type: str


class _Held(NamedTuple):
    used_bytes: int
    mount_id: int
    is_in_memory: bool


def unlinked_files(
    containers: Mapping[str, tuple[int, str]], empty_dirs: str, max_descriptors: int = MAX_DESCRIPTORS
) -> tuple[dict[str, Used], dict[str, Used]]:
    """Removed files that processes of a pod's containers hold: of each one's own root, and of each emptyDir.

    ``containers``: first process and directory of the cgroup, which may be empty, by name; ``empty_dirs``: part of the
    path of each of the pod's emptyDirs, from the pod's UID on to its name. A file counts once. Blocks."""
    look = _Look(max_descriptors)
    roots: dict[str, Used] = {}
    volumes: dict[str, Used] = {}
    for name, (pid, cgroup) in containers.items():
        held, mounts = look.at(_of_cgroup(cgroup) if cgroup else _descendants(pid))
        for file in held:
            mount = mounts.get(file.mount_id)
            volume = volume_of(mount, empty_dirs) if mount is not None or not file.is_in_memory else None
            if volume is not None:
                into, key = (volumes, volume) if volume else (roots, name)
                used, inodes = into.get(key, (0, 0))
                into[key] = (used + file.used_bytes, inodes + 1)
    return roots, volumes


def volume_of(mount: Mount | None, empty_dirs: str) -> str | None:
    """Name of the emptyDir that a mount shows; empty for the container's own root, None for anything else.

    A mount that none of the processes sees, because they have changed their root, is taken for the container's own:
    else that would be a way to hide."""
    if mount is None:
        return ""
    _, is_empty_dir, rest = mount.root.partition(empty_dirs)
    if is_empty_dir:
        return rest.partition("/")[0]
    return "" if mount.type in _UNDER_ROOTS or (mount.point == "/" and mount.type not in _OF_MEMORY) else None


class _Look:
    """One pod's processes."""

    def __init__(self, descriptors: int) -> None:
        self._left = descriptors
        self._seen: set[tuple[int, int]] = set()
        """Device and inode of the files that have been counted."""

    def at(self, processes: Generator[int]) -> tuple[list[_Held], dict[int, Mount]]:
        """Removed files that are open in a container, and the mounts of those processes that have some open."""
        held: list[_Held] = []
        mounts: dict[int, Mount] = {}
        with contextlib.closing(processes):
            for process in processes:
                found = list(self._of_process(process))
                if found and not all(file.mount_id in mounts for file in found):
                    mounts |= parsed_mounts(_text(process, "mountinfo"))
                held += found
                if self._left <= 0:
                    break
        return held, mounts

    def _of_process(self, process: int) -> Iterator[_Held]:
        with contextlib.suppress(OSError), _opened("fd", process) as table, os.scandir(table) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0:
                    return
                with contextlib.suppress(OSError):
                    if not _may_be_removed(table, entry.name):
                        continue
                    found = os.stat(entry.name, dir_fd=table)
                    if self._counts(found):
                        mount_id = _mount_id(_text(process, f"fdinfo/{entry.name}"))
                        yield _Held(found.st_blocks * BLOCK_BYTES, mount_id, _is_in_memory(table, entry.name))

    def _counts(self, found: os.stat_result) -> bool:
        identity = (found.st_dev, found.st_ino)
        if found.st_nlink or not stat.S_ISREG(found.st_mode) or identity in self._seen:
            return False
        self._seen.add(identity)
        return True


def _may_be_removed(table: int, descriptor: str) -> bool:
    """By its name, which no file system is asked for: one that hangs holds up the look at a removed file alone."""
    try:
        return os.readlink(descriptor, dir_fd=table).endswith(DELETED)
    except FileNotFoundError:
        return False
    except OSError:  # a path that is longer than the kernel tells
        return True


def _is_in_memory(table: int, descriptor: str) -> bool:
    """Raises OSError."""
    answer = (ctypes.c_long * 64)()  # struct statfs, which begins with the type
    path = f"/proc/self/fd/{table}/{descriptor}"
    checked(LIBC.statfs(os.fsencode(path), ctypes.byref(answer)), path)
    return answer[0] in _IN_MEMORY


def _of_cgroup(cgroup: str) -> Generator[int]:
    """Processes of a cgroup and of those below it, as directories that stay theirs; not one whose number has passed to
    another process meanwhile."""
    directories = [cgroup]
    for _ in range(MAX_CGROUPS):
        if not directories:
            return
        directory = directories.pop()
        with contextlib.suppress(OSError):
            pids = _read(os.open(f"{directory}/cgroup.procs", os.O_RDONLY | os.O_CLOEXEC)).split()
            with os.scandir(directory) as entries:
                directories += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)][:MAX_CGROUPS]
            for pid in pids:
                with contextlib.suppress(OSError), _opened(f"/proc/{pid}") as process:
                    if _is_in(process, cgroup):
                        yield process


def _is_in(process: int, cgroup: str) -> bool:
    """Raises OSError."""
    path = next((line[3:] for line in _text(process, "cgroup").splitlines() if line.startswith("0::")), "")
    return f"{CGROUPS}{path}/".startswith(f"{cgroup}/")


def _descendants(first: int) -> Generator[int]:
    """A process and all below it, as such directories: without a cgroup of the container's own, commands that were
    executed in it are nobody's."""
    pids = [first]
    for _ in range(MAX_PROCESSES):
        if not pids:
            return
        with contextlib.suppress(OSError), _opened(f"/proc/{pids.pop()}") as process:
            with _opened("task", process) as tasks:
                for thread in os.listdir(tasks):
                    with contextlib.suppress(OSError):
                        pids += map(int, _text(tasks, f"{thread}/children").split())
            yield process


def parsed_mounts(text: str) -> dict[int, Mount]:
    """Mounts by their ids (proc_pid_mountinfo(5))."""
    found = {}
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields: Sequence[str] = before.split(" ")
        if dash and len(fields) > 4 and fields[0].isdecimal():
            found[int(fields[0])] = Mount(fields[3], fields[4], after.partition(" ")[0])
    return found


def _mount_id(text: str) -> int:
    line = next((line for line in text.splitlines() if line.startswith("mnt_id:")), "mnt_id: -1")
    return int(line.partition(":")[2])


@contextlib.contextmanager
def _opened(path: str, directory: int | None = None) -> Iterator[int]:
    """A directory. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)


def _text(process: int, name: str) -> str:
    """Raises OSError."""
    return _read(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=process))


def _read(fd: int) -> str:
    with open(fd, "rb") as file:
        return file.read(MAX_TEXT_BYTES).decode(errors="surrogateescape")
