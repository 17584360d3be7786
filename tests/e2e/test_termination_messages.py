"""Messages of containers when they end, as the status tells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import container, pod
from tests.support.podman_service import IMAGE, podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PATH: Final = "/dev/termination-log"
FALL_BACK: Final = {"terminationMessagePolicy": "FallbackToLogsOnError"}
SAYS: Final = "echo to the log; echo -n '{}' > {}; exit {}"
CHATTY: Final = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo line $i; done; exit {}"

PODS: Final[Mapping[str, Json]] = {
    "by-path": pod("by-path", container(script=SAYS.format("all is well", PATH, 0)), restartPolicy="Never"),
    "of-an-error": pod("of-an-error", container(script=SAYS.format("no luck", PATH, 3)), restartPolicy="Never"),
    "own-path": pod(
        "own-path",
        container(script=SAYS.format("elsewhere", "/srv/last/words", 1), terminationMessagePath="/srv/last/words"),
        restartPolicy="Never",
    ),
    "nothing": pod("nothing", container(script="echo to the log; exit 1"), restartPolicy="Never"),
    "by-log": pod("by-log", container(script=CHATTY.format(1), **FALL_BACK), restartPolicy="Never"),
    "no-error": pod("no-error", container(script=CHATTY.format(0), **FALL_BACK), restartPolicy="Never"),
    "own-words": pod("own-words", container(script=SAYS.format("mine", PATH, 1), **FALL_BACK), restartPolicy="Never"),
    "big": pod(
        "big",
        container(script=f"head -c 100000 /dev/zero | tr '\\0' a > {PATH}; echo -n end >> {PATH}; exit 1"),
        restartPolicy="Never",
    ),
    "big-one-of-four": pod(
        "big-one-of-four",
        container(script=f"head -c 100000 /dev/zero | tr '\\0' a > {PATH}; exit 1"),
        *(container(f"other-{number}", "exit 0") for number in range(3)),
        restartPolicy="Never",
    ),
}
EXPECTED: Final = {
    "by-path": (0, "Completed", "all is well"),
    "of-an-error": (3, "Error", "no luck"),
    "own-path": (1, "Error", "elsewhere"),
    "nothing": (1, "Error", ""),
    "by-log": (1, "Error", "".join(f"line {number}\n" for number in range(121, 201))),
    "no-error": (0, "Completed", ""),
    "own-words": (1, "Error", "mine"),
    "big": (1, "Error", "a" * 4093 + "end"),
    "big-one-of-four": (1, "Error", "a" * 3072),
}


def until_ended(agent: Agent, name: str, container: str = "main", of: str = "containerStatuses") -> Json:
    """The container's terminated state, as soon as there is one."""
    found: list[Json] = []

    def is_there() -> bool:
        statuses = agent.pods().get(name, {}).get("status", {}).get(of, ())
        found[:] = [s["state"]["terminated"] for s in statuses if s["name"] == container and "terminated" in s["state"]]
        return bool(found)

    agent.until(is_there, f"{container} of {name} has ended")
    return found[0]


@pytest.fixture(scope="module")
def written(agent: Agent) -> Agent:
    agent.write(*PODS.values())
    return agent


@pytest.mark.parametrize("name", PODS)
def test_what_it_said(written: Agent, name: str) -> None:
    ended = until_ended(written, name)
    assert (ended["exitCode"], ended["reason"], ended.get("message", "")) == EXPECTED[name]


def test_it_is_told_as_well_by_the_next_agent(written: Agent) -> None:
    before = {name: until_ended(written, name) for name in PODS}
    written.restart()
    assert {name: until_ended(written, name) for name in PODS} == before


def test_the_life_before_keeps_its_own_words(agent: Agent) -> None:
    script = f"hostname > {PATH}; cat /proc/uptime >> {PATH}; exit 1"
    agent.write(pod("again", container(script=script)))

    seen: set[str] = set()

    def two_lives_have_spoken() -> bool:
        statuses = agent.pods().get("again", {}).get("status", {}).get("containerStatuses", ())
        ends = (s[key].get("terminated") for s in statuses for key in ("state", "lastState"))
        seen.update(end["message"] for end in ends if end)
        return len(seen) >= 2

    agent.until(two_lives_have_spoken, "two lives have spoken, each in its own words")
    assert all(message.startswith("again\n") for message in seen)


def test_an_init_container_has_its_say(agent: Agent) -> None:
    agent.run(pod("init-says", container(), initContainers=[container("init", f"echo -n prepared > {PATH}")]))
    ended = until_ended(agent, "init-says", "init", "initContainerStatuses")
    assert (ended["exitCode"], ended["message"]) == (0, "prepared")


@pytest.fixture
def image_of_a_user(agent: Agent) -> Iterator[str]:
    """An image whose processes are not root's."""
    name = f"localhost/{agent.instance}-user:1"
    made = podman("create", IMAGE, "true").strip()
    podman("commit", "--quiet", "--change", "USER=1234:1234", made, name)
    podman("rm", made)
    yield name
    podman("rmi", "--force", name)


def test_any_user_of_an_image_may_write(agent: Agent, image_of_a_user: str) -> None:
    main = {**container(script=f"id -u > {PATH}; exit 1"), "image": image_of_a_user}
    agent.write(pod("user", main, restartPolicy="Never"))
    try:
        assert until_ended(agent, "user")["message"] == "1234\n"
    finally:
        agent.remove("user")
        agent.until_gone(["user"])


@pytest.mark.slow
def test_the_files_go_with_the_pod(agent: Agent) -> None:
    agent.write(pod("short", container(script="exit 0"), restartPolicy="Never"))
    until_ended(agent, "short")
    directory = agent.directory / "state" / "pods" / agent.pods()["short"]["metadata"]["uid"]
    assert [file.name for file in directory.rglob("*.termination-log")] == ["main.0.termination-log"]
    agent.remove("short")
    agent.until_gone(["short"])
    agent.until(lambda: not directory.exists(), "its directory is gone")
