"""A terminal with a command in it, driven by a test that has the keyboard and reads the screen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator, Sequence
from typing import Final

from ipc.host.clock import monotonic

READ_BYTES: Final = 64 * 1024
DEADLINE_S: Final = 30.0
SIZE: Final = (31, 97)
"""Lines and columns that no program has as a default."""


class Terminal:
    """The end that a person would have."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.screen = b""
        """All that was shown, and not looked for yet."""

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def until(self, shown: bytes) -> bytes:
        """Output up to and with these bytes."""
        deadline = monotonic() + DEADLINE_S
        while shown not in self.screen:
            left_s = deadline - monotonic()
            assert left_s > 0, f"{shown!r} was not shown: {self.screen!r}"
            assert self._read(left_s), f"{shown!r} was not shown before the end: {self.screen!r}"
        before, _, self.screen = self.screen.partition(shown)
        return before + shown

    def resize(self, lines: int, columns: int) -> None:
        """The kernel tells the command with SIGWINCH."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def modes(self) -> list[object]:
        """As the command has set them."""
        return termios.tcgetattr(self._master)

    def is_raw(self) -> bool:
        local = self.modes()[3]
        assert isinstance(local, int)
        return not local & (termios.ICANON | termios.ECHO | termios.ISIG)

    def wait(self) -> int:
        """Exit code; the screen has all that the command said."""
        deadline = monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert monotonic() < deadline, f"it did not end: {self.screen!r}"
            self._read(0.05)
        while self._read(0.0):
            continue
        return self.process.returncode

    def _read(self, timeout_s: float) -> bool:
        """Whether there was something."""
        readable, _, _ = select.select([self._master], [], [], timeout_s)
        if not readable:
            return False
        data = os.read(self._master, READ_BYTES)
        self.screen += data
        return bool(data)


@contextlib.contextmanager
def terminal(command: Sequence[str], size: tuple[int, int] = SIZE) -> Iterator[Terminal]:
    """Run the command with a terminal of its own, of so many lines and columns, as all of its streams."""
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        process = subprocess.Popen(["setsid", "--ctty", *command], stdin=slave, stdout=slave, stderr=slave)
        try:
            yield Terminal(master, process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()
    finally:
        os.close(slave)
        os.close(master)
