"""The agent as a service of the user's own systemd, by the unit that is shipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import pod
from tests.podman_service import PATIENCE, PodmanService

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


@pytest.fixture
def service(podman_service: PodmanService) -> Iterator[Service]:
    made = Service(Agent(podman_service.new_instance()))
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(600)
def test_the_shipped_unit_is_up_when_the_agent_has_said_so(service: Service) -> None:
    agent = service.agent
    agent.write(pod("web"))
    service.start()
    assert service.main_pid()
    agent.until_ready(["web"])
