"""The manifest directory goes away and comes back: nothing is deleted on partial knowledge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import pod
from tests.e2e.replaced_sources import empty_directory, fifo, manifest, other_manifests
from tests.support.overlay_mount import overlay, why_not
from tests.support.podman_service import podman
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(400)]

KEPT = ("kept-0", "kept-1")
DROPPED = "dropped"
ALL = (*KEPT, DROPPED)
LOOKS = 3
LOOKS_S = 150.0
"""Deadline of so many looks: on a busy host each takes longer, and they are the further apart."""


@pytest.fixture
def running(new_agent: NewAgent) -> Agent:
    """An agent whose pods run."""
    agent = new_agent(relistPeriod="1s", quietRelistPeriod="2s", fileCheckFrequency="2s")
    agent.start()
    agent.run(*(pod(name) for name in ALL))
    return agent


def move_away(agent: Agent) -> None:
    """All manifests at once, as a mount that goes."""
    agent.manifests.rename(agent.directory / "elsewhere")
    words = f"{agent.manifests}: No such file or directory"
    agent.until(lambda: any(words in event["message"] for event in agent.events()), "it is told")
    assert f"manifest refused: {words}" in agent.log_text()


def come_back_without(agent: Agent, name: str) -> None:
    elsewhere = agent.directory / "elsewhere"
    (elsewhere / f"{name}.yaml").unlink()
    elsewhere.rename(agent.manifests)


def until_looked_again(agent: Agent) -> None:
    """Some relists, and so housekeeping many times over: whatever would be deleted has been by now."""

    def observation_requests() -> int:
        return int(agent.workers()["node"]["counters"]["runtime_calls"])

    before = observation_requests()
    agent.until(lambda: observation_requests() >= before + LOOKS, "it looked again", LOOKS_S)


@pytest.mark.slow
def test_a_directory_that_goes_takes_no_pod_along(running: Agent) -> None:
    before = running.eye.pod_table()
    move_away(running)
    until_looked_again(running)
    assert running.eye.pod_table() == before
    come_back_without(running, DROPPED)
    running.until_gone([DROPPED])
    assert running.pods().keys() == set(KEPT)
    assert running.eye.pod_table() == {key: lifecycle for key, lifecycle in before.items() if key[0] in KEPT}


def test_pods_are_supervised_from_the_checkpoint_while_the_directory_is_away(running: Agent) -> None:
    before = running.eye.pod_table()
    move_away(running)
    running.stop()
    running.start(sources_ready=False)
    running.until_ready(ALL)
    assert running.eye.pod_table() == before
    killed = running.eye.container(KEPT[0], "main")
    podman("kill", "--signal", "KILL", killed.id)
    running.until(lambda: restart_count(running.pods()[KEPT[0]]) == 1, "it is restarted")
    running.until_ready(ALL)
    now = running.eye.pod_table()
    assert now.keys() == before.keys()
    assert {key for key in now if now[key] != before[key]} == {(KEPT[0], "main")}
    until_looked_again(running)
    assert running.eye.pod_table() == now
    come_back_without(running, DROPPED)
    running.until_gone([DROPPED])
    assert running.pods().keys() == set(KEPT)
    assert running.eye.pod_table() == {key: lifecycle for key, lifecycle in now.items() if key[0] in KEPT}


@pytest.mark.slow
def test_without_a_checkpoint_nothing_is_deleted_before_the_directory_was_read(running: Agent) -> None:
    before = running.eye.pod_table()
    move_away(running)
    running.stop()
    (running.directory / "state" / "desired.json").write_text("{")
    running.start(sources_ready=False)
    assert running.pods() == {}
    until_looked_again(running)
    assert running.eye.pod_table() == before
    come_back_without(running, DROPPED)
    running.until_ready(KEPT)
    # Nobody states it and nobody remembers it: an orphan, by its labels.
    running.until(lambda: not running.eye.containers(DROPPED, infra=True), "what nobody states is removed")
    assert running.pods().keys() == set(KEPT)
    assert running.eye.pod_table() == {key: lifecycle for key, lifecycle in before.items() if key[0] in KEPT}


def _part(path: Path) -> None:
    path.mkdir()
    shutil.copy(path.with_name("elsewhere") / f"{KEPT[0]}.yaml", path)


def replace(agent: Agent, make: Callable[[Path], None]) -> None:
    agent.manifests.rename(agent.directory / "elsewhere")
    make(agent.manifests)


def until_doubted(agent: Agent) -> None:
    words = "its pods stay as they were until it is back"
    agent.until(lambda: any(words in event["message"] for event in agent.events()), "it is told")


def take_away(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("make", [*map(seldom, (empty_directory, manifest, fifo, _part)), other_manifests])
def test_what_takes_the_place_of_the_directory_takes_no_pod_along(running: Agent, make: Callable[[Path], None]) -> None:
    before = running.eye.pod_table()
    replace(running, make)
    until_doubted(running)
    until_looked_again(running)
    assert running.eye.pod_table() == before
    assert "rootlet reload --accept-manifests" in running.cli("doctor", "--config", str(running.config)).out
    take_away(running.manifests)
    come_back_without(running, DROPPED)
    running.until_gone([DROPPED])
    assert running.pods().keys() == set(KEPT)
    running.run(pod("later"))


def test_somebody_says_that_it_is_meant(running: Agent) -> None:
    replace(running, _part)
    until_doubted(running)
    running.remove(KEPT[0])  # which is in doubt, too
    done = running.cli("reload", "--accept-manifests")
    accepted = f"{running.manifests} is accepted as it is now"
    assert (done.code, done.out.splitlines()) == (0, [accepted])
    running.until_gone(ALL)
    done = running.cli("reload", "--accept-manifests")
    assert (done.code, done.out) == (0, f"{running.manifests} is in no doubt: nothing to accept\n")
    running.run(pod("later"))


@pytest.mark.slow
def test_a_directory_that_was_replaced_while_no_agent_ran(running: Agent) -> None:
    """As after a boot at which its file system was not mounted."""
    before = running.eye.pod_table()
    running.stop()
    replace(running, empty_directory)
    running.start(sources_ready=False)
    until_looked_again(running)
    assert running.eye.pod_table() == before
    running.manifests.rmdir()
    come_back_without(running, DROPPED)
    running.until_gone([DROPPED])
    running.until_ready(KEPT)


def _itself(agent: Agent) -> tuple[Path, Path]:
    agent.manifests.rename(agent.directory / "files")
    agent.manifests.mkdir()
    return agent.directory / "files", agent.manifests


def _behind_a_link(agent: Agent) -> tuple[Path, Path]:
    agent.manifests.rename(agent.directory / "files")
    (agent.directory / "mounted").mkdir()
    agent.manifests.symlink_to(agent.directory / "mounted")
    return agent.directory / "files", agent.directory / "mounted"


def _above(agent: Agent) -> tuple[Path, Path]:
    """The manifests lie in a directory of that file system."""
    (agent.directory / "files").mkdir()
    agent.manifests.rename(agent.directory / "files" / "below")
    (agent.directory / "mounted").mkdir()
    agent.manifests.symlink_to(agent.directory / "mounted" / "below")
    return agent.directory / "files", agent.directory / "mounted"


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize(
    ("place", "words"),
    [
        (_itself, "is another directory than before"),
        (_behind_a_link, "is another directory than before"),
        (_above, "No such file or directory"),
    ],
)
def test_a_file_system_is_unmounted_while_the_agent_runs_and_while_none_does(
    new_agent: NewAgent, place: Callable[[Agent], tuple[Path, Path]], words: str
) -> None:
    agent = new_agent(relistPeriod="1s", quietRelistPeriod="2s")
    with overlay(*place(agent)) as mounted:
        mounted.mount()
        agent.start()
        agent.run(*(pod(name) for name in ALL))
        before = agent.eye.pod_table()
        agent.until(mounted.is_unmounted, "nobody reads there and keeps it mounted")
        agent.until(lambda: any(words in event["message"] for event in agent.events()), "it is told")
        until_looked_again(agent)
        agent.stop()
        agent.start(sources_ready=False)
        until_looked_again(agent)
        assert agent.eye.pod_table() == before
        mounted.mount()
        agent.run(pod("later"))
        agent.remove(DROPPED, "later")
        agent.until_gone([DROPPED, "later"])
        agent.until_ready(KEPT)
        assert agent.eye.pod_table() == {key: lifecycle for key, lifecycle in before.items() if key[0] in KEPT}


def test_a_link_that_is_switched_is_the_next_deployment(new_agent: NewAgent) -> None:
    agent = new_agent()
    first, second = agent.directory / "first", agent.directory / "second"
    agent.manifests.rename(first)
    agent.manifests.symlink_to(first)
    agent.start()
    agent.run(pod("old"))
    second.mkdir()
    (second / "new.yaml").write_text(json.dumps(pod("new")))
    link = agent.directory / "link"
    link.symlink_to(second)
    link.replace(agent.manifests)
    agent.until_ready(["new"])
    agent.until_gone(["old"])


@pytest.mark.slow
def test_an_emptied_directory_is_an_empty_one(running: Agent) -> None:
    running.remove(*ALL)
    running.until_gone(ALL)
