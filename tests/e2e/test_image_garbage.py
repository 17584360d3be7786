"""Unused images go, on a disk that is too full for the configuration; images of others stay, whatever is killed."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.e2e.agent import Agent, Done
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, container, pod
from tests.support import registry
from tests.support.podman_service import IMAGE, image_exists, podman
from tests.support.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

FULL = {"imageGCHighThresholdPercent": 1, "imageGCLowThresholdPercent": 0, "imageMinimumGCAge": "0s"}
"""Every disk is fuller than that."""
NEVER = {"imageGCHighThresholdPercent": 100, "imageMinimumGCAge": "0s"}


@pytest.fixture
def images(shop: Registry, tmp_path: Path) -> Iterator[Images]:
    made = Images(shop)
    yield made
    made.close()


class Images:
    """Images of one test: pulled by pods of an agent, or by somebody else."""

    def __init__(self, shop: Registry) -> None:
        self._shop = shop
        self._stack = contextlib.ExitStack()

    def push(self, name: str) -> str:
        self._shop.push(name, "1")
        return f"{self._shop.address}/{name}:1"

    def exist(self, *names: str) -> list[bool]:
        return [image_exists(f"{self._shop.address}/{name}:1") for name in names]

    def pull(self, image: str) -> None:
        """As the user does, beside the agent."""
        podman("pull", "--quiet", "--tls-verify=false", image)

    def tag(self, image: str, name: str) -> None:
        podman("tag", image, name)
        self._stack.callback(podman, "rmi", "--ignore", name)

    def container(self, name: str, image: str, *options: str) -> None:
        """A stranger's container, which does not run."""
        podman("create", "--name", name, *options, image, "true")
        self._stack.callback(podman, "rm", "--force", "--ignore", name)

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def new_puller(shop: Registry, tmp_path: Path, new_agent: NewAgent) -> NewAgent:
    """Makes agents whose Podman speaks plain HTTP with the registry."""

    def make(**changes: Any) -> Agent:
        agent = new_agent(**changes)
        agent.environment |= registry.registries_conf(tmp_path, shop.address)
        return agent

    return make


def one(name: str, image: str) -> Json:
    return pod(name, container(image=image, imagePullPolicy="IfNotPresent"))


def pull_by_pods(agent: Agent, images: Images, *names: str) -> dict[str, str]:
    """Have the agent pull an image for each of these pods, which are gone then."""
    made = {name: images.push(name) for name in names}
    agent.run(*(one(name, image) for name, image in made.items()))
    agent.remove(*names)
    agent.until_gone(names)
    return made


def report(agent: Agent) -> dict[str, Json]:
    """By name. Podman makes no list while an image of another test's is half there."""
    answers: list[Done] = []

    def is_listed() -> bool:
        answers.append(agent.cli("images", "-o", "json"))
        print(answers[-1].err, end="")
        return answers[-1].code == 0

    agent.until(is_listed, "Podman lists images")
    found: list[Json] = orjson.loads(answers[-1].out)["images"]
    return {name: image for image in found for name in image["names"]}


