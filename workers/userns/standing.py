"""A process that stays in Podman's namespaces for a worker's runs (`workers.userns.fork_server`), from the first to the
last of them.

It comes in as any run does, by `podman unshare`, which then ends: what is saved is two starts of Podman and one of an
interpreter, 0.1 s of each run. Podman may make its namespaces anew; so the process is asked only while Podman's pause
process, which every command of Podman's joins, is where it is itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Final

from ipc.host.clock import monotonic
from ipc.host.pause_process import pause_namespace
from workers.userns.fork_server import REQUEST

MAX_HELLO_BYTES: Final = 128
_READ_BYTES: Final = 1 << 16

Start = Callable[[socket.socket, float], None]
"""Has a process come in whose standard input is that socket; seconds until it gives up. Raises what it wants."""


class Late(Exception):
    """The deadline passed, and the run was killed with all that it had started."""


class Broken(Exception):
    """The run ended without an answer: what it did is not known."""


class _Gone(Exception):
    """The process is not there any more. Nothing was done."""


class Standing:
    """One worker's; its threads share it, and it leaves with the worker."""

    def __init__(self, namespace: Callable[[], str] = pause_namespace) -> None:
        """``namespace``: which mount namespace Podman's commands join now; empty when that is not known."""
        self._namespace = namespace
        self._turn = threading.Lock()
        self._control: socket.socket | None = None
        self._is_in = ""

    def ask(self, request: bytes, start: Start, deadline_s: float) -> bytes | None:
        """The answer to a request. None when nobody can be asked, and nothing was done. Raises Late, Broken, and what
        ``start`` raises."""
        until = monotonic() + deadline_s
        if not self._turn.acquire(timeout=deadline_s):
            raise Late
        try:
            found = self._begun(start, until)
        except Late:
            self.close()  # one that hangs itself
            raise
        finally:
            self._turn.release()
        if found is None:
            return None
        connection, group = found
        with connection:
            return _answer(connection, group, request, until)

    def close(self) -> None:
        """Let it leave. Runs that are under way go on."""
        if self._control is not None:
            self._control.close()
            self._control = None

    def _begun(self, start: Start, until: float) -> tuple[socket.socket, int] | None:
        """A run's connection and its process group."""
        if not (wanted := self._namespace()):
            self.close()
            return None
        if self._control is not None and self._is_in == wanted:
            with contextlib.suppress(_Gone):
                return _run_of(self._control, until)
        self.close()
        self._control, self._is_in = _started(start, until)
        if self._is_in == self._namespace():
            with contextlib.suppress(_Gone):
                return _run_of(self._control, until)
        self.close()
        return None


def _started(start: Start, until: float) -> tuple[socket.socket, str]:
    """A new process's socket, and the mount namespace that it is in. Empty when it did not stay."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with its:
            start(its, until - monotonic())
        with contextlib.suppress(OSError, ValueError):
            ours.settimeout(_left_s(until))
            return ours, str(json.loads(ours.recv(MAX_HELLO_BYTES)))
    except BaseException:
        ours.close()
        raise
    return ours, ""


def _run_of(control: socket.socket, until: float) -> tuple[socket.socket, int]:
    """Raises _Gone, Late."""
    ours, its = socket.socketpair()
    try:
        with its:
            control.settimeout(_left_s(until))
            socket.send_fds(control, [REQUEST], [its.fileno()])
        return ours, int(_line(ours, until))
    except TimeoutError as error:
        ours.close()
        raise Late from error
    except (OSError, ValueError) as error:
        ours.close()
        raise _Gone from error
    except BaseException:
        ours.close()
        raise


def _line(connection: socket.socket, until: float) -> bytes:
    """Bytes up to a newline, or to the end. Raises OSError."""
    line = b""
    while not line.endswith(b"\n"):
        connection.settimeout(_left_s(until))
        if not (piece := connection.recv(MAX_HELLO_BYTES)):
            break
        line += piece
    return line


def _answer(connection: socket.socket, group: int, request: bytes, until: float) -> bytes:
    """Raises Late, Broken."""
    pieces = []
    try:
        connection.settimeout(_left_s(until))
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while piece := _received(connection, until):
            pieces.append(piece)
    except TimeoutError as error:
        # The run has its end of the connection still: so it lives, and the number is nobody else's.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        raise Late from error
    except OSError as error:
        raise Broken from error
    if not pieces:
        raise Broken
    return b"".join(pieces)


def _received(connection: socket.socket, until: float) -> bytes:
    connection.settimeout(_left_s(until))
    return connection.recv(_READ_BYTES)


def _left_s(until: float) -> float:
    """Raises TimeoutError."""
    if (left := until - monotonic()) <= 0:
        raise TimeoutError
    return left
