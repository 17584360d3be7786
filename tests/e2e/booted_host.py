"""A host that goes down under its agent: by a power cut, or in order. A boot leaves of it what lies on its disk. Or
all of a user's processes are killed, and nothing else happens.

It is this machine with a Podman of its own: storage, configuration and runtime directory are apart from the user's, and
its locks are files, as those in shared memory are the user's and would outlive it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest
import tomli_w

from tests.bench.own_storage import VARIABLE, own_config
from tests.e2e.agent import Agent
from tests.support.podman_service import ensure_image, podman, wait_until

RUNTIME_DIR: Final = "XDG_RUNTIME_DIR"
GONE_S: Final = 10.0


class BootedHost:
    """``disk`` outlives the host's end, ``runtime`` does not."""

    def __init__(self, disk: Path, runtime: Path) -> None:
        self.disk, self.runtime = disk, runtime
        self.config = own_config(self.disk, self.disk / "graph", self.runtime / "containers")
        conf = self.config / "containers" / "containers.conf"
        users = conf.read_bytes() if conf.exists() else b""
        conf.unlink(missing_ok=True)
        conf.write_bytes(users + tomli_w.dumps({"engine": {"lock_type": "file"}}).encode())

    def new_agent(self, make: Callable[..., Agent]) -> Agent:
        """A running agent of this host."""
        agent = make(memoryDir=str(self.runtime / "rootlet"))
        agent.start()
        return agent

    def power_cut(self, agent: Agent) -> None:
        """Everything ends, and nobody lives to note an end."""
        agent.process.kill()
        agent.wait_end()
        self._end(agent)

    def reboot(self, agent: Agent) -> None:
        """The agent is asked to end, and has time for it. What it leaves running is killed."""
        agent.stop()
        self._end(agent)

    def users_processes_killed(self, agent: Agent) -> None:
        """kill -9 of everything, Podman's pause process too. The runtime directory stays, as there is no boot."""
        agent.process.kill()
        agent.wait_end()
        self._kill_all(agent)

    def _end(self, agent: Agent) -> None:
        self._kill_all(agent)
        shutil.rmtree(self.runtime)
        self.runtime.mkdir(mode=0o700)

    def _kill_all(self, agent: Agent) -> None:
        """First who would note an end, then the containers."""
        containers = [process for seen in agent.eye.running().values() for process in _living(seen.pid)]
        _kill(self.processes())
        _kill(containers)

    def processes(self) -> list[psutil.Process]:
        """Every process of this host but the containers': they name its runtime directory."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        words = str(self.runtime)
        try:
            named = process.environ().get(RUNTIME_DIR) == words or any(words in word for word in process.cmdline())
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            return False  # another user's, or gone
        return named and process.pid != os.getpid()


def _living(pid: int) -> list[psutil.Process]:
    """None of a container that has ended a moment ago, and still runs for Podman."""
    try:
        return [psutil.Process(pid)]
    except psutil.NoSuchProcess:
        return []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    wait_until(lambda: all(map(_is_over, processes)), GONE_S)


def _is_over(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextlib.contextmanager
def booted_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[BootedHost]:
    """Make that host, for this process and its children. Nothing of it stays."""
    disk = Path(tempfile.mkdtemp(prefix="rl-host-", dir="/tmp"))
    runtime = Path(tempfile.mkdtemp(prefix="rl-", dir=os.environ[RUNTIME_DIR]))
    try:
        host = BootedHost(disk, runtime)
        with monkeypatch.context() as environment:
            environment.setenv(RUNTIME_DIR, str(host.runtime))
            environment.setenv(VARIABLE, str(host.config))
            ensure_image(host.disk)
            try:
                yield host
            finally:
                _kill(host.processes())
    finally:  # by the user's own Podman: that of the host is gone
        podman("unshare", "rm", "-rf", str(disk), str(runtime))
