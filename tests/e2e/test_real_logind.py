"""A real logind announces a shutdown, waits for the agent, and calls it off: on the systems of tests/hosts.

There poweroff.target does nothing, so logind's job of it ends at once, and the user may ask for it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import Json, container, pod
from tests.support.podman_service import PATIENCE

COMMAND_DEADLINE_S: Final = 30.0 * PATIENCE
POWEROFF: Final = "Poweroff that does nothing"
"""Description of the unit that stands for poweroff.target there."""
LOGIND: Final = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
DROP_INS: Final = Path("/etc/systemd/logind.conf.d")
LASTS_S: Final = 3.0
CRITICAL: Final = "system-node-critical"
BACK_S: Final = 120.0


def said(*command: str) -> str:
    """Output of a command; empty when it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_DEADLINE_S, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def logind_property(name: str) -> str:
    """Type and value, as busctl shows them."""
    return said("busctl", "get-property", *LOGIND, name)


def obstacle() -> str:
    """Why a poweroff must not be asked for on this host; empty on those systems."""
    if not said("busctl", "call", *LOGIND, "CanPowerOff"):
        return "this host has no logind"
    if said("systemctl", "show", "--property=Description", "--value", "poweroff.target") != POWEROFF:
        return "a poweroff of this host would be one"
    if said("busctl", "call", *LOGIND, "CanPowerOff") != 's "yes"':
        return "no rule of polkit lets this user call PowerOff"
    return ""


OBSTACLE: Final = obstacle()
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.podman,
    pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE),
    pytest.mark.timeout(600),
]


def poweroff() -> None:
    """Returns when logind has announced it."""
    subprocess.run(
        ["systemctl", "--no-ask-password", "--no-wall", "poweroff"],
        check=True,
        timeout=COMMAND_DEADLINE_S,
    )


def inhibits(agent: Agent) -> bool:
    """Whether `systemd-inhibit --list` shows that master's delay inhibitor."""
    rows = (row.split() for row in said("systemd-inhibit", "--list", "--no-pager", "--no-legend").splitlines())
    return any({"rootlet", str(agent.process.pid), "shutdown", "delay"} <= set(row) for row in rows)


def is_node_ready(agent: Agent) -> bool:
    (node,) = agent.get("/api/v1/nodes")["items"]
    return any((c["type"], c["status"]) == ("Ready", "True") for c in node["status"]["conditions"])


def job(name: str, notes: Path, **spec: Any) -> Json:
    """Notes when it was asked to end, in seconds since the host's start, and takes a while."""
    script = f"""trap 'cut -d" " -f1 /proc/uptime >/notes/{name}; sleep {LASTS_S:g}; exit 0' TERM
        while :; do sleep 0.1; done"""
    main = container(script=script, volumeMounts=[{"name": "notes", "mountPath": "/notes"}])
    volume = {"name": "notes", "hostPath": {"path": str(notes)}}
    return pod(name, main, volumes=[volume], terminationGracePeriodSeconds=20, **spec)


@pytest.fixture
def host_going_down(new_agent: Any, tmp_path: Path) -> Agent:
    """An agent with two pods; logind has waited for it before anything ran."""
    agent: Agent = new_agent(shutdownGracePeriod="40s", shutdownGracePeriodCriticalPods="20s")
    agent.start()
    agent.until(lambda: inhibits(agent), "systemd-inhibit shows the agent")
    agent.run(job("low", tmp_path), job("high", tmp_path, priorityClassName=CRITICAL))
    poweroff()
    agent.until(lambda: not is_node_ready(agent), "the node is not ready")
    return agent


def test_logind_waits_for_the_pods_and_calls_the_shutdown_off(host_going_down: Agent, tmp_path: Path) -> None:
    agent = host_going_down
    agent.until(lambda: len(list(tmp_path.glob("*"))) == 2, "both pods were asked to end", BACK_S)
    agent.until_ready(("low", "high"), BACK_S)
    asked_at = {name: float((tmp_path / name).read_text()) for name in ("low", "high")}
    assert asked_at["high"] - asked_at["low"] >= LASTS_S, "the critical pod ends when nothing of the other is left"
    agent.until(lambda: is_node_ready(agent), "the node is ready")
    agent.until(lambda: inhibits(agent), "the next shutdown waits, too")
    assert logind_property("PreparingForShutdown") == "b false"
    assert "the host goes down: pods have ended" in agent.log_text()


def test_an_agent_that_is_killed_meanwhile_learns_that_the_host_stays_up(host_going_down: Agent) -> None:
    """The inhibitor ends with the agent, so logind goes on, and here that calls the shutdown off."""
    agent = host_going_down
    agent.kill_and_recover("master")
    agent.until_ready(("low", "high"), BACK_S)
    agent.until(lambda: is_node_ready(agent), "the node is ready")
    agent.until(lambda: inhibits(agent), "the next shutdown waits, too")


@pytest.fixture
def short_delay() -> Iterator[str]:
    """Name of a file that gives logind another configuration."""
    if not os.access(DROP_INS, os.W_OK):
        pytest.skip("this user may not change logind's configuration")
    file = DROP_INS / "60-test.conf"
    try:
        yield str(file)
    finally:
        file.unlink(missing_ok=True)
        reload_logind()


def reload_logind() -> None:
    command = ["systemctl", "--no-ask-password", "kill", f"--signal={signal.SIGHUP.name}", "systemd-logind.service"]
    subprocess.run(command, check=True, timeout=COMMAND_DEADLINE_S)


def test_a_delay_that_root_has_changed_is_known_at_the_next_shutdown(new_agent: Any, short_delay: str) -> None:
    agent: Agent = new_agent(shutdownGracePeriod="20s")
    agent.start()
    agent.until(lambda: inhibits(agent), "systemd-inhibit shows the agent")
    agent.run(pod("low"))
    Path(short_delay).write_text("[Login]\nInhibitDelayMaxSec=7\n")
    reload_logind()
    agent.until(lambda: logind_property("InhibitDelayMaxUSec") == "t 7000000", "logind has read it")
    assert "logind waits for" not in agent.log_text()
    poweroff()
    agent.until(lambda: "logind waits for 7s, shutdownGracePeriod is 20s" in agent.log_text(), "the agent says so")
    agent.until(lambda: "the host goes down: pods have ended" in agent.log_text(), "the pods have ended")
    agent.until_ready(["low"], BACK_S)
