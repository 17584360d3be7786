"""Hooks of a container after its start and before its end, and the order in which a pod's containers go."""

from __future__ import annotations

import contextlib
import json
import shutil
import weakref
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TextIO

import pytest

from ipc.host.clock import monotonic
from tests.e2e.agent import DEADLINE_S, MOMENT_POLL_S, Agent, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import IGNORE_TERM, STAY, Json, container, pod
from tests.support.podman_service import IMAGE, podman, remove_by_force

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

SIGNALLED_IMAGE: Final = "localhost/rootlet-test-stop-signal:latest"
LONG_S: Final = 600
"""A grace period that nobody waits for: longer than every deadline here."""
LOOK_S = 0.05
"""Between two looks whether a pod is down."""


def tells(signal: str = "TERM", last_s: int = 1) -> str:
    """A script that says when it is asked to stop, and ends ``last_s`` seconds later: long enough to be heard."""
    return f"trap 'echo {signal}; sleep {last_s}; echo end; exit 0' {signal}; while true; do sleep 3600 & wait $!; done"


def says(*words: str) -> Json:
    """A handler whose words go to the container's own log; a number is a wait in seconds."""
    steps = (f"sleep {word}" if word.isdigit() else f"echo {word} >/proc/1/fd/1" for word in words)
    return {"exec": {"command": ["sh", "-c", "; ".join(steps)]}}


def pre_stop(handler: Json) -> dict[str, Any]:
    return {"lifecycle": {"preStop": handler}}


class Listener:
    """Words of the containers of one pod. Their logs are held open: they go with the pod."""

    def __init__(self, agent: Agent, name: str) -> None:
        self._agent, self._name = agent, name
        self._logs: dict[Path, TextIO] = {}
        weakref.finalize(self, _close_all, self._logs)

    def words(self) -> list[tuple[str, str]]:
        """(container, word), in the order in which they were said; conmon dates lines that it reads at once alike."""
        lines = [
            (line.split(" ", 3), path.parent.name)
            for path, log in self._logs.items()
            for line in _whole(log).splitlines()
        ]
        said = [(parts[0], container, parts[3]) for parts, container in lines if len(parts) == 4]
        return [(container, word) for _, container, word in sorted(said, key=itemgetter(0))]

    def listen(self) -> None:
        for path in Path(self._agent.settings["podLogsDir"]).glob(f"*_{self._name}_*/*/*.log"):
            if path not in self._logs:
                with contextlib.suppress(FileNotFoundError):  # it goes with its pod just now
                    self._logs[path] = path.open()

    def until_said(self, *words: tuple[str, str]) -> None:
        def said() -> bool:
            self.listen()
            return set(words) <= set(self.words())

        self._agent.until(said, f"{words} are said", poll_s=MOMENT_POLL_S)

    def until_down(self, deadline_s: float = DEADLINE_S) -> float:
        """Listen until nothing of the pod runs; how long that took, in seconds."""
        began = monotonic()

        def down() -> bool:
            self.listen()
            return not self._agent.eye.running(self._name)

        self._agent.until(down, f"{self._name} is down", deadline_s, LOOK_S)
        return monotonic() - began


def _whole(log: TextIO) -> str:
    log.seek(0)
    return log.read()


def _close_all(logs: Mapping[Path, TextIO]) -> None:
    for log in logs.values():
        log.close()


def go(agent: Agent, name: str, deadline_s: float = DEADLINE_S) -> tuple[float, list[tuple[str, str]]]:
    """Take the manifest away: how long the pod took to go, and what it said."""
    listener = Listener(agent, name)
    listener.listen()
    agent.remove(name)
    return listener.until_down(deadline_s), listener.words()


# --- preStop ---


def test_a_pre_stop_command_runs_before_the_stop_signal(agent: Agent) -> None:
    main = container(script=tells(), **pre_stop(says("bye", "2", "done")))
    agent.run(pod("bye", main, terminationGracePeriodSeconds=LONG_S))
    _, words = go(agent, "bye")
    assert words == [("main", word) for word in ("bye", "done", "TERM", "end")][: len(words)]
    assert ("main", "TERM") in words
    assert "FailedPreStopHook" not in agent.reasons("bye")


@pytest.mark.slow
def test_the_time_of_a_pre_stop_hook_is_taken_from_the_grace_period(agent: Agent) -> None:
    grace_s, hook_s = 13, 12
    main = container(script=IGNORE_TERM, **pre_stop(says(str(hook_s))))
    agent.run(pod("counted", main, terminationGracePeriodSeconds=grace_s))
    took_s, _ = go(agent, "counted")
    assert grace_s - 0.5 <= took_s < hook_s + grace_s


def test_a_pre_stop_hook_is_given_up_when_the_grace_period_ends(agent: Agent) -> None:
    main = container(script=tells(), **pre_stop(says("bye", str(LONG_S))))
    agent.run(pod("longer", main, terminationGracePeriodSeconds=3))
    took_s, words = go(agent, "longer")
    assert words[:2] == [("main", "bye"), ("main", "TERM")]
    assert took_s >= 3


def test_a_pre_stop_hook_may_just_wait(agent: Agent) -> None:
    agent.run(pod("sleeps", container(**pre_stop({"sleep": {"seconds": 3}})), terminationGracePeriodSeconds=LONG_S))
    took_s, _ = go(agent, "sleeps")
    assert took_s >= 3


