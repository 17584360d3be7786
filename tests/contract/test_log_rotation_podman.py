"""Rotation of the log of a real container, whose conmon writes all the time: the process that rotates is killed at each
single step, and the next one finds out what is the matter."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.contract.podman_host import DEADLINE_S, PodmanHost, container, errors
from tests.support.crashing_os import WatchedOs, watched
from tests.support.podman_service import PATIENCE, wait_until
from tests.support.shown_log import shown_log
from workers.api_server.handlers.log_files import LogOptions
from workers.kubecontainer.runtime import ContainerProcess
from workers.logs.rotate import Unconfirmed, compress_older, rotate
from workers.podman_files.monitor_control import MonitorControl, monitor_control

pytestmark = [pytest.mark.podman, pytest.mark.timeout(240 * PATIENCE)]

MODULES: Final = ("workers.logs.rotate", "ipc.host.regular_files")
MANY: Final = 1000
MOST_STEPS: Final = 100
WRITES: Final = "n=0; until [ -e /stop ]; do seq $n $((n + 19)); n=$((n + 20)); sleep 0.02; done; echo end; sleep 3600"


class Log:
    """A container's log, and those who rotate it one after the other."""

    def __init__(self, file: Path, process: ContainerProcess) -> None:
        self.file = file
        self._container_id = process.container_id
        self._monitor_pid = psutil.Process(process.pid).ppid()

    @contextlib.contextmanager
    def control(self, system: WatchedOs | None = None) -> Iterator[MonitorControl]:
        with monitor_control(self._container_id, self._monitor_pid) as control:
            yield _Told(control, system) if system is not None else control

    def rotated_by_one_that_is_killed(self, step: int) -> bool:
        """Rotate and compress in a process that dies before its change of that number: False when it has fewer."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with watched(lambda change: _die() if change == step else None, MODULES) as system:
                    before = self.file.stat().st_ino
                    rotate(self.file, MANY, time.time(), lambda: self.control(system), None)
                    wait_until(lambda: self.file.stat().st_ino != before, DEADLINE_S)
                    compress_older(self.file, lambda: True)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        assert status in (0, signal.SIGKILL)
        return status != 0

    def finish(self) -> None:
        """As the next process does, which knows nothing: until the log is another file."""
        before, unconfirmed = self.file.stat().st_ino, None

        def has_gone_over() -> bool:
            nonlocal unconfirmed
            with contextlib.suppress(FileNotFoundError):
                if self.file.stat().st_ino != before and self.file.stat().st_nlink == 1:
                    return True
            unconfirmed = self._rotate_once(unconfirmed)
            return False

        wait_until(has_gone_over, DEADLINE_S)
        compress_older(self.file, lambda: True)

    def _rotate_once(self, unconfirmed: Unconfirmed | None) -> Unconfirmed | None:
        return rotate(self.file, MANY, time.time(), self.control, unconfirmed).unconfirmed

    async def lines(self) -> list[str]:
        """All that a client is shown."""
        return (await shown_log(self.file, LogOptions())).decode().splitlines()


class _Told(MonitorControl):
    """To tell the monitor is a change like those of files."""

    def __init__(self, control: MonitorControl, system: WatchedOs) -> None:
        self._control = control
        self._system = system

    def has_unread(self) -> bool:
        return self._control.has_unread()

    def reopen_log(self) -> None:
        self._system.change()
        self._control.reopen_log()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def test_a_kill_at_each_step_loses_and_doubles_no_line_of_a_real_monitor(host: PodmanHost) -> None:
    of = host.pod(container("talks", WRITES))
    assert errors(await host.sync(of)) == []
    made = (await host.containers())["talks"]
    [file] = host.logs_dir.glob("*/talks/0.log")
    log = Log(file, ContainerProcess(container_id=made.id, pid=made.pid))
    for step in itertools.count():
        was_killed = await asyncio.to_thread(log.rotated_by_one_that_is_killed, step)
        await asyncio.to_thread(log.finish)
        shown = await log.lines()
        assert [*map(int, shown)] == list(range(len(shown))), f"after a kill at step {step}"
        if not was_killed:
            break
        assert step < MOST_STEPS
    assert step > 5
    assert len(list(file.parent.iterdir())) > step
    assert (await host.containers())["talks"].id == made.id
