"""A command and its children on a slower disk: each of their flushes takes that much longer.

python -m tests.bench.slow_disk --flush-ms 5 python -m tests.bench --plans "empty host" --phases raw --store transient

The kernel hands each flush of these processes to this one (seccomp's user notification), which waits before it lets the
call go on. A flush of a file on another file system than ``--disk``, such as the runtime directory, waits for nothing.
Flushes wait beside each other, as they do on a disk with a queue. The processes cannot gain privileges: so Podman's
pause process is made before.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Final, NoReturn

CALLS: Final = {
    "x86_64": (317, 0xC000003E, {"fsync": 74, "fdatasync": 75, "syncfs": 306}),
    "aarch64": (277, 0xC00000B7, {"fsync": 82, "fdatasync": 83, "syncfs": 267}),
}
"""By machine: number of seccomp(2), AUDIT_ARCH, numbers of the calls that flush a descriptor."""
PR_SET_NO_NEW_PRIVS: Final = 38
SECCOMP_SET_MODE_FILTER: Final = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER: Final = 1 << 3
ALLOW: Final = 0x7FFF0000
USER_NOTIF: Final = 0x7FC00000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags, number of the call, arch, instruction pointer, arguments."""
ANSWER: Final = struct.Struct("=QqiI")
"""struct seccomp_notif_resp: id, value, error, flags."""
RECEIVE: Final = 0xC0502100
SEND: Final = 0xC0182101
CONTINUE: Final = 1
AT_ONCE: Final = 256
"""Flushes that may wait beside each other."""
PAUSE: Final = ("podman", "unshare", "true")
"""Makes Podman's pause process, for which it gains privileges."""


def program() -> bytes:
    """A classic BPF program: flushes are notified, all else is allowed."""
    _, arch, calls = CALLS[platform.machine()]
    last = len(calls)
    steps = [
        (LOAD, 0, 0, 4),
        (EQUAL, 0, last + 1, arch),
        (LOAD, 0, 0, 0),
        *((EQUAL, last - place, 0, number) for place, number in enumerate(calls.values())),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, USER_NOTIF),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def install() -> int:
    """The filter for this process and all it starts. Its listener. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program())
    filter = ctypes.create_string_buffer(struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(code)))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    number = CALLS[platform.machine()][0]
    listener: int = libc.syscall(number, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, filter)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


class SlowDisk:
    """Answers to notified flushes. ``device``: of the file system that is slow."""

    def __init__(self, listener: int, flush_s: float, device: int) -> None:
        self._listener, self._flush_s, self._device = listener, flush_s, device
        self.flushes = 0
        """Flushes that have waited."""

    def serve(self) -> None:
        """Until no process with the filter is left."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while (found := self._receive()) is not None:
                id, pid, fd = found
                slow = self._is_slow(pid, fd)
                self.flushes += slow
                pool.submit(self._answer, id, self._flush_s if slow else 0.0)

    def _receive(self) -> tuple[int, int, int] | None:
        """Id, process and descriptor of the next flush."""
        while True:
            buffer = bytearray(NOTIFICATION.size)
            try:
                fcntl.ioctl(self._listener, RECEIVE, buffer)
            except OSError as error:
                if error.errno == errno.ENOENT:  # killed meanwhile, or nobody is left
                    if self._is_over():
                        return None
                    continue
                raise
            id, pid, _, _, _, _, fd, *_ = NOTIFICATION.unpack(buffer)
            return id, pid, fd & 0xFFFFFFFF

    def _is_over(self) -> bool:
        poll = select.poll()
        poll.register(self._listener, select.POLLHUP)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def _answer(self, id: int, after_s: float) -> None:
        sleep(after_s)
        try:
            fcntl.ioctl(self._listener, SEND, ANSWER.pack(id, 0, 0, CONTINUE))
        except OSError as error:
            if error.errno != errno.ENOENT:  # it was killed meanwhile
                raise

    def _is_slow(self, pid: int, fd: int) -> bool:
        try:
            return os.stat(f"/proc/{pid}/fd/{fd}").st_dev == self._device
        except OSError:  # it has ended, or is a container's of another user
            return False


def become(command: Sequence[str], parent: socket.socket) -> NoReturn:
    """Run the command under the filter, whose listener is handed over."""
    socket.send_fds(parent, [b"l"], [install()])
    parent.close()
    os.execvp(command[0], list(command))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.slow_disk", description=__doc__)
    parser.add_argument("--flush-ms", type=float, default=5.0)
    parser.add_argument("--disk", type=Path, default=Path("/tmp"), help="a directory on the disk that is slow")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    subprocess.run(PAUSE, check=True, timeout=60)
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        ours.close()
        become(options.command, theirs)
    theirs.close()
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    disk = SlowDisk(listener, options.flush_ms / 1000, options.disk.stat().st_dev)
    serving = threading.Thread(target=disk.serve, daemon=True)
    serving.start()
    _, status = os.waitpid(child, 0)
    print(f"{disk.flushes} flushes took {options.flush_ms:g} ms longer", file=sys.stderr)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
