"""Images from real registries on loopback: who pulls, how often, and what becomes of pulls that go wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from ipc.host.clock import monotonic
from tests.e2e.agent import Agent, container_status, is_ready
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, container, pod
from tests.support import registry
from tests.support.registry import PASSWORD, Proxy, Registry
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

WRONG_PASSWORD = "battery staple"
FIRST_BACK_OFF_S = 10
WORKERS = ("pods-0", "pods-1")


class World(NamedTuple):
    """Registries without TLS, with and without a login, and a way to the first one that can be slow or cut."""

    open: Registry
    closed: Registry
    proxy: Proxy
    closed_proxy: Proxy
    """To the closed one, with a login of a wrong password."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if reason := registry.why_not():
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(registry.registry(tmp_path_factory.mktemp("open")))
        closed = stack.enter_context(registry.registry(tmp_path_factory.mktemp("closed"), login=True))
        proxies = [stack.enter_context(registry.proxy(target)) for target in (plain, closed)]
        yield World(plain, closed, *proxies)


@pytest.fixture(scope="module")
def agent(world: World, tmp_path_factory: pytest.TempPathFactory, new_shared_agent: NewAgent) -> Agent:
    """An agent whose Podman speaks plain HTTP with the registries and has logins, without touching the user's files."""
    directory, made = tmp_path_factory.mktemp("podman-env"), new_shared_agent()
    made.environment |= registry.registries_conf(directory, *(place.address for place in world))
    made.environment |= registry.logins(
        directory, {world.closed.address: PASSWORD, world.closed_proxy.address: WRONG_PASSWORD}
    )
    made.start()
    return made


@pytest.fixture(autouse=True)
def _no_pods_left(agent: Agent) -> Iterator[None]:
    """Have the pods go while the next tests run."""
    yield
    for manifest in agent.manifests.glob("*.yaml"):
        manifest.unlink()


@pytest.fixture
def proxy(world: World) -> Iterator[Proxy]:
    """At full speed before and after."""
    yield world.proxy
    world.proxy.bytes_per_s = world.proxy.cut_after_bytes = 0


def one(name: str, image: str, policy: str = "IfNotPresent", **spec: Any) -> Json:
    return pod(name, container(image=image, imagePullPolicy=policy), **spec)


def waiting(agent: Agent, name: str) -> tuple[str, str]:
    """Reason and message of the container that waits."""
    state = container_status(agent.pods().get(name, {"status": {}})).get("state", {}).get("waiting", {})
    return state.get("reason", ""), state.get("message", "")


def until_waiting(agent: Agent, name: str, reason: str) -> str:
    """Message of the container that waits."""
    agent.until(lambda: waiting(agent, name)[0] == reason, f"{name} waits with {reason}")
    return waiting(agent, name)[1]


def count(agent: Agent, name: str, reason: str) -> int:
    return sum(event.get("count", 1) for event in agent.events(name) if event["reason"] == reason)


def test_ten_pods_of_two_workers_share_one_pull(world: World, agent: Agent, proxy: Proxy) -> None:
    digest = world.open.push("shared", "1")
    image, names = f"{proxy.address}/shared:1", [f"shared-{n}" for n in range(10)]
    proxy.bytes_per_s = 500_000
    agent.run(*(one(name, image) for name in names))
    assert (world.open.manifests_asked("shared"), world.open.layers_asked("shared")) == (1, 1)
    told = [message for name in names for message in agent.messages(name, "Pulled")]
    assert len(told) == 10
    assert sum(message.startswith(f'Successfully pulled image "{image}" in ') for message in told) > 1
    status = container_status(agent.pods()["shared-3"])
    assert (status["image"], status["imageID"]) == (image, f"{proxy.address}/shared@{digest}")


def test_always_pulls_again_and_the_other_policies_do_not(world: World, agent: Agent) -> None:
    world.open.push("again", "1")
    image = f"{world.open.address}/again:1"
    agent.run(one("again-first", image))
    agent.run(one("again-present", image), one("again-never", image, "Never"))
    assert world.open.manifests_asked("again") == 1
    there = f'Container image "{image}" already present on machine and can be accessed by the pod'
    assert agent.messages("again-present", "Pulled") == agent.messages("again-never", "Pulled") == [there]
    agent.run(one("again-always", image, "Always"))
    assert (world.open.manifests_asked("again"), world.open.layers_asked("again")) == (2, 1)
    (told,) = agent.messages("again-always", "Pulled")
    assert " including waiting). Image size: " in told


def test_never_means_never(world: World, agent: Agent) -> None:
    world.open.push("never", "1")
    image = f"{world.open.address}/never:1"
    agent.write(one("never", image, "Never"))
    message = until_waiting(agent, "never", "ErrImageNeverPull")
    assert message == f'Container image "{image}" is not present with pull policy of Never'
    assert agent.messages("never", "ErrImageNeverPull") == [message]
    assert world.open.manifests_asked("never") == 0


