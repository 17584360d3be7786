"""Commands and agents, each in a fork of a process that has imported what they need: ``python -m
tests.support.warm_commands`` with a socket as its standard input is that process.

An interpreter that imports what a command needs takes 0.14 s of CPU, and end-to-end tests run a thousand commands; a
fork takes a tenth of that. The processes of an agent import for 1.2 s of CPU, and there are 200 agents. What a fork
runs is the entry point, with its own arguments, environment, directory and files, up to its exit code.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
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
from collections.abc import Mapping, Sequence
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from ipc.host.clock import monotonic
from ipc.host.process.prctl import set_parent_death_signal

COMMANDS: Final = ("supervisor.cli", "supervisor.client")
AGENT: Final = ("ipc", "supervisor", "workers")
"""Packages that are imported with all their modules, for commands and for agents."""
MAX_REQUEST_BYTES: Final = 128 << 10
END_S: Final = 20.0
MAX_DESCRIPTOR: Final = 2**31 - 1
STATUS: Final = struct.Struct("=i")
"""First the process's id, then what `os.waitpid` says of its end."""


class Started:
    """A program that runs, with what the tests use of `subprocess.Popen`."""

    def __init__(self, pid: int, told: FileIO) -> None:
        """``told``: where its end is told."""
        self.pid = pid
        self.returncode: int | None = None
        self._told = told

    def poll(self) -> int | None:
        """Its exit code once it has ended, as `subprocess` has it."""
        if self.returncode is None and select.select([self._told], (), (), 0)[0]:
            self._take_end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired after so many seconds."""
        if self.returncode is None:
            if not select.select([self._told], (), (), timeout)[0]:
                raise subprocess.TimeoutExpired("rootlet run", timeout or 0.0)
            self._take_end()
        assert self.returncode is not None, "it was taken"
        return self.returncode

    def send_signal(self, signum: int) -> None:
        """None to one that has ended."""
        if self.poll() is None:
            os.kill(self.pid, signum)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _take_end(self) -> None:
        with self._told:
            (status,) = STATUS.unpack(self._told.read(STATUS.size))
        self.returncode = os.waitstatus_to_exitcode(status)


class Ended(NamedTuple):
    """A command that has ended; its exit code as `subprocess` has it."""

    code: int
    out: str
    err: str


@cache
def _server(packages: tuple[str, ...]) -> socket.socket:
    """The end at which a process that has imported these is asked. It ends when ours does, whatever ends that."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", __name__, *packages]
        process = subprocess.Popen(command, stdin=theirs.fileno(), cwd=Path(__file__).parents[2])

    def end() -> None:
        ours.close()
        process.wait(END_S)

    atexit.register(end)
    return ours


def run(arguments: Sequence[str], stdin: str, deadline_s: float) -> Ended:
    """Output of `rootlet` with these arguments. Raises subprocess.TimeoutExpired once it was killed for its time."""
    with contextlib.ExitStack() as stack:
        given, out, err, told = (_Pipe(stack) for _ in range(4))
        pid = _ask(COMMANDS, arguments, os.environ, [given.read, out.write, err.write], told)
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


def start_agent(arguments: Sequence[str], environment: Mapping[str, str], log: FileIO) -> Started:
    """`rootlet` with these arguments, as the leader of a session that says everything to ``log``. It gets SIGTERM when
    the tests end, whatever ends them."""
    with contextlib.ExitStack() as stack:
        nothing = stack.enter_context(FileIO(os.devnull, "rb"))
        told = _Pipe(stack)
        pid = _ask(AGENT, arguments, environment, [nothing, log, log], told)
        stack.pop_all()  # what reads its end stays
    return Started(pid, told.read)


class _Pipe:
    def __init__(self, stack: contextlib.ExitStack) -> None:
        read, write = os.pipe()
        self.read = stack.enter_context(FileIO(read, "rb"))
        self.write = stack.enter_context(FileIO(write, "wb"))


def _ask(
    packages: tuple[str, ...],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: Sequence[FileIO],
    told: _Pipe,
) -> int:
    """The process's id. ``files``: its input, output and errors, closed here; ``told`` gets how it ends."""
    request = {"arguments": list(arguments), "environment": dict(environment), "directory": os.getcwd()}
    sent = [*files, told.write]
    socket.send_fds(_server(packages), [json.dumps(request).encode()], [file.fileno() for file in sent])
    for file in sent:
        file.close()
    (pid,) = STATUS.unpack(told.read.read(STATUS.size))
    return int(pid)


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


def main(packages: Sequence[str]) -> int:
    """Fork for each request, until nobody is left who asks."""
    for package in packages:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    gc.freeze()
    server = os.getpid()
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
                if packages == list(AGENT):
                    os.setsid()
                    set_parent_death_signal(signal.SIGTERM, server)
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
        os.closerange(3, MAX_DESCRIPTOR)
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
    sys.exit(main(sys.argv[1:]))
