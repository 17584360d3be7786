"""A file system that an ordinary user mounts and unmounts: fuse-overlayfs, above a directory that has its files."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.hung_file_system import FUSERMOUNT
from tests.support.podman_service import wait_until

OVERLAY: Final = "fuse-overlayfs"
DEADLINE_S: Final = 30.0


def why_not() -> str:
    """Why this host can have none; empty if it can."""
    missing = [program for program in (OVERLAY, FUSERMOUNT) if shutil.which(program) is None]
    if missing:
        return f"no {missing[0]} on this host: an ordinary user mounts nothing"
    shut = [path for path in ("/dev/fuse", "/etc/mtab") if not os.access(path, os.R_OK)]
    return f"{shut[0]} cannot be opened: an ordinary user mounts nothing" if shut else ""


def is_mounted(point: Path) -> bool:
    """Also a mount whose server is dead."""
    return f" {point} " in Path("/proc/self/mountinfo").read_text()


class OverlayMount:
    """One mount point, which is an empty directory while nothing is mounted there."""

    def __init__(self, files: Path, point: Path, scratch: Path) -> None:
        """``files`` is the directory with the files, ``scratch`` an empty one for what is written."""
        self._point = point
        self._upper, self._work = scratch / "upper", scratch / "work"
        for each in (self._upper, self._work):
            each.mkdir()
        self._server: subprocess.Popen[bytes] | None = None
        self._options = f"lowerdir={files},upperdir={self._upper},workdir={self._work}"

    def mount(self) -> None:
        """Returns when it is mounted."""
        words = (OVERLAY, "-f", "-o", self._options, str(self._point))
        self._server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: is_mounted(self._point), DEADLINE_S)

    def kill_server(self) -> None:
        """Kill the process that answers. What is mounted stays, and every look at it fails with ENOTCONN."""
        assert self._server is not None
        self._server.kill()
        self._server.wait(DEADLINE_S)

    def is_unmounted(self) -> bool:
        """Unmount it, unless somebody reads there at the moment: whether it is gone."""
        words = (FUSERMOUNT, "-u", str(self._point))
        is_gone = subprocess.run(words, capture_output=True, check=False, timeout=DEADLINE_S).returncode == 0
        if is_gone:
            self._reap()
        return is_gone

    def let_go(self) -> None:
        """Unmount it, whoever reads there."""
        if is_mounted(self._point):
            subprocess.run((FUSERMOUNT, "-u", "-z", str(self._point)), check=True, timeout=DEADLINE_S)
            self._reap()

    def _reap(self) -> None:
        """The server ends with its mount."""
        assert self._server is not None
        self._server.wait(DEADLINE_S)


@contextmanager
def overlay(files: Path, point: Path) -> Iterator[OverlayMount]:
    """With that mount, which is not mounted yet. Nothing is mounted afterwards."""
    with tempfile.TemporaryDirectory(prefix="rl-overlay-", dir="/tmp") as scratch:
        mounted = OverlayMount(files, point, Path(scratch))
        try:
            yield mounted
        finally:
            mounted.let_go()