@pytest.mark.slow
def test_a_missing_image_backs_off_over_deaths_of_workers_and_comes_up_when_it_is_pushed(
    world: World, agent: Agent
) -> None:
    image, began = f"{world.open.address}/missing:1", monotonic()
    agent.write(one("missing", image))
    agent.until(lambda: bool(agent.next_try("missing")), "the next try is told")
    announced = agent.next_try("missing").split()[2]
    for worker in WORKERS:
        agent.kill_and_recover(worker)
    message = until_waiting(agent, "missing", "ImagePullBackOff")
    assert message.startswith(f'Back-off pulling image "{image}": ErrImagePull: ')
    assert "manifest unknown" in message
    told = agent.next_try("missing")
    assert told.startswith(f"ImagePullBackOff until {announced} "), "the time of the next try is what it was"
    assert count(agent, "missing", "Pulling") == world.open.manifests_asked("missing") == 1
    world.open.push("missing", "1")
    agent.until_ready(["missing"])
    assert monotonic() - began > FIRST_BACK_OFF_S
    tries = count(agent, "missing", "Pulling")
    assert tries == world.open.manifests_asked("missing")
    assert tries in (2, 3), "three when the push came after the second"
    assert agent.messages("missing", "BackOff") == [f'Back-off pulling image "{image}"']


def test_the_user_s_logins_count_and_a_wrong_one_is_told_without_its_password(world: World, agent: Agent) -> None:
    world.closed.push("mine", "1")
    refused = f"{world.closed_proxy.address}/mine:1"
    agent.write(one("refused", refused))
    agent.run(one("allowed", f"{world.closed.address}/mine:1"))
    agent.until(lambda: bool(agent.messages("refused", "Failed")), "the refusal is told")
    told = "\n".join(agent.messages("refused", "Failed"))
    assert f'Failed to pull image "{refused}": ' in told
    assert "unauthorized" in told or "authentication required" in told
    everything = agent.log_text() + str(agent.events()) + str(agent.pods())
    assert PASSWORD not in everything
    assert WRONG_PASSWORD not in everything
    agent.remove("refused")
    agent.until_gone(["refused"])


def test_a_pull_ends_with_the_pod_that_wanted_it(world: World, agent: Agent, proxy: Proxy) -> None:
    world.open.push("huge", "1", layer_bytes=8_000_000)
    proxy.bytes_per_s, before = 100_000, proxy.passed_bytes
    agent.write(one("deleted", f"{proxy.address}/huge:1"))
    agent.until(lambda: proxy.passed_bytes > before + 100_000, "the pull is under way")
    agent.remove("deleted")
    agent.until_gone(["deleted"])
    agent.until(lambda: proxy.open_connections == 0, "the transfer has stopped")
    assert proxy.passed_bytes < before + 4_000_000
    # The next pull has its turn at once.
    proxy.bytes_per_s = 0
    world.open.push("next", "1")
    agent.run(one("next", f"{proxy.address}/next:1"))


@pytest.mark.slow
def test_a_pull_that_breaks_half_way_is_tried_again(world: World, agent: Agent, proxy: Proxy) -> None:
    world.open.push("half", "1", layer_bytes=3_000_000)
    proxy.cut_after_bytes = 1_000_000
    agent.write(one("half", f"{proxy.address}/half:1"))
    agent.until(lambda: bool(agent.messages("half", "Failed")), "the failure is told")
    assert "unexpected EOF" in "\n".join(agent.messages("half", "Failed"))
    proxy.cut_after_bytes = 0
    agent.until_ready(["half"])
    assert count(agent, "half", "Pulling") == 2
    assert world.open.layers_asked("half") in (2, 3), "Podman 5 goes on once itself before it gives up"


def test_a_digest_is_a_name(world: World, agent: Agent) -> None:
    digest = world.open.push("fixed", "1")
    world.open.push("fixed", "1")  # The tag goes on, the digest stays.
    name = f"{world.open.address}/fixed"
    images = {"by-digest": f"{name}@{digest}", "by-both": f"{name}:1@{digest}"}
    agent.run(*(one(pod_name, image) for pod_name, image in images.items()))
    shown = agent.pods()
    assert {container_status(shown[pod_name])["imageID"] for pod_name in images} == {f"{name}@{digest}"}


@pytest.mark.parametrize(
    "victims", [seldom(WORKERS, id="pods"), pytest.param(("node",), id="node"), seldom(("podman",), id="podman")]
)
def test_a_pull_survives_deaths(world: World, agent: Agent, proxy: Proxy, victims: tuple[str, ...]) -> None:
    """Pod workers find it under way. Without its node worker or Podman it begins anew, and nobody calls that a failure
    of the image."""
    name = f"survives-{victims[0]}"
    world.open.push(name, "1", layer_bytes=2_000_000)
    proxy.bytes_per_s, before = 700_000, proxy.passed_bytes
    agent.write(one(name, f"{proxy.address}/{name}:1"))
    agent.until(lambda: proxy.passed_bytes > before + 50_000, "the pull is under way")
    for victim in victims:
        agent.kill_and_recover(victim)
    agent.until(lambda: is_ready(agent.pods()[name]), f"{name} is Ready")
    assert world.open.manifests_asked(name) == (1 if victims == WORKERS else 2)
    assert agent.messages(name, "Failed") == []
    assert agent.messages(name, "BackOff") == []