def test_a_pre_stop_hook_that_fails_is_told_and_the_stop_goes_on(agent: Agent) -> None:
    main = container(script=tells(last_s=3), **pre_stop({"exec": {"command": ["sh", "-c", "echo hunter2; exit 3"]}}))
    agent.run(pod("failing", main, terminationGracePeriodSeconds=30))
    listener = Listener(agent, "failing")
    agent.remove("failing")
    listener.until_said(("main", "TERM"))
    agent.until(lambda: "FailedPreStopHook" in agent.reasons("failing"), "the failure is told")
    assert agent.reasons("failing")["FailedPreStopHook"] == "PreStopHook failed"
    listener.until_down()
    assert "hunter2" not in agent.log_text()


def test_a_shorter_grace_period_does_not_repeat_a_pre_stop_hook(agent: Agent) -> None:
    main = container(script=tells(last_s=2), **pre_stop(says("bye", str(LONG_S))))
    manifest = pod("hurried", main, terminationGracePeriodSeconds=LONG_S)
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(manifest)).code == 0
    agent.until_ready(["hurried"])
    listener = Listener(agent, "hurried")
    assert agent.cli("delete", "pod", "hurried", "--no-wait").code == 0
    listener.until_said(("main", "bye"))
    assert agent.cli("delete", "pod", "hurried", "--grace-period=3", "--no-wait").code == 0
    listener.until_down()
    assert listener.words()[:2] == [("main", "bye"), ("main", "TERM")]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["kept", "lost"])
def test_who_lost_its_manifest_while_nobody_looked_is_stopped_politely(new_agent: NewAgent, state: str) -> None:
    """Also when the agent has forgotten what the manifest said: it is on the container's labels."""
    agent: Agent = new_agent()
    agent.start()
    main = container(script=tells(last_s=3), **pre_stop(says("bye", "4", "done")))
    agent.run(pod("orphan", main, terminationGracePeriodSeconds=40))
    agent.stop()
    agent.remove("orphan")
    if state == "lost":
        shutil.rmtree(agent.settings["stateDir"])
    agent.start()
    listener = Listener(agent, "orphan")
    listener.until_down()
    assert listener.words()[:3] == [("main", "bye"), ("main", "done"), ("main", "TERM")]


# --- postStart ---


def test_a_post_start_command_runs_once_the_container_runs(agent: Agent) -> None:
    agent.run(pod("greets", container(lifecycle={"postStart": says("hello")})))
    Listener(agent, "greets").until_said(("main", "hello"))
    assert "FailedPostStartHook" not in agent.reasons("greets")
    assert restart_count(agent.pods()["greets"]) == 0


def test_a_post_start_hook_that_fails_takes_its_container_down_again_and_again(agent: Agent) -> None:
    hook = {"exec": {"command": ["sh", "-c", "echo hunter2; exit 3"]}}
    agent.write(pod("refuses", container(lifecycle={"postStart": hook})))
    agent.until(lambda: restart_count(agent.pods().get("refuses", {"status": {}})) >= 1, "it is tried again")
    agent.until(lambda: "BackOff" in agent.reasons("refuses"), "and then it has to wait")
    told = agent.reasons("refuses")
    assert (told["FailedPostStartHook"], told["Killing"]) == ("PostStartHook failed", "FailedPostStartHook")
    assert "PostStartHookError" in agent.log_text()
    assert "hunter2" not in agent.log_text() + str(agent.events("refuses"))
    assert ("refuses", "main") not in agent.eye.running("refuses")


def test_a_pod_that_goes_does_not_wait_for_its_post_start_hook(agent: Agent) -> None:
    main = container(script=tells(), lifecycle={"postStart": says("hello", str(LONG_S)), "preStop": says("bye")})
    agent.write(pod("leaves", main, terminationGracePeriodSeconds=LONG_S))
    Listener(agent, "leaves").until_said(("main", "hello"))
    _, words = go(agent, "leaves")
    assert words[:3] == [("main", "hello"), ("main", "bye"), ("main", "TERM")]


# --- stop signals ---


@pytest.fixture(scope="module")
def signalled_image() -> Iterator[str]:
    """An image with a stop signal of its own."""
    made = podman("create", IMAGE, "true").strip()
    try:
        podman("commit", "--quiet", "--change", "STOPSIGNAL=SIGUSR2", made, SIGNALLED_IMAGE)
    finally:
        podman("rm", made)
    yield SIGNALLED_IMAGE
    remove_by_force("image", SIGNALLED_IMAGE)


def test_the_stop_signal_is_the_manifests(agent: Agent) -> None:
    main = container(script=tells("USR1"), lifecycle={"stopSignal": "SIGUSR1"})
    agent.run(pod("usr1", main, os={"name": "linux"}, terminationGracePeriodSeconds=LONG_S))
    _, words = go(agent, "usr1")
    assert words[0] == ("main", "USR1")


def test_the_stop_signal_is_the_images(agent: Agent, signalled_image: str) -> None:
    main = {**container(script=tells("USR2")), "image": signalled_image}
    agent.run(pod("usr2", main, terminationGracePeriodSeconds=LONG_S))
    _, words = go(agent, "usr2")
    assert words[0] == ("main", "USR2")


# --- the order ---


@pytest.mark.slow
def test_sidecars_go_last_and_in_reverse_order(agent: Agent) -> None:
    sidecars = [container(name, script=tells(), restartPolicy="Always") for name in ("one", "two")]
    agent.run(
        pod(
            "ordered",
            container(script=tells(last_s=2)),
            container("other", script=STAY),
            initContainers=sidecars,
            terminationGracePeriodSeconds=60,
        )
    )
    _, words = go(agent, "ordered")
    heard = [(name, word) for name, word in words if name != "other"]
    assert heard == [(name, word) for name in ("main", "two", "one") for word in ("TERM", "end")][: len(heard)]
    assert ("one", "TERM") in heard
