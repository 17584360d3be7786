"""Run steps inside Podman's user and mount namespace (`workers.userns.entry`), by `podman unshare`.

That command joins the namespaces of Podman's service, whichever process holds them, and makes missing ones. It is the
one public way in. It costs 0.1 s, so only steps that need it use it. Measured against
entering by nsenter(1) through a monitor's /proc entry, see `docs/volumes.md`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from workers.userns.fork_server import STAY
from workers.userns.standing import Broken, Late, Standing

DEADLINE_S: Final = 60.0
"""For all steps of one run, in seconds: most are a mount or two, but a volume may have many files."""
KILL_WAIT_S: Final = 2.0
"""How long one that was killed is waited for, in seconds: where a file system hangs, even SIGKILL has to wait."""
MAX_WORDS_CHARS: Final = 4096
"""Longest message kept of a failure, in characters."""

_PROGRAM: Final = Path(__file__).with_name("entry.py")

Step = tuple[str, Mapping[str, object]]
"""A function of `workers.userns.entry`, and its arguments."""


class UnshareError(Exception):
    """A step failed, or could not be tried. What came before it is done."""

    def __init__(self, message: str, done: int = 0) -> None:
        """``done``: how many steps came before."""
        super().__init__(message)
        self.done = done


class UnshareTimeout(UnshareError):
    """The deadline passed: what was under way is not done."""


class _Answer(msgspec.Struct, frozen=True):
    done: tuple[Any, ...]
    error: str = ""


class Unshare(msgspec.Struct, frozen=True):
    """How to get inside."""

    podman: str = "podman"
    """The command line's program."""
    options: tuple[str, ...] = ()
    """Global options of Podman's."""
    deadline_s: float = DEADLINE_S
    standing: Standing | None = None
    """Process that is in there already; None: each run comes in by itself."""

    def run(self, steps: Sequence[Step]) -> tuple[Any, ...]:
        """The steps' results. Blocks: for a thread. Raises UnshareError."""
        # json, not msgspec: paths need not be text, and only it passes on what stands for such bytes.
        request = json.dumps(list(steps)).encode()
        out, why = self._asked(request) or self._run_alone(request)
        try:
            answer = msgspec.json.decode(out, type=_Answer)
        except UNDECODABLE as error:
            raise UnshareError(f"podman unshare: {why.strip()[-MAX_WORDS_CHARS:]}") from error
        if answer.error:
            raise UnshareError(answer.error[:MAX_WORDS_CHARS], len(answer.done))
        return answer.done

    def close(self) -> None:
        """Nobody stays in there for this any more."""
        if self.standing is not None:
            self.standing.close()

    def _asked(self, request: bytes) -> tuple[bytes, str] | None:
        """The answer of the process that stays, as bytes and as what to say of them when they are none. Raises
        UnshareError."""
        if self.standing is None:
            return None
        try:
            out = self.standing.ask(request, self._start, self.deadline_s)
        except Late as late:
            raise _timeout(self.deadline_s) from late
        except Broken as broken:
            raise UnshareError("podman unshare: the process that carried out the steps has ended") from broken
        return None if out is None else (out, out.decode(errors="replace"))

    def _start(self, its: socket.socket, deadline_s: float) -> None:
        """Raises UnshareError."""
        try:
            _, words, code = _run((*self._command(), STAY), its.fileno(), b"", deadline_s)
        except UnshareTimeout as late:
            raise _timeout(self.deadline_s) from late
        if code:
            raise UnshareError(f"podman unshare: {words.strip()[-MAX_WORDS_CHARS:] or f'exit code {code}'}")

    def _run_alone(self, request: bytes) -> tuple[bytes, str]:
        """Raises UnshareError."""
        out, words, code = _run(self._command(), subprocess.PIPE, request, self.deadline_s)
        return out, words.strip() or f"exit code {code}"

    @property
    def command(self) -> tuple[str, ...]:
        """Beginning of every command of Podman's."""
        return (self.podman, *self.options)

    def _command(self) -> tuple[str, ...]:
        # -I -S: nothing of the user's and no site packages, which halves the time to start.
        return (*self.command, "unshare", sys.executable, "-I", "-S", str(_PROGRAM))


DEFAULT: Final = Unshare()


def _timeout(deadline_s: float) -> UnshareTimeout:
    return UnshareTimeout(f"podman unshare: not done within {deadline_s:g} s")


def _run(argv: Sequence[str], stdin: int, data: bytes, deadline_s: float) -> tuple[bytes, str, int]:
    """Output, messages and exit code. After the deadline all that it has started is killed. Raises UnshareError."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            process_group=0,  # podman waits for a child of its own: one signal has to reach both
        )
    except OSError as error:
        raise UnshareError(f"cannot run {argv[0]}: {error.strerror}") from error
    try:
        out, words = process.communicate(data or None, timeout=deadline_s)
    except subprocess.TimeoutExpired as error:
        _kill(process)
        raise _timeout(deadline_s) from error
    return out, words.decode(errors="replace"), process.returncode


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started. One that does not end even so is left to the kernel, and reaped by a
    later run (`subprocess` keeps those that were given up)."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_WAIT_S)
