"""Another image for one of three containers: exactly that one is replaced, and `describe` shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent, Json, container_status, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA
from tests.support.podman_service import IMAGE, PodmanService, podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

NAMES = ("left", "middle", "right")
SCRIPT = f'echo "$RELEASE"; {STAY}'


@pytest.fixture(scope="module")
def other_image(podman_service: PodmanService) -> Iterator[str]:
    """The test image with another environment, and so another id."""
    name = podman_service.new_instance()
    image = f"localhost/rootlet-{name}:2"
    podman("create", "--name", name, IMAGE, "true")
    try:
        podman("commit", "--quiet", "--change", "ENV RELEASE=second", name, image)
    finally:
        podman("rm", name)
    yield image
    podman("rmi", image)


@pytest.fixture(scope="module")
def agent(other_image: str, new_shared_agent: NewAgent) -> Agent:
    """An agent that ends, with its containers, before the image does."""
    shared = new_shared_agent()
    shared.start()
    return shared


def manifest(name: str, images: dict[str, str]) -> Json:
    return pod(name, *(container(each, SCRIPT, image=images.get(each, IMAGE)) for each in NAMES))


def described_ids(text: str) -> dict[str, str]:
    """Container name -> its full id, as `describe` shows them."""
    return dict(re.findall(r"^  (\S+):\n    Container ID: +podman://([0-9a-f]{64})$", text, re.MULTILINE))


def test_exactly_one_container_is_replaced(agent: Agent, other_image: str) -> None:
    agent.run(manifest("three", {}))
    pod_table, ids = agent.eye.running("three"), described_ids(agent.describe("three"))
    shown = agent.pods()["three"]
    assert ids == {name: pod_table["three", name].id for name in NAMES}
    agent.write(manifest("three", {"middle": other_image}))
    agent.until(lambda: agent.cli("logs", "three", "-c", "middle").out == "second\n", "the other image runs")
    agent.until_ready(["three"])
    now, described = agent.eye.running("three"), agent.describe("three")
    changed = {name for name, id in described_ids(described).items() if id != ids[name]}
    assert changed == {"middle"}
    assert described_ids(described)["middle"] == now["three", "middle"].id
    for untouched in ("left", "right", INFRA):
        # Id, pid and start.
        assert now["three", untouched].lifecycle == pod_table["three", untouched].lifecycle
    after = agent.pods()["three"]
    assert {name: restart_count(after, name) for name in NAMES} == {"left": 0, "middle": 1, "right": 0}
    for untouched in ("left", "right"):
        assert container_status(after, untouched) == container_status(shown, untouched)
    assert container_status(after, "middle")["imageID"] != container_status(after, "left")["imageID"]
    assert re.search(rf"^    Image: +{re.escape(other_image)}$", described, re.MULTILINE)
    assert "(attempt 0, ready)" in described
    killed = {e["involvedObject"]["fieldPath"] for e in agent.events("three") if e["reason"] == "Killing"}
    assert killed == {"spec.containers{middle}"}
    assert "definition changed" in described


@pytest.mark.slow
def test_a_sidecar_is_replaced_alone_too(agent: Agent, other_image: str) -> None:
    def with_sidecar(image: str) -> Json:
        helper = container("helper", SCRIPT, image=image, restartPolicy="Always")
        return pod("beside", container(), initContainers=[container("setup", "true"), helper])

    agent.run(with_sidecar(IMAGE))
    before = agent.eye.running("beside")
    setup = container_status(agent.pods()["beside"], "setup")["containerID"]
    agent.write(with_sidecar(other_image))
    agent.until(lambda: agent.cli("logs", "beside", "-c", "helper").out == "second\n", "the other image runs")
    agent.until_ready(["beside"])
    now = agent.eye.running("beside")
    assert now["beside", "helper"].id != before["beside", "helper"].id
    for untouched in ("main", INFRA):
        assert now["beside", untouched].lifecycle == before["beside", untouched].lifecycle
    assert container_status(agent.pods()["beside"], "setup")["containerID"] == setup
