"""Every scene of the recordings, lived by an agent with real Podman, beside what a real kubelet has asked in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from tests.cluster_wire import node_scenes
from tests.cluster_wire.page import PAGE, page
from tests.cluster_wire.recordings import Recorded, scenes
from tests.cluster_wire.scene_differences import SceneDifference, of_node, of_reviews, of_story
from tests.cluster_wire.shapes import of_recordings, of_requests
from tests.cluster_wire.stories import Story, stories
from tests.e2e.agent import Agent, free_ports
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json
from tests.e2e.node_scene_player import Mark, NodeScenePlayer
from tests.e2e.scene_player import ScenePlayer
from tests.e2e.test_cluster_objects import service
from tests.support import registry
from tests.support.podman_service import IMAGE
from tests.support.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(600)]

PRESENT: Final = "localhost/busybox:1.35"
PULLED: Final = "localhost:5000/team/busybox:1.35"
"""Images of the recordings: one that was there, and one of a registry."""
BEGINNING: Final = Mark(0.0, 0)


def _recorded() -> list[Recorded]:
    """Records of the kubelet, without the scenes that are not played; skips where there are none."""
    return [one for one in scenes("") if one.client == "kubelet" and one.scene not in node_scenes.NOT_LIVED]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    found = _recorded()
    with running_cluster() as made:
        made.create(service("kubernetes", "10.96.0.1"), *_objects(found))
        yield made


def _objects(found: list[Recorded]) -> Iterator[Json]:
    """ConfigMaps and Secrets of the first pod, as they were at first."""
    for one in found:
        object_ = one.answer["object"] if one.is_event and one.answer["type"] == "ADDED" else {}
        if one.scene == "pod-life" and object_.get("kind") in ("ConfigMap", "Secret"):
            metadata = {"name": object_["metadata"]["name"]}
            yield {"kind": object_["kind"], "apiVersion": "v1", "metadata": metadata, "data": object_["data"]}


@pytest.fixture(scope="module")
def node(
    cluster: Cluster, shop: Registry, new_shared_agent: NewAgent, tmp_path_factory: pytest.TempPathFactory
) -> Agent:
    """A node that nobody has made before: it asks for its certificate, and registers. Whoever comes to its port is
    looked up in the cluster."""
    directory = tmp_path_factory.mktemp("bootstrap")
    agent = new_shared_agent()
    agent.environment |= registry.registries_conf(tmp_path_factory.mktemp("podman-env"), shop.address)
    cluster.bootstrap(agent, directory)
    authority = directory / "ca.crt"
    authority.write_bytes(cluster.do(lambda server: server.authority.pem))
    (port,) = free_ports(1)
    authentication = {"x509": {"clientCAFile": str(authority)}, "webhook": {"enabled": True}}
    access = {"authentication": authentication, "authorization": {"mode": "Webhook"}}
    agent.configure({"cluster": {**agent.settings["cluster"], "nodeStatusReportFrequency": "3s"}})
    agent.configure({"server": {"address": "127.0.0.1", "port": port, **access}})
    agent.start()
    return agent


def test_every_scene_beside_a_kubelets(
    cluster: Cluster, node: Agent, shop: Registry, tmp_path_factory: pytest.TempPathFactory
) -> None:
    recorded, directory = _recorded(), tmp_path_factory.mktemp("page")
    told = stories(recorded)
    of_node_scenes = NodeScenePlayer(cluster, node, directory)
    of_node_scenes.bootstrapped(BEGINNING)
    shop.push("team/busybox", "1.35")
    player = ScenePlayer(cluster, node, {PRESENT: IMAGE, PULLED: f"{shop.address}/team/busybox:1.35"})
    player.play(told)
    _play(of_node_scenes, node)
    found = [each for story in told for each in of_story(story, player.lived(story))]
    found += _of_node(of_node_scenes, recorded)
    asked = cluster.requests(lambda request: True)
    text = page(of_recordings(recorded), of_requests(asked), _titles(told, recorded), found)
    (directory / PAGE.name).write_text(text)
    assert text == PAGE.read_text(), f"{PAGE} is stale: {directory / PAGE.name} is what it should be"


def _titles(told: Sequence[Story], recorded: Sequence[Recorded]) -> list[str]:
    """Titles of all scenes that were lived. Every recorded one is among them."""
    titles = [*(story.title for story in told), *node_scenes.NODE_SCENES]
    titles += [story.title for story in node_scenes.under_pressure(recorded)]
    lived = {name for title in titles for name in title.split(", ")}
    assert {one.scene for one in recorded} <= lived | set(node_scenes.NOTHING_ASKED)
    return titles


def _play(player: NodeScenePlayer, node: Agent) -> None:
    player.go_on()
    player.be_asked(node.settings["server"]["port"], scenes(node_scenes.ASKED_OF_KUBELET))
    player.begin_anew()
    player.run_short()
    player.lose_node()


def _of_node(player: NodeScenePlayer, recorded: list[Recorded]) -> Iterator[SceneDifference]:
    for title in node_scenes.NODE_SCENES:
        yield from of_node(title, node_scenes.of_node_scene(title, recorded), player.lived(title))
    yield from of_reviews(node_scenes.REVIEWS, recorded, player.lived(node_scenes.REVIEWS).requests)
    for story in node_scenes.under_pressure(recorded):
        yield from of_story(story, player.lived(node_scenes.PRESSURE, story.name))
