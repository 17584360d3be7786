"""Logs of containers that write much: every line is there, over rotations and deaths, and the disk is bounded."""

from __future__ import annotations

import gzip
import http.client
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, container_status
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

LINES = 40_000
BURSTS = 40
BURST = LINES // BURSTS
WRITES = (
    f"n=0; while [ $n -lt {LINES} ]; do seq $n $((n + {BURST} - 1)); n=$((n + {BURST})); sleep 0.1; done;"
    f" echo end; {STAY}"
)
"""Two megabytes as conmon writes them, within some seconds."""
EVERY_LINE = [*map(str, range(LINES)), "end"]
ROTATED_OFTEN = {
    "containerLogMaxSize": "64Ki",
    "containerLogMaxFiles": 1000,
    "containerLogMonitorInterval": "3s",
}


def files(agent: Agent, name: str, container: str = "main") -> list[Path]:
    (directory,) = (agent.directory / "logs").glob(f"*_{name}_*/{container}")
    return sorted(directory.iterdir())


def rotated(agent: Agent, name: str) -> list[Path]:
    return [file for file in files(agent, name) if file.name.startswith("0.log.2")]


def has_written_all(agent: Agent, name: str) -> Callable[[], bool]:
    return lambda: agent.cli("logs", name, "--tail", "1").out == "end\n"


def kubelets_log(agent: Agent, path: str) -> str:
    """What the kubelet's path answers."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(agent.socket))
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200
    text = answer.read().decode()
    connection.close()
    return text


def test_every_line_is_there_over_rotations_and_deaths(new_agent: NewAgent) -> None:
    agent = new_agent(**ROTATED_OFTEN)
    agent.start()
    agent.run(pod("talks", container(script=WRITES)))
    followed: list[str] = []
    with agent.following("logs", "-f", "talks") as process:
        assert process.stdout is not None
        reading = threading.Thread(target=lambda: followed.extend(process.stdout or ()))
        reading.start()
        for number in range(1, 4):
            agent.until(lambda: len(rotated(agent, "talks")) >= number, f"{number} rotations")  # noqa: B023
            agent.kill_and_recover("node")
        agent.until(has_written_all(agent, "talks"), "all is written")
        agent.until(lambda: followed[-1:] == ["end\n"], "all is followed")
    reading.join()
    assert "".join(followed).splitlines() == EVERY_LINE
    assert agent.cli("logs", "talks").out.splitlines() == EVERY_LINE
    assert kubelets_log(agent, "/containerLogs/default/talks/main").splitlines() == EVERY_LINE
    tail = agent.cli("logs", "talks", "--tail", "20000").out.splitlines()
    assert 19_000 < len(tail) <= 20_000, "a line in two pieces counts twice"
    assert tail[1:] == EVERY_LINE[1 - len(tail) :], "the first one may be a piece"
    assert agent.cli("logs", "talks", "--since", "1h").out.splitlines() == EVERY_LINE
    assert not [file.name for file in files(agent, "talks") if file.name.endswith(".tmp")]
    on_disk = sum(file.stat().st_blocks * 512 for file in files(agent, "talks"))
    shown = agent.get("/stats/summary")["pods"][0]["containers"][0]["logs"]["usedBytes"]
    assert shown >= on_disk
    (directory,) = (agent.directory / "logs").glob("*_talks_*")
    agent.remove("talks")
    agent.until_gone(["talks"])
    agent.until(lambda: not directory.exists(), "all its logs go")


def test_no_more_files_than_configured_and_the_last_lines_of_the_life_before(new_agent: NewAgent) -> None:
    agent = new_agent(
        **{**ROTATED_OFTEN, "containerLogMaxFiles": 3}, crashLoopBackOff={"maxContainerRestartPeriod": "1s"}
    )
    agent.start()
    most = 0

    def is_over() -> bool:
        nonlocal most
        most = max(most, len([file for file in files(agent, "talks") if not file.name.endswith(".tmp")]))
        return has_written_all(agent, "talks")()

    agent.run(pod("talks", container(script=WRITES)))
    agent.until(is_over, "all is written")
    assert most <= 4, "a log that is being compressed has two names"
    agent.until(lambda: any(file.suffix == ".gz" for file in files(agent, "talks")), "the older one is compressed")
    (packed,) = [file for file in files(agent, "talks") if file.suffix == ".gz"]
    assert gzip.decompress(packed.read_bytes()).count(b"\n") > 0
    shown = agent.cli("logs", "talks").out.splitlines()
    assert shown == EVERY_LINE[-len(shown) :]
    podman("kill", "--signal", "KILL", agent.eye.container("talks", "main").id)
    agent.until(lambda: container_status(agent.pods()["talks"]).get("restartCount") == 1, "restarted")
    assert agent.cli("logs", "talks", "--previous").out.splitlines() == shown


def test_the_policy_changes_while_the_agent_runs(new_agent: NewAgent) -> None:
    agent = new_agent(containerLogMaxSize=-1)
    agent.start()
    agent.run(pod("talks", container(script=WRITES)))
    agent.until(has_written_all(agent, "talks"), "all is written")
    assert [file.name for file in files(agent, "talks")] == ["0.log"]
    agent.configure(ROTATED_OFTEN)
    os.kill(agent.process.pid, signal.SIGHUP)
    agent.until(lambda: len(rotated(agent, "talks")) == 1, "what is too large is rotated")
    assert agent.cli("logs", "talks").out.splitlines() == EVERY_LINE


def test_a_limit_of_podmans_takes_no_line_away(new_agent: NewAgent) -> None:
    agent = new_agent(containerLogMaxSize=-1)
    conf = agent.directory / "containers.conf"
    conf.write_text("[containers]\nlog_size_max = 20000\n")
    agent.environment["CONTAINERS_CONF"] = str(conf)
    agent.start()
    agent.run(pod("talks", container(script=WRITES)))
    agent.until(has_written_all(agent, "talks"), "all is written")
    assert agent.cli("logs", "talks").out.splitlines() == EVERY_LINE


def test_a_pod_with_ids_of_its_own(new_agent: NewAgent) -> None:
    """The agent's user may not look into the directory in which its monitor has the control file."""
    agent = new_agent(**ROTATED_OFTEN)
    agent.start()
    agent.run(pod("talks", container(script=WRITES), hostUsers=False))
    agent.until(has_written_all(agent, "talks"), "all is written")
    assert rotated(agent, "talks")
    assert agent.cli("logs", "talks").out.splitlines() == EVERY_LINE
