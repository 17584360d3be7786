"""Logs of containers that write much: every line is there, over rotations and deaths, and the disk is bounded."""

from __future__ import annotations

import gzip
import http.client
import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, container_status
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.support.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

BURST = 1000
WRITES = (
    f"n=0; until [ -e /stop ]; do seq $n $((n + {BURST} - 1)); n=$((n + {BURST})); sleep 0.1; done; echo end $n; {STAY}"
)
"""Half a megabyte a second, as conmon writes it, until it is stopped."""
MAX_SIZE = 64 * 1024
ROTATED_OFTEN = {
    "containerLogMaxSize": MAX_SIZE,
    "containerLogMaxFiles": 1000,
    "containerLogMonitorInterval": "3s",
}


def files(agent: Agent, name: str) -> list[Path]:
    """Log files of the pod's newest life: the log first, then those that were rotated, the oldest first."""
    (directory,) = (agent.directory / "logs").glob(f"*_{name}_*/main")
    found = [file for file in directory.iterdir() if ".log" in file.name and file.suffix != ".tmp"]
    newest = max(int(file.name.partition(".")[0]) for file in found)
    return sorted(file for file in found if file.name.startswith(f"{newest}.log"))


def rotated(agent: Agent, name: str) -> list[Path]:
    return files(agent, name)[1:]


def stop_writing(agent: Agent, name: str) -> list[str]:
    """Every line that it has written."""
    agent.inside(name, "touch /stop")
    agent.until(lambda: "end" in agent.cli("logs", name, "--tail", "1").out, "it writes no more")
    last = agent.cli("logs", name, "--tail", "1").out.rstrip("\n")
    return [*map(str, range(int(last.split()[1]))), last]


def until_settled(agent: Agent, name: str) -> None:
    """Nothing is left to rotate or to compress of a log that is not written to any more."""

    def is_settled() -> bool:
        found = files(agent, name)
        return found[0].stat().st_size < MAX_SIZE and [file.suffix == ".gz" for file in found[1:-1]] == [True] * (
            len(found) - 2
        )

    agent.until(is_settled, "all is rotated and compressed")


def kubelets_log(agent: Agent, path: str) -> str:
    """Answer of the kubelet's path."""
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
        written = stop_writing(agent, "talks")
        agent.until(lambda: followed[-1:] == [f"{written[-1]}\n"], "all is followed")
    reading.join()
    assert "".join(followed).splitlines() == written
    assert agent.cli("logs", "talks").out.splitlines() == written
    assert kubelets_log(agent, "/containerLogs/default/talks/main").splitlines() == written
    tail = agent.cli("logs", "talks", "--tail", "2500").out.splitlines()
    assert 2000 < len(tail) <= 2500, "a line in two pieces counts twice"
    assert tail[1:] == written[1 - len(tail) :], "the first one may be a piece"
    assert agent.cli("logs", "talks", "--since", "1h").out.splitlines() == written
    assert_found_by_time(agent, "talks")
    until_settled(agent, "talks")
    on_disk = sum(file.stat().st_blocks * 512 for file in files(agent, "talks"))
    shown = agent.get("/stats/summary")["pods"][0]["containers"][0]["logs"]["usedBytes"]
    assert shown >= on_disk
    (directory,) = (agent.directory / "logs").glob("*_talks_*")
    agent.remove("talks")
    agent.until_gone(["talks"])
    agent.until(lambda: not directory.exists(), "all its logs go")


