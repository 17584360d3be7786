"""Commands of the command line, each in a fork of one process that has imported them: ``python -m
tests.support.warm_commands`` with a socket as its standard input is that process.

An interpreter that imports what a command needs takes 0.14 s of CPU, and end-to-end tests run a thousand commands; a
fork takes a tenth of that. What a fork runs is the entry point, with its own arguments, environment, directory and
files, up to its exit code.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import select
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from ipc.host.clock import monotonic

PACKAGES: Final = ("supervisor.cli", "supervisor.client")
"""Imported with all their modules."""
MAX_REQUEST_BYTES: Final = 128 << 10
END_S: Final = 20.0
STATUS: Final = struct.Struct("=i")
"""First the process's id, then what `os.waitpid` says of its end."""


class Ended(NamedTuple):
    """A command that has ended; its exit code as `subprocess` has it."""

    code: int
    out: str
    err: str


@cache
def _server() -> socket.socket:
    """The end at which commands are asked for. The process ends when ours does, whatever ends that."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", __name__]
        process = subprocess.Popen(command, stdin=theirs.fileno(), cwd=Path(__file__).parents[2])

    def end() -> None:
        ours.close()
        process.wait(END_S)

    atexit.register(end)
    return ours


def run(arguments: Sequence[str], stdin: str, deadline_s: float) -> Ended:
    """Output of `rootlet` with these arguments. Raises subprocess.TimeoutExpired once it was killed for its time."""
    request = {"arguments": list(arguments), "environment": dict(os.environ), "directory": os.getcwd()}
    with contextlib.ExitStack() as stack:
        given, out, err, told = (_Pipe(stack) for _ in range(4))
        files = [given.read, out.write, err.write, told.write]
        socket.send_fds(_server(), [json.dumps(request).encode()], [file.fileno() for file in files])
        for file in files:
            file.close()
        (pid,) = STATUS.unpack(told.read.read(STATUS.size))
        feeder = threading.Thread(target=_feed, args=(given.write, stdin.encode()))
        feeder.start()
        try:
            texts = _read_all((out.read, err.read, told.read), monotonic() + deadline_s)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["rootlet", *arguments], deadline_s) from None
        finally:
            feeder.join()
        (status,) = STATUS.unpack(texts[2])
        return Ended(os.waitstatus_to_exitcode(status), texts[0].decode(), texts[1].decode())


class _Pipe:
    def __init__(self, stack: contextlib.ExitStack) -> None:
        read, write = os.pipe()
        self.read = stack.enter_context(FileIO(read, "rb"))
        self.write = stack.enter_context(FileIO(write, "wb"))


def _feed(pipe: FileIO, data: bytes) -> None:
    """All of it, unless nobody reads it; then the end."""
    with contextlib.suppress(BrokenPipeError), pipe:
        while data:
            data = data[pipe.write(data) or 0 :]


def _read_all(pipes: Sequence[FileIO], end_at: float) -> list[bytes]:
    """Bytes that come out of each until its end. Raises TimeoutError at that monotonic second."""
    found = {pipe.fileno(): bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as left:
        for number in found:
            left.register(number, selectors.EVENT_READ)
        while left.get_map():
            ready = left.select(max(end_at - monotonic(), 0.0))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if data := os.read(key.fd, 1 << 16):
                    found[key.fd] += data
                else:
                    left.unregister(key.fd)
    return [bytes(text) for text in found.values()]


# --- the process that forks ---


def main() -> int:
    """Fork for each request, until nobody is left who asks."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    asked = socket.socket(fileno=os.dup(0))
    listening = asked.fileno()
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([listening, woken], (), ())
        if woken in ready:
            os.read(woken, 1 << 16)
            _tell_ends(running)
        if listening in ready:
            data, files, _, _ = socket.recv_fds(asked, MAX_REQUEST_BYTES, 4)
            if not data:
                return 0
            pid = os.fork()
            if not pid:
                _become(json.loads(data), files)
            os.write(files[-1], STATUS.pack(pid))
            running[pid] = files.pop()
            for file in files:
                os.close(file)


def _tell_ends(running: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            teller = running.pop(found[0])
            with contextlib.suppress(BrokenPipeError):  # who asked has given up
                os.write(teller, STATUS.pack(found[1]))
            os.close(teller)


def _become(request: dict[str, Any], files: Sequence[int]) -> NoReturn:
    """The command, up to its end."""
    code = 70
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
        os.closerange(3, max(files) + 1)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        Path("/proc/self/comm").write_text("rootlet")  # who asks is told by this name
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["directory"])
        sys.argv = [shutil.which("rootlet") or "rootlet", *request["arguments"]]
        code = importlib.import_module("supervisor.__main__").main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
