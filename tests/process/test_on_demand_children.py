"""Children that are there on demand: real processes, no Podman. Nobody who connects is lost, and nobody is missed."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any, Final

import psutil
import pytest

from tests.process.model_children import Agent, by_incarnation
from tests.support.raw_libpod import UnixConnection

pytestmark = pytest.mark.process

API: Final = "rootlet-api-1"
DIALER: Final = "rootlet-dial-3"
IDLE_S: Final = 0.3
PODS: Final = tuple(f"pod-{number:02}" for number in range(12))
CROWD: Final = 20
REQUESTS: Final = 12
SEED: Final = 20261120


@pytest.fixture
def agent() -> Iterator[Agent]:
    """With pods, and left alone for so long that nobody is there who need not be."""
    made = Agent(by_incarnation({}), workers={"count": 1, "idleTimeout": f"{IDLE_S:g}s"})
    made.state(*PODS)
    made.until(lambda: len(made.journal()) >= len(PODS), "the pods are known")
    made.until(lambda: is_idle(made), "both have left")
    yield made
    made.close()


def children(agent: Agent) -> dict[str, psutil.Process]:
    """Children of the zygote, by name."""
    found = {}
    for process in psutil.Process(agent.pid).children(recursive=True):
        try:
            found[process.name()] = process
        except psutil.NoSuchProcess:
            continue
    return found


def is_idle(agent: Agent) -> bool:
    return not children(agent).keys() & {API, DIALER}


def get(path: Path, what: str) -> Any:
    """On a connection of its own, once. Raises OSError, HTTPException."""
    connection = UnixConnection(str(path))
    try:
        connection.request("GET", what)
        answer = connection.getresponse()
        assert answer.status == http.client.OK
        return json.loads(answer.read())
    finally:
        connection.close()


def names(agent: Agent) -> list[str]:
    return [pod["metadata"]["name"].removesuffix("-model") for pod in get(agent.client.socket, "/api/v1/pods")["items"]]


def workers(agent: Agent) -> dict[str, Any]:
    return {each["name"]: each for each in get(agent.client.socket, "/rootlet/v1/workers")["items"]}


def warnings(agent: Agent) -> list[str]:
    """But for what this host lacks."""
    lines = [line for line in agent.log.splitlines() if "WARNING" in line]
    return [line for line in lines if " preflight: " not in line and " no memory for " not in line]


def test_the_first_answer_after_a_pause_is_complete_and_nobody_has_died(agent: Agent) -> None:
    assert names(agent) == list(PODS)
    agent.until(lambda: workers(agent)["dialer"]["state"] == "Idle", "the master knows that the dialer has left")
    found = workers(agent)
    assert (found["api"]["state"], found["api"]["deaths"]) == ("Running", 0)
    assert found["api"]["incarnation"] > 1
    assert (found["dialer"]["pid"], found["dialer"]["deaths"]) == (0, 0)
    assert warnings(agent) == []


def test_a_crowd_that_comes_at_once_is_served_by_one(agent: Agent) -> None:
    with ThreadPoolExecutor(CROWD) as crowd:
        answers = list(crowd.map(lambda _: names(agent), range(CROWD)))
    assert answers == [list(PODS)] * CROWD
    agent.until(lambda: is_idle(agent), "it has left again")
    agent.until(lambda: agent.log.count("slot 1 incarnation") >= 2, "it is told that it has left again")
    assert agent.log.count("slot 1 incarnation") == 2, "as often as it has left"


def test_who_comes_at_any_moment_is_answered(agent: Agent) -> None:
    """Also while it leaves, and before its successor is there."""
    rng = random.Random(SEED)
    for _ in range(REQUESTS):
        assert names(agent) == list(PODS)
        sleep(IDLE_S + rng.uniform(0, IDLE_S))
    assert workers(agent)["api"]["incarnation"] > REQUESTS / 3
    assert warnings(agent) == []


def test_one_that_is_killed_as_soon_as_somebody_asks_is_replaced_and_the_request_answered(agent: Agent) -> None:
    """The killed one has not taken the connection yet: it stands in the backlog. Its own is asked again."""
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(agent.client.get, "/api/v1/pods")
        agent.until(lambda: API in children(agent), "it is born")
        children(agent)[API].kill()
        assert len(answer.result()["items"]) == len(PODS)
    assert workers(agent)["api"]["deaths"] == 1


def test_a_watch_keeps_it(agent: Agent) -> None:
    with socket.socket(socket.AF_UNIX) as watch:
        watch.connect(str(agent.client.socket))
        watch.sendall(b"GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: rootlet\r\n\r\n")
        assert watch.recv(1)
        api = children(agent)[API]
        sleep(4 * IDLE_S)
        assert api.is_running()
    agent.until(lambda: is_idle(agent), "it has left")


def test_a_configuration_that_is_read_anew_wakes_nobody(agent: Agent) -> None:
    agent.reload(maxPods=50)
    agent.until(lambda: "configuration reloaded" in agent.log, "it was read")
    assert is_idle(agent)
    assert names(agent) == list(PODS)


def test_the_agent_ends_without_those_that_are_not_there(agent: Agent) -> None:
    os.kill(agent.pid, signal.SIGTERM)
    agent.until(agent.has_ended, "it has ended")
    assert agent.exit_code == 0
    assert warnings(agent) == []


def test_the_dialer_comes_with_the_first_connection(agent: Agent) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(agent.client.socket.with_suffix(".dial.sock")))
        agent.until(lambda: DIALER in children(agent), "it is there")
        assert API not in children(agent)
    agent.until(lambda: is_idle(agent), "it has left again")


def test_an_idle_dialer_is_restarted_by_hand(agent: Agent) -> None:
    before = workers(agent)["dialer"]["incarnation"]
    agent.client.restart_worker("dialer")
    agent.until(lambda: DIALER in children(agent), "it is there")
    agent.until(lambda: is_idle(agent), "it has left again")
    found = workers(agent)["dialer"]
    assert (found["incarnation"], found["deaths"]) == (before + 1, 0)