def test_only_what_the_agent_has_pulled_and_nobody_uses_goes(new_puller: NewAgent, images: Images) -> None:
    agent = new_puller(**NEVER)
    theirs = images.push("theirs")
    images.pull(theirs)
    agent.start()
    made = pull_by_pods(agent, images, "unused", "wanted", "tagged", "strangers", "mounted", "theirs")
    agent.run(one("wanted", made["wanted"]))
    images.tag(made["tagged"], f"localhost/{agent.instance}-tagged:1")
    images.container(f"{agent.instance}-strangers", made["strangers"])
    images.container(f"{agent.instance}-mounting", IMAGE, f"--mount=type=image,source={made['mounted']},destination=/m")
    found = report(agent)
    assert {name: found[image].get("stays", "") for name, image in made.items()} == {
        "unused": "",
        "wanted": "in use",
        "tagged": "not pulled by this agent",
        "strangers": "in use",
        "mounted": "in use",
        "theirs": "not pulled by this agent",
    }
    assert "default/wanted" in found[made["wanted"]]["users"]
    assert found[made["strangers"]]["users"] == [f"{agent.instance}-strangers"]
    dry = agent.cli("gc", "--dry-run")
    assert (dry.code, dry.err) == (0, "")
    (line,) = (line for line in dry.out.splitlines() if line.startswith("image/"))
    assert line.startswith(f"image/{made['unused']} would be removed: ")
    unused = agent.cli("images", "--unused").out.splitlines()
    assert [row.split()[-1] for row in unused if row.startswith(made["unused"].removesuffix(":1"))] == ["<none>"]
    assert not any(row.startswith(made["wanted"].removesuffix(":1")) for row in unused)
    assert images.exist(*made) == [True] * len(made)

    processes = agent.eye.pod_table()
    agent.configure(FULL)
    agent.restart()  # the first round begins when all is known
    agent.until(lambda: not any(images.exist("unused")), "the unused image goes")
    agent.until(lambda: agent.messages("e2e", "FreeDiskSpaceFailed") != [], "the disk is as full as ever")
    (told,) = agent.messages("e2e", "FreeDiskSpaceFailed")
    assert told.startswith("Insufficient free disk space on the node's image filesystem (")
    assert images.exist(*made) == [name != "unused" for name in made]
    assert agent.eye.pod_table() == processes
    assert image_exists(IMAGE)


MOMENTS: Final[Mapping[str, Callable[[list[bool]], bool]]] = {
    "it has begun": lambda there: True,
    "one is gone": lambda there: not all(there),
    "the last one is gone": lambda there: not any(there),
}
"""Steps of a collection, as they show from outside: which images are there."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "moment"),
    list(itertools.product(("node", "podman", "master"), MOMENTS)),
)
def test_a_collection_that_is_killed_at_any_step_is_finished_by_the_next_one(
    new_puller: NewAgent, images: Images, victim: str, moment: str
) -> None:
    agent = new_puller(**NEVER)
    agent.start()
    mark = f"{victim}-{moment.replace(' ', '-')}"  # other content than that of other tests, which run beside this one
    names = [f"{mark}-{number}" for number in range(6)]
    made = pull_by_pods(agent, images, *names)
    calm = images.push(f"{mark}-calm")
    agent.run(one("calm", calm))
    processes = agent.eye.pod_table()
    assert set(made.values()) <= report(agent).keys()
    with agent.following("gc"):
        agent.kill_and_recover(victim, when=lambda: MOMENTS[moment](images.exist(*names)))
    agent.until(lambda: agent.cli("gc").code == 0, "a collection succeeds")
    assert images.exist(*names, f"{mark}-calm") == [False] * len(names) + [True]
    assert agent.eye.pod_table() == processes
    agent.run(one("again", images.push(names[0])))


@pytest.mark.slow
def test_an_image_whose_puller_was_killed_is_the_agents_all_the_same(
    shop: Registry, new_puller: NewAgent, images: Images
) -> None:
    agent = new_puller(**NEVER)
    with registry.proxy(shop) as proxy:
        agent.environment |= registry.registries_conf(agent.directory, proxy.address, shop.address)
        agent.start()
        shop.push("slow", "1", layer_bytes=2_000_000)
        image = f"{proxy.address}/slow:1"
        try:
            proxy.bytes_per_s, before = 1_000_000, proxy.passed_bytes
            agent.write(one("slow", image))
            agent.until(lambda: proxy.passed_bytes > before + 50_000, "the pull is under way")
            agent.kill_and_recover("node")
            agent.until_ready(["slow"])
            assert report(agent)[image]["stays"] == "in use"
            agent.remove("slow")
            agent.until_gone(["slow"])
            assert agent.cli("gc").code == 0
            assert not image_exists(image)
        finally:
            registry.forget_images(proxy.address)
