"""The agent as a service of the user's own systemd: the unit that is shipped, its watchdog and the journal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import pod
from tests.support.podman_service import PATIENCE, PodmanService

COMMAND_DEADLINE_S: Final = 60.0 * PATIENCE
WATCHDOG_S: Final = 10 * PATIENCE
ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = ROOT / "configs" / "systemd" / "rootlet.service"


def systemctl(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(
        ["systemctl", "--user", *arguments], capture_output=True, text=True, timeout=COMMAND_DEADLINE_S, check=False
    )
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout


def has_systemd() -> bool:
    try:
        return bool(systemctl("show", "--property=Version", "--value", check=False).strip())
    except FileNotFoundError:
        return False


pytestmark = [
    pytest.mark.e2e,
    pytest.mark.podman,
    pytest.mark.skipif(not has_systemd(), reason="this user has no systemd"),
]


class Service:
    """An agent that systemd runs by the shipped unit, but for the program, the configuration and the watchdog."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.name = f"rootlet-{agent.instance}.service"
        self._unit = Path(os.environ["XDG_RUNTIME_DIR"]) / "systemd" / "user" / self.name
        self._unit.parent.mkdir(parents=True, exist_ok=True)
        text = SHIPPED.read_text()
        for key, value in {
            "ExecStart": f"{sys.executable} -m supervisor run --config {agent.config}",
            "WatchdogSec": f"{WATCHDOG_S:g}",
        }.items():
            text, number = re.subn(rf"(?m)^{key}=.*$", f"{key}={value}", text)
            assert number == 1, key
        text = text.replace("[Service]\n", f"[Service]\nWorkingDirectory={ROOT}\n")
        self._unit.write_text(text)
        systemctl("daemon-reload")
        agent.log.touch()  # its log is the journal

    def start(self) -> None:
        """Returns when the agent has said READY=1."""
        systemctl("start", self.name)

    def close(self) -> None:
        systemctl("stop", self.name, check=False)
        self._unit.unlink()
        systemctl("daemon-reload")
        self.agent.close()

    def main_pid(self) -> int:
        return int(systemctl("show", "--property=MainPID", "--value", self.name))

    def is_replaced(self, main_pid: int) -> bool:
        """Whether systemd has restarted it, and its next process has said READY=1."""
        shown = systemctl("show", "--property=NRestarts,ActiveState", "--value", self.name).split()
        return sorted(shown) == ["1", "active"] and self.main_pid() != main_pid

    def journal(self) -> list[dict[str, Any]]:
        """Entries of the unit, oldest first."""
        done = subprocess.run(
            ["journalctl", "--user", f"--user-unit={self.name}", "--output=json", "--no-pager"],
            capture_output=True,
            text=True,
            timeout=COMMAND_DEADLINE_S,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def service(podman_service: PodmanService) -> Iterator[Service]:
    made = Service(Agent(podman_service.new_instance()))
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(600)
def test_systemd_waits_for_the_agent_reads_its_entries_and_replaces_it_when_it_hangs(service: Service) -> None:
    agent = service.agent
    agent.write(pod("web"))
    service.start()
    agent.until_ready(["web"])
    before = {c.id for c in agent.eye.containers()}
    first = service.main_pid()

    def entries(field: str) -> set[str]:
        return {entry[field] for entry in service.journal() if field in entry}

    with contextlib.suppress(AssertionError):
        agent.until(lambda: "web" in entries("ROOTLET_POD_NAME"), "entries by the native protocol")
    assert "web" in entries("ROOTLET_POD_NAME"), service.journal()[-5:]
    assert entries("ROOTLET_PROCESS") >= {"master"}
    assert entries("PRIORITY") <= set("01234567")
    assert entries("SYSLOG_IDENTIFIER") >= {"rootlet"}

    os.kill(first, signal.SIGSTOP)
    agent.until(lambda: service.is_replaced(first), "the watchdog", 6 * WATCHDOG_S)
    agent.until_ready(["web"])
    assert {c.id for c in agent.eye.containers()} == before, "the next agent has adopted what runs"
    stacks = "\n".join(entry["MESSAGE"] for entry in service.journal() if isinstance(entry.get("MESSAGE"), str))
    assert "most recent call first" in stacks
