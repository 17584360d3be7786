"""Removing what other users of a container have made."""

from __future__ import annotations

import os
from collections.abc import Iterator

from workers.fs import openat2
from workers.fs.tree_removal import remove_tree
from workers.userns.steps.mounts import unmount
from workers.userns.steps.syscalls import Refused


def remove(path: str) -> None:
    """A tree with files of any id that is mapped. What is mounted in it is let go first, never entered: with a mount go
    all below it."""
    for mount_point in sorted(_mounts_at_or_below(path), key=len):
        unmount(mount_point)
    parent, name = os.path.split(path)
    try:
        with openat2.opened(None, parent, os.O_PATH | os.O_DIRECTORY, openat2.NO_SYMLINKS) as directory:
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
