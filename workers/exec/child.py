"""A child process that runs one command in a container: its output, its end. No thread waits for either."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from typing import Final

from ipc.link.eventloop.shortages import tells_of_shortage
from workers.exec.direct import ENTERING, Target
from workers.kubecontainer.runtime import EXEC, MAX_EXEC_OUTPUT_BYTES, ErrorKind, ExecResult, RuntimeCallError

READ_BYTES: Final = 64 * 1024
"""Read at a time: a pipe holds no more."""
MAX_LOG_BYTES: Final = 16 * 1024
"""Most that is read of what the OCI runtime has to say, in bytes."""
_ENTRY: Final = re.compile(r"\S")
_JSON: Final = json.JSONDecoder()
_SIGNALS: Final = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class NotStarted(Exception):
    """The command has not run. The message is that of the program that could not start it."""

    def passes(self) -> bool:
        """Whether it may go well a little later: something was short."""
        return tells_of_shortage(str(self))


class ExecChild:
    """For one event loop. To be closed."""

    def __init__(self, pid: int, output_fd: int, log_fd: int) -> None:
        self.pid = pid
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(pid)
        self._output_fd, self._log_fd = output_fd, log_fd
        self._head = bytearray()
        self._open = True
        self._ended = asyncio.Event()
        self._exit: os.waitid_result | None = None
        self._loop.add_reader(self._output_fd, self._read)
        self._loop.add_reader(self._pidfd, self._end)

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    async def ended(self) -> None:
        """Wait for the end of the process, and not of its output, which something that it has started may hold open."""
        await self._ended.wait()

    def kill(self) -> None:
        if not self.has_ended:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def result(self) -> ExecResult:
        """Output and exit code of the command. Raises NotStarted; INTERNAL when the OCI runtime was killed."""
        assert self._exit is not None, "it has ended"
        exit_code = self._exit.si_status
        if self._exit.si_code != os.CLD_EXITED:
            raise RuntimeCallError(ErrorKind.INTERNAL, EXEC, f"signal {exit_code} has ended the OCI runtime")
        if words := self._refusal(exit_code):
            raise NotStarted(words)
        kept = bytes(self._head[:MAX_EXEC_OUTPUT_BYTES])
        return ExecResult(exit_code=exit_code, output=kept, limited=len(self._head) > MAX_EXEC_OUTPUT_BYTES)

    def close(self) -> None:
        """Give the descriptors up. A command that still runs runs on."""
        for fd in (self._output_fd, self._pidfd):
            self._loop.remove_reader(fd)
        for fd in (self._output_fd, self._pidfd, self._log_fd):
            os.close(fd)

    def _end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self._exit = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)
        while self._open and len(self._head) <= MAX_EXEC_OUTPUT_BYTES and self._read():
            pass
        self._ended.set()

    def _read(self) -> bool:
        """Whether there was any. All is read, for the sake of the writer; the head is kept, and one byte more."""
        try:
            part = os.read(self._output_fd, READ_BYTES)
        except BlockingIOError:
            return False
        if not part:
            self._open = False
            self._loop.remove_reader(self._output_fd)
        self._head += part[: MAX_EXEC_OUTPUT_BYTES + 1 - len(self._head)]
        return bool(part)

    def _refusal(self, exit_code: int) -> str:
        """Why the command was not started, as the OCI runtime's log or nsenter says; empty when it was."""
        if not exit_code:
            return ""
        if self._head.startswith(ENTERING.encode()):
            return self._head.decode(errors="replace").strip()
        return last_error(os.pread(self._log_fd, MAX_LOG_BYTES, 0))


def last_error(log: bytes) -> str:
    """The last error in the log of an OCI runtime; empty if there is none.

    Its entries are JSON objects one after the other: crun before 1.28 writes each on a line of its own, newer ones over
    five lines.
    """
    words, text, position = "", log.decode(errors="replace"), 0
    while entry := _ENTRY.search(text, position):
        try:
            said, position = _JSON.raw_decode(text, entry.start())
        except (ValueError, RecursionError):
            break  # cut off, or no JSON
        if isinstance(said, dict) and said.get("level") == "error":
            words = str(said.get("msg", ""))
    return words


def spawn(target: Target, process: bytes) -> ExecChild:
    """Begin the command of that process description in a container. Raises OSError.

    posix_spawn starts a program without running any of this process's code in the child, so it needs no fork server.
    The files that the OCI runtime reads and writes have no names: nothing has to be removed.
    """
    opened: list[int] = []
    try:
        process_fd = _keep(opened, os.memfd_create("process.json"))
        os.write(process_fd, process)
        log_fd = _keep(opened, os.memfd_create("log"))
        output_fd, written_fd = os.pipe2(os.O_CLOEXEC)
        opened += (output_fd, written_fd)
        os.set_blocking(output_fd, False)
        pid = os.posix_spawn(
            target.program,
            target.arguments(f"/proc/self/fd/{process_fd}", f"/proc/self/fd/{log_fd}"),
            target.env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, written_fd, 1),
                (os.POSIX_SPAWN_DUP2, written_fd, 2),
                # Onto itself: the child, and no other, inherits it.
                (os.POSIX_SPAWN_DUP2, process_fd, process_fd),
                (os.POSIX_SPAWN_DUP2, log_fd, log_fd),
            ],
            setpgroup=0,  # what the terminal sends to the agent is not for it
            setsigmask=(),
            setsigdef=_SIGNALS,
        )
        try:
            child = ExecChild(pid, output_fd, log_fd)
        except OSError:  # no descriptor is left for it: it has no more than begun
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        opened = [process_fd, written_fd]
        return child
    finally:
        for fd in opened:
            os.close(fd)


def _keep(opened: list[int], fd: int) -> int:
    opened.append(fd)
    return fd