def assert_found_by_time(agent: Agent, name: str) -> None:
    """From a time within the first file, whose lines are compressed by then or will be, and within the newest."""
    dated = [line.partition(" ") for line in agent.cli("logs", name, "--timestamps").out.splitlines()]
    assert len(rotated(agent, name)) >= 3, "else there are no seams"
    for since in (dated[len(dated) // 20][0], dated[-len(dated) // 20][0]):
        shown = agent.cli("logs", name, "--since-time", since).out.splitlines()
        before = [line for time, _, line in dated if time < since]
        dated_so = [line for time, _, line in dated if time >= since]
        rest = shown[: len(shown) - len(dated_so)]
        assert shown[len(rest) :] == dated_so
        assert not rest or (len(rest) == 1 and before[-1].endswith(rest[0])), "but the rest of a line begun before"


def test_no_more_files_than_configured_and_the_last_lines_of_the_life_before(new_agent: NewAgent) -> None:
    agent = new_agent(
        **{**ROTATED_OFTEN, "containerLogMaxFiles": 3}, crashLoopBackOff={"maxContainerRestartPeriod": "1s"}
    )
    agent.start()
    agent.run(pod("talks", container(script=WRITES)))
    agent.until(lambda: len(rotated(agent, "talks")) > 1, "it is rotated twice")
    oldest = rotated(agent, "talks")[0].name.removesuffix(".gz")
    agent.until(lambda: not any(file.name.startswith(oldest) for file in rotated(agent, "talks")), "the oldest goes")
    written = stop_writing(agent, "talks")
    until_settled(agent, "talks")
    _, packed, _ = files(agent, "talks")
    assert gzip.decompress(packed.read_bytes()).count(b"\n") > 0
    shown = agent.cli("logs", "talks").out.splitlines()
    assert shown[1:] == written[1 - len(shown) :], "the first one may be a piece"
    before = agent.eye.container("talks", "main")
    podman("kill", "--signal", "KILL", before.id)
    agent.until(lambda: container_status(agent.pods()["talks"])["restartCount"] > before.attempt, "restarted")
    assert agent.cli("logs", "talks", "--previous").out.splitlines() == shown


@pytest.mark.slow
def test_the_policy_changes_while_the_agent_runs(new_agent: NewAgent) -> None:
    agent = new_agent(containerLogMaxSize=-1)
    agent.start()
    agent.run(pod("talks", container(script=WRITES)))
    agent.until(lambda: files(agent, "talks")[0].stat().st_size > 100_000, "its log is large")
    written = stop_writing(agent, "talks")
    assert not rotated(agent, "talks")
    agent.configure(ROTATED_OFTEN)
    os.kill(agent.process.pid, signal.SIGHUP)
    agent.until(lambda: len(rotated(agent, "talks")) == 1, "what is too large is rotated")
    assert agent.cli("logs", "talks").out.splitlines() == written


@pytest.mark.slow
def test_a_limit_of_podmans_takes_no_line_away(new_agent: NewAgent) -> None:
    agent = new_agent(containerLogMaxSize=-1)
    conf = agent.directory / "containers.conf"
    conf.write_text("[containers]\nlog_size_max = 20000\n")
    agent.environment["CONTAINERS_CONF"] = str(conf)
    agent.start()
    agent.run(pod("talks", container(script=WRITES)))
    agent.until(lambda: files(agent, "talks")[0].stat().st_size > 100_000, "its log is large")
    written = stop_writing(agent, "talks")
    assert agent.cli("logs", "talks").out.splitlines() == written


@pytest.mark.slow
def test_a_log_tag_of_podmans_keeps_no_container_from_its_start(new_agent: NewAgent) -> None:
    """A tag is for journald: with one conmon writes no file."""
    agent = new_agent()
    conf = agent.directory / "containers.conf"
    conf.write_text('[containers]\nlog_tag = "{{.Name}}"\n')
    agent.environment["CONTAINERS_CONF"] = str(conf)
    agent.start()
    agent.run(pod("tagged", container()))
    agent.remove("tagged")


@pytest.mark.slow
def test_a_pod_with_ids_of_its_own(new_agent: NewAgent) -> None:
    """The agent's user may not look into the directory in which its monitor has the control file."""
    agent = new_agent(**ROTATED_OFTEN)
    agent.start()
    agent.run(pod("talks", container(script=WRITES), hostUsers=False))
    agent.until(lambda: len(rotated(agent, "talks")) > 1, "it is rotated twice")
    written = stop_writing(agent, "talks")
    assert agent.cli("logs", "talks").out.splitlines() == written
