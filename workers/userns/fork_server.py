"""The other end of `workers.userns.standing`: a process that stays in Podman's namespaces and forks one for each run.

It needs nothing but the standard library: `workers.userns.entry` starts it, in an interpreter that has nothing else.
A run has a process of its own, in a process group of its own: one that hangs holds nobody up, and is killed with all
that it has started.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Final

STAY: Final = "stay"
"""Argument of `workers.userns.entry`: its standard input is a socket on which requests come."""
IDLE_S: Final = 60.0
"""Without a request for so long it leaves, in seconds: its memory is somebody else's."""
REQUEST: Final = b"\0"
"""A packet to it, with one end of the run's own connection beside it."""
_READ_BYTES: Final = 1 << 16
_CONTROL: Final = 0
"""Standard input is the only descriptor that `podman unshare` passes on whatever its version."""


def stay(run: Callable[[bytes], bytes]) -> None:
    """Serve in a process of its own, and return in this one. ``run`` takes a request and gives the answer. Raises
    OSError."""
    if os.fork():
        return  # podman unshare ends, and with it two processes of Podman's
    try:
        os.setsid()
        with socket.socket(fileno=os.dup(_CONTROL)) as control:
            _let_go_of_standard_streams()
            control.send(json.dumps(os.readlink("/proc/self/ns/mnt")).encode())
            _serve(control, run)
    finally:
        os._exit(0)


def _let_go_of_standard_streams() -> None:
    """`podman unshare` is waited for until nobody has its streams any more."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in range(3):
        os.dup2(null, stream)
    os.close(null)


def _serve(control: socket.socket, run: Callable[[bytes], bytes]) -> None:
    """Until the other end is closed, or nobody has asked for long."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    while select.select([control], [], [], IDLE_S)[0]:
        data, fds, _, _ = socket.recv_fds(control, len(REQUEST), 1)
        if not data:
            return
        for fd in fds:
            with socket.socket(fileno=fd) as connection:
                if _fork():
                    continue
                control.close()
                _carry_out(connection, run)
                os._exit(0)


def _fork() -> int:
    """As os.fork. Where the kernel refuses, the run's connection ends with nothing said: nothing was done."""
    try:
        return os.fork()
    except OSError:
        return -1


def _carry_out(connection: socket.socket, run: Callable[[bytes], bytes]) -> None:
    """Say who is to be killed, then read the request, which comes after that, and answer it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    connection.sendall(b"%d\n" % os.getpid())
    pieces = []
    while piece := connection.recv(_READ_BYTES):
        pieces.append(piece)
    if pieces:
        connection.sendall(_answer(run, b"".join(pieces)))


def _answer(run: Callable[[bytes], bytes], request: bytes) -> bytes:
    """Or, as Python would say it on standard error, why there is none."""
    try:
        return run(request)
    except Exception:
        import traceback  # takes a while, for which no other run should have to wait

        return traceback.format_exc().encode(errors="backslashreplace")
