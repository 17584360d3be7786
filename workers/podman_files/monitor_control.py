"""conmon's control file: a FIFO through which the monitor of a container is told to open its log anew.

``2 0 0`` is that word (src/ctrl.c, REOPEN_LOGS_EVENT; CRI-O rotates by it). conmon then opens ``<log>.tmp``, empties it
and renames it to ``<log>`` (src/ctr_logging.c, reopen_k8s_file): there is a log at every moment, and every entry is
whole in the old file or in the new one.

The file lies in the container's bundle, into which the agent's user cannot look when the pod has ids of its own: so it
is reached through the descriptors of the monitor, which is a process of that user.

Tried on conmon 2.1.6 (Podman 4.3.1), 2.1.12 (5.4.2) and 2.1.13 (5.8.6, 6.1.1), by
tests/contract/test_log_rotation_podman.py. Where the monitor has no such file or does not read it, the log is not
rotated, which the agent's log says.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

REOPEN: Final = b"2 0 0\n"
_NAME: Final = "userdata/ctl"


class MonitorControl:
    """An open control file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def has_unread(self) -> bool:
        """Whether the monitor has not read all that it was told."""
        return bool(struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, bytes(4)))[0])

    def reopen_log(self) -> None:
        """Raises OSError: the monitor is gone, or reads nothing."""
        if os.write(self._fd, REOPEN) != len(REOPEN):
            raise OSError(errno.EAGAIN, "the monitor's control file is full")


@contextmanager
def monitor_control(container_id: str, monitor_pid: int) -> Iterator[MonitorControl]:
    """Control file of that container, by the process that is its monitor or was. Raises OSError."""
    fd = _open(container_id, monitor_pid)
    try:
        yield MonitorControl(fd)
    finally:
        os.close(fd)


def _open(container_id: str, monitor_pid: int) -> int:
    """The container's id in the path tells that the process is its monitor still."""
    descriptors = f"/proc/{monitor_pid}/fd"
    for number in os.listdir(descriptors):
        path = f"{descriptors}/{number}"
        if not _target(path).endswith(f"/{container_id}/{_NAME}"):
            continue
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
    raise FileNotFoundError(errno.ENOENT, "no control file is open in the monitor", descriptors)


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""  # closed meanwhile
