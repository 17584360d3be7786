"""A small disk that an ordinary user can make, fill and empty: for the agent outside and for Podman inside alike.

Only inside a user namespace may a user mount, and the agent is not to run in one: Podman could then neither map its ids
nor join its own. So the file system (a tmpfs) is mounted where Podman's pause process lives, and the agent reaches it
through that process's root in /proc. Containers get files of it mounted, which works only by a path of Podman's own
mount namespace; so one path leads there on both sides: outside a symlink, inside (below a mount that hides the symlink)
the mount itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.podman_service import podman

MAX_BYTES: Final = 16 << 20
MAX_FILES: Final = 4000
_BLOCK: Final = bytes(64 << 10)
_FULL: Final = "full"


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A directory on it; ``directory`` is made for this and must be on a disk that both sides see."""
    real, seen = directory / "disk", directory / "seen"
    for each in (real, seen):
        each.mkdir(parents=True)
    pause = Path(os.environ["XDG_RUNTIME_DIR"], "libpod/tmp/pause.pid")
    podman("info")  # makes the pause process when this is the user's first command
    (seen / "state").symlink_to(f"/proc/{pause.read_text().strip()}/root{real}")
    _inside(
        f"mount -t tmpfs -o size={MAX_BYTES},nr_inodes={MAX_FILES},mode=0700 tmpfs {real}",
        f"mount -t tmpfs -o size=64k,mode=0755 tmpfs {seen}",
        f"mkdir {seen}/state",
        f"mount --bind {real} {seen}/state",
    )
    try:
        yield seen / "state"
    finally:
        _inside(*(f"umount -l {mounted}" for mounted in (seen / "state", seen, real)))


def fill(disk: Path) -> None:
    """Neither a byte nor a file more."""
    ballast = disk / _FULL
    with _until_full():
        ballast.mkdir(exist_ok=True)
    with _until_full(), (ballast / "bytes").open("ab", buffering=0) as file:
        while True:
            file.write(_BLOCK)
    with _until_full():
        for number in range(MAX_FILES):
            (ballast / str(number)).touch()


def empty(disk: Path) -> None:
    """There is room again."""
    ballast = disk / _FULL
    for file in list(ballast.iterdir()) if ballast.is_dir() else ():
        file.unlink()
    with contextlib.suppress(FileNotFoundError):
        ballast.rmdir()


@contextlib.contextmanager
def _until_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def _inside(*commands: str) -> None:
    podman("unshare", "sh", "-ec", "; ".join(commands))
