"""Mounts from which containers' mounts are made: invisible outside Podman's namespace, and only the agent can swap
them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from typing import Final

from workers.fs import openat2
from workers.userns.steps.syscalls import LIBC, Refused, checked

MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_UNBINDABLE: Final = 0x20000
MNT_DETACH: Final = 0x2
UMOUNT_NOFOLLOW: Final = 0x8
MOUNT_ATTR_RDONLY: Final = 0x1
AT_FDCWD: Final = -100
AT_RECURSIVE: Final = 0x8000
SYS_MOUNT_SETATTR: Final = 442
"""On every architecture."""
MAX_STACKED_MOUNTS: Final = 64
"""Most mounts upon one another that are taken off one mount point."""


def mount_tmpfs(target: str, size_bytes: int) -> None:
    """A tmpfs on a directory, unless one is there. ``size_bytes`` 0 leaves the size to the kernel: half of the memory.

    The mode is the kernel's for a tmpfs, 01777, which upstream leaves as it is too (setupDir,
    pkg/volume/emptydir/empty_dir.go).
    """
    if os.lstat(target).st_dev != os.lstat(os.path.dirname(target)).st_dev:
        return
    size = f"size={size_bytes}" if size_bytes else ""
    _mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, size)


def hold_together(directory: str) -> None:
    """Make a directory a mount of its own, unless it is one.

    All that is mounted below it goes in one call (`let_go`): each mount that goes by itself costs the kernel up to ten
    milliseconds. And it is unbindable: a bind of a directory above, such as a hostPath of ``/``, leaves it out with all
    below, which would be twice as much with each such bind (mount_namespaces(7)).
    """
    os.makedirs(directory, 0o700, exist_ok=True)
    if not _is_mount(directory):
        _mount(directory, directory, "", MS_BIND, "")
        _mount("", directory, "", MS_UNBINDABLE, "")


def _is_mount(directory: str) -> bool:
    above, name = os.path.split(directory)
    with openat2.opened(None, above, os.O_PATH, openat2.NO_SYMLINKS) as parent:
        try:
            os.close(openat2.open_beneath(parent, name, os.O_PATH, openat2.NO_XDEV | openat2.NO_SYMLINKS))
        except OSError as error:
            if error.errno == errno.EXDEV:
                return True
            raise
    return False


def let_go(directory: str) -> None:
    """Unmount it with all that is mounted below, if it is a mount."""
    unmount(directory)


def bind(
    root: str,
    target: str,
    sub_path: str = "",
    kinds: tuple[int, ...] = (),
    recursive_read_only: bool = False,
    must_exist: bool = False,
) -> None:
    """Bind what lies at ``root``, or at ``sub_path`` beneath it, to ``target``, where only the agent can swap it.

    No part of ``root`` may be a symbolic link, and none of ``sub_path`` may lead out of it. A ``sub_path`` that is not
    there becomes a directory with the root's mode, unless it ``must_exist``. ``kinds`` are the types of file (S_IFMT)
    that it may be; none: any.
    """
    with (
        openat2.opened(None, root, os.O_PATH, openat2.NO_SYMLINKS) as root_fd,
        _within(root_fd, sub_path, must_exist) as source,
    ):
        mode = os.fstat(source).st_mode
        if kinds and stat.S_IFMT(mode) not in kinds:
            raise Refused(f"{root} has become a file of another type")
        _make_mount_point(target, stat.S_ISDIR(mode))
        _mount(f"/proc/self/fd/{source}", target, "", MS_BIND | MS_REC, "")
    if recursive_read_only:
        _set_read_only(target)


@contextlib.contextmanager
def _within(root: int, sub_path: str, must_exist: bool = False) -> Iterator[int]:
    """A descriptor of the path beneath the root; a part that is missing is made, or is a FileNotFoundError."""
    if not sub_path:
        yield root
        return
    resolve = openat2.BENEATH | openat2.NO_MAGICLINKS
    try:
        found = openat2.open_beneath(root, sub_path, os.O_PATH, resolve)
    except FileNotFoundError:
        if must_exist:
            raise
        found = _made_within(root, sub_path)
    try:
        yield found
    finally:
        os.close(found)


def _made_within(root: int, sub_path: str) -> int:
    """As SafeMakeDir (pkg/volume/util/subpath/subpath_linux.go): what is there may be reached through links that stay
    within, what is made is made in a directory that is held, and is opened as itself."""
    mode = stat.S_IMODE(os.stat(f"/proc/self/fd/{root}").st_mode)
    parts = [part for part in sub_path.split("/") if part not in ("", ".")]
    held = os.dup(root)
    for depth, part in enumerate(parts, start=1):
        try:
            following = _entered(root, "/".join(parts[:depth]), held, part, mode)
        finally:
            os.close(held)
        held = following
    return held


def _entered(root: int, path: str, directory: int, name: str, mode: int) -> int:
    flags = os.O_PATH | os.O_DIRECTORY
    try:
        return openat2.open_beneath(root, path, flags, openat2.BENEATH | openat2.NO_MAGICLINKS)
    except FileNotFoundError:
        os.mkdir(name, 0o700, dir_fd=directory)
    made = openat2.open_beneath(directory, name, flags | os.O_NOFOLLOW, openat2.BENEATH | openat2.NO_SYMLINKS)
    os.chmod(f"/proc/self/fd/{made}", mode)
    return made


def _make_mount_point(target: str, is_directory: bool) -> None:
    """Anew: what was mounted there before is let go, and what it was mounted on may have been of the other kind."""
    os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
    unmount(target)
    with contextlib.suppress(FileNotFoundError):
        (os.rmdir if stat.S_ISDIR(os.lstat(target).st_mode) else os.unlink)(target)
    if is_directory:
        os.mkdir(target, 0o700)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = (ctypes.c_char_p(os.fsencode(word)) for word in (source, target, kind))
    checked(LIBC.mount(*words, ctypes.c_ulong(flags), ctypes.c_char_p(options.encode())), target)


def unmount(target: str) -> None:
    """All that is mounted there."""
    name = ctypes.c_char_p(os.fsencode(target))
    for _ in range(MAX_STACKED_MOUNTS):
        if LIBC.umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW):
            return  # EINVAL: no mount point


class _MountAttr(ctypes.Structure):
    """struct mount_attr of linux/mount.h."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd"))


def _set_read_only(target: str) -> None:
    """Make a mount and all below it read-only (mount_setattr(2), Linux 5.12)."""
    attributes = _MountAttr(attr_set=MOUNT_ATTR_RDONLY)
    size = ctypes.sizeof(attributes)
    name = ctypes.c_char_p(os.fsencode(target))
    result = LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, name, AT_RECURSIVE, ctypes.byref(attributes), size)
    checked(result, target)
