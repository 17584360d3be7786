"""What can only be done inside Podman's user and mount namespace: a program of its own, run by `podman unshare`.

There this user is root, over the ids that are mapped: it may give files to a group of a container's, remove what other
users of a container have made, and mount. A mount made there is what containers' mounts are made from, and nobody
outside sees it; it goes when its mount point is removed, also from outside, and with the namespace.

Reads ``[[step, {argument: value}], ...]`` as JSON from standard input, carries the steps out in order up to the first
that fails, and writes ``{"done": [result, ...], "error": text}``. The interpreter is started without site packages,
because it is in the way of a container's start: so all that this needs of Rootlet needs only the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from workers.disk_usage import used_bytes
from workers.tree_removal import remove_tree
from workers.volumes import beneath

MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MNT_DETACH: Final = 0x2
UMOUNT_NOFOLLOW: Final = 0x8
MOUNT_ATTR_RDONLY: Final = 0x1
AT_FDCWD: Final = -100
AT_EMPTY_PATH: Final = 0x1000
AT_RECURSIVE: Final = 0x8000
SYS_MOUNT_SETATTR: Final = 442
"""On every architecture."""
MAX_STACKED_MOUNTS: Final = 64
"""Most mounts upon one another that are taken off one mount point."""
MAX_DEPTH: Final = 200
"""Most directories below one another that are given to a group: each costs descriptors."""
_NOT_HERE: Final = frozenset({errno.ENOENT, errno.EXDEV})
"""Gone, or another mount."""
READ_WRITE: Final = 0o660
READ_ONLY: Final = 0o440
DIRECTORY: Final = stat.S_ISGID | 0o110

_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """A step that must not be done. The message is for people."""


# --- mounts ------------------------------------------------------------------------------------------------------


def mount_tmpfs(target: str, size_bytes: int) -> None:
    """A tmpfs on a directory, unless one is there. ``size_bytes`` 0 leaves the size to the kernel: half of the memory.

    The mode is the directory's.
    """
    below = os.lstat(target)
    if below.st_dev != os.lstat(os.path.dirname(target)).st_dev:
        return
    size = f",size={size_bytes}" if size_bytes else ""
    _mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={stat.S_IMODE(below.st_mode):o}{size}")


def bind(
    root: str, target: str, sub_path: str = "", kinds: tuple[int, ...] = (), recursive_read_only: bool = False
) -> None:
    """Bind what lies at ``root``, or at ``sub_path`` beneath it, to ``target``, where nobody else can swap it.

    No part of ``root`` may be a symbolic link, and none of ``sub_path`` may lead out of it. A ``sub_path`` that is not
    there becomes a directory with the root's mode. ``kinds`` are the types of file (S_IFMT) that it may be; none: any.
    """
    with (
        beneath.opened(None, root, os.O_PATH, beneath.NO_SYMLINKS) as root_fd,
        _within(root_fd, sub_path) as source,
    ):
        mode = os.fstat(source).st_mode
        if kinds and stat.S_IFMT(mode) not in kinds:
            raise Refused(f"{root} has become a file of another type")
        _make_mount_point(target, stat.S_ISDIR(mode))
        _mount(f"/proc/self/fd/{source}", target, "", MS_BIND | MS_REC, "")
    if recursive_read_only:
        _set_read_only(target)


@contextlib.contextmanager
def _within(root: int, sub_path: str) -> Iterator[int]:
    """A descriptor of the path beneath the root; a part that is missing is made."""
    if not sub_path:
        yield root
        return
    resolve = beneath.BENEATH | beneath.NO_MAGICLINKS
    try:
        found = beneath.open_beneath(root, sub_path, os.O_PATH, resolve)
    except FileNotFoundError:
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
        return beneath.open_beneath(root, path, flags, beneath.BENEATH | beneath.NO_MAGICLINKS)
    except FileNotFoundError:
        os.mkdir(name, 0o700, dir_fd=directory)
    made = beneath.open_beneath(directory, name, flags | os.O_NOFOLLOW, beneath.BENEATH | beneath.NO_SYMLINKS)
    os.chmod(f"/proc/self/fd/{made}", mode)
    return made


def _make_mount_point(target: str, is_directory: bool) -> None:
    """Anew: what was mounted there before is let go, and what it was mounted on may have been of the other kind."""
    os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
    _unmount(target)
    with contextlib.suppress(FileNotFoundError):
        (os.rmdir if stat.S_ISDIR(os.lstat(target).st_mode) else os.unlink)(target)
    if is_directory:
        os.mkdir(target, 0o700)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = (ctypes.c_char_p(os.fsencode(word)) for word in (source, target, kind))
    _checked(_LIBC.mount(*words, ctypes.c_ulong(flags), ctypes.c_char_p(options.encode())), target)


def _unmount(target: str) -> None:
    """All that is mounted there."""
    name = ctypes.c_char_p(os.fsencode(target))
    for _ in range(MAX_STACKED_MOUNTS):
        if _LIBC.umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW):
            return  # EINVAL: no mount point


class _MountAttr(ctypes.Structure):
    """struct mount_attr of linux/mount.h."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd"))


