"""A monitor that writes a container's log as conmon does, one step at a time: what it is told it reads, then it opens
the log anew, and between the two it writes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.podman_files.monitor_control import REOPEN, MonitorControl

STAMP = b"2026-11-20T08:37:22.791861700+00:00"


class LogMonitor:
    """The log is ``log``; the control file lies where Podman has it, below ``directory``."""

    def __init__(self, log: Path, directory: Path, container_id: str = "c1") -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        bundle = directory / container_id / "userdata"
        bundle.mkdir(parents=True)
        os.mkfifo(bundle / "ctl")
        self._log = log
        self._control = os.open(bundle / "ctl", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._in_hand = 0
        self.written = 0
        """Lines, which are numbered."""
        self.before_telling: Callable[[], None] = lambda: None

    def close(self) -> None:
        os.close(self._fd)
        os.close(self._control)

    def write(self, lines: int) -> None:
        """Unless it has something in hand."""
        self.reopen()
        for number in range(self.written, self.written + lines):
            os.write(self._fd, STAMP + b" stdout F line %d\n" % number)
        self.written += lines

    def read(self) -> None:
        """Take what it was told."""
        try:
            self._in_hand += os.read(self._control, 4096).count(REOPEN)
        except BlockingIOError:
            return

    def reopen(self) -> None:
        """Carry out what it has in hand (conmon's reopen_k8s_file)."""
        for _ in range(self._in_hand):
            successor = self._log.with_name(f"{self._log.name}.tmp")
            os.close(self._fd)
            self._fd = os.open(successor, os.O_WRONLY | os.O_TRUNC | os.O_CREAT | os.O_CLOEXEC, 0o600)
            successor.rename(self._log)
        self._in_hand = 0

    @contextmanager
    def control(self) -> Iterator[MonitorControl]:
        """The other side of the control file."""
        yield _Told(self._control, self.before_telling)


class _Told(MonitorControl):
    def __init__(self, fd: int, before_telling: Callable[[], None]) -> None:
        super().__init__(fd)
        self._before_telling = before_telling

    def reopen_log(self) -> None:
        self._before_telling()
        super().reopen_log()