def _set_read_only(target: str) -> None:
    """That mount and all below it (mount_setattr(2), Linux 5.12)."""
    attributes = _MountAttr(attr_set=MOUNT_ATTR_RDONLY)
    size = ctypes.sizeof(attributes)
    name = ctypes.c_char_p(os.fsencode(target))
    result = _LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, name, AT_RECURSIVE, ctypes.byref(attributes), size)
    _checked(result, target)


def _checked(result: int, path: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


# --- ownership ---------------------------------------------------------------------------------------------------


def give_to_group(path: str, gid: int, read_only: bool = False, only_on_root_mismatch: bool = False) -> None:
    """All below and the path itself to that group, with its rights (VolumeOwnership, pkg/volume/volume_linux.go).

    The root last: as long as it does not fit, OnRootMismatch sees that not everything is done.
    """
    with beneath.opened(None, path, os.O_PATH, beneath.NO_SYMLINKS) as root:
        if only_on_root_mismatch and _fits(os.fstat(root), gid, read_only):
            return
        if stat.S_ISDIR(os.fstat(root).st_mode):
            with beneath.opened(root, ".", beneath.READ_DIRECTORY, beneath.BENEATH) as directory:
                _give_below(directory, gid, read_only, 0)
        _give(root, gid, read_only)


def _fits(root: os.stat_result, gid: int, read_only: bool) -> bool:
    wanted = READ_ONLY if read_only else READ_WRITE
    if stat.S_ISDIR(root.st_mode):
        wanted |= DIRECTORY
    return root.st_gid == gid and root.st_mode & wanted == wanted


def _give_below(directory: int, gid: int, read_only: bool, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise Refused(f"more than {MAX_DEPTH} directories lie within one another")
    for name in os.listdir(directory):
        try:
            found = beneath.open_beneath(directory, name, os.O_PATH | os.O_NOFOLLOW, beneath.BENEATH | beneath.NO_XDEV)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            continue
        try:
            if stat.S_ISDIR(os.fstat(found).st_mode):
                with beneath.opened(found, ".", beneath.READ_DIRECTORY, beneath.BENEATH) as below:
                    _give_below(below, gid, read_only, depth + 1)
            _give(found, gid, read_only)
        finally:
            os.close(found)


def _give(file: int, gid: int, read_only: bool) -> None:
    """By its descriptor: of a symbolic link the link itself, which has no mode of its own."""
    _chown(file, gid)
    mode = os.fstat(file).st_mode
    if stat.S_ISLNK(mode):
        return
    wanted = (READ_ONLY if read_only else READ_WRITE) | (DIRECTORY if stat.S_ISDIR(mode) else 0)
    os.chmod(f"/proc/self/fd/{file}", stat.S_IMODE(mode) | wanted)


def _chown(file: int, gid: int) -> None:
    if os.fstat(file).st_gid != gid:
        _checked(_LIBC.fchownat(file, b"", -1, gid, AT_EMPTY_PATH), str(file))


# --- removal -----------------------------------------------------------------------------------------------------


def remove(path: str) -> None:
    """A tree with files of any id that is mapped. What is mounted in it is let go first, never entered."""
    for mount_point in sorted(_mounts_at_or_below(path), key=len, reverse=True):
        _unmount(mount_point)
    parent, name = os.path.split(path)
    try:
        with beneath.opened(None, parent, os.O_PATH | os.O_DIRECTORY, beneath.NO_SYMLINKS) as directory:
            stuck = remove_tree(directory, name)
    except FileNotFoundError:
        return
    if stuck:
        raise Refused(f"cannot remove {'; '.join(map(str, stuck))}")


def _mounts_at_or_below(path: str) -> Iterator[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            mount_point = _unescaped(line.split(" ", 5)[4])
            if mount_point == path or mount_point.startswith(f"{path}/"):
                yield mount_point


def _unescaped(word: str) -> str:
    """mountinfo writes space, tab, newline and backslash as octal numbers."""
    for escaped, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        word = word.replace(escaped, char)
    return word


# --- the program -------------------------------------------------------------------------------------------------

STEPS: Final[Mapping[str, Callable[..., Any]]] = {
    step.__name__: step for step in (mount_tmpfs, bind, give_to_group, remove, used_bytes)
}


def main() -> None:
    done: list[Any] = []
    error = ""
    for name, arguments in json.load(sys.stdin):
        try:
            done.append(STEPS[name](**arguments))
        except OSError as failure:
            error = f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure.strerror)
            break
        except Refused as refusal:
            error = str(refusal)
            break
    # Paths need not be text; what is told of them is.
    json.dump({"done": done, "error": error.encode(errors="backslashreplace").decode()}, sys.stdout)


if __name__ == "__main__":
    main()
