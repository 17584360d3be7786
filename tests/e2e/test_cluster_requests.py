"""Every request that an agent makes as a node, beside those that a real kubelet has made in the recorded scenes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster_wire.page import PAGE, page
from tests.cluster_wire.recordings import scenes
from tests.cluster_wire.shapes import Shapes, of_recordings, of_requests
from tests.e2e.agent import Agent
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import config_map, container, pod, secret
from tests.e2e.test_cluster_objects import service, with_access

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    scenes("node-")  # skips where there are none
    with running_cluster() as made:
        authority = config_map("kube-root-ca.crt", **{"ca.crt": "PEM"})
        for found in (authority, config_map("cm1", key="one"), service("kubernetes", "10.96.0.1")):
            made.do(lambda server, found=found: server.store.create(found))
        hidden = secret("s1", key="hidden")
        made.do(lambda server: server.store.create(hidden))
        yield made


@pytest.fixture(scope="module")
def node(cluster: Cluster, new_shared_agent: NewAgent, tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """A node that nobody has made before: it asks for its certificate, and registers."""
    agent = new_shared_agent()
    cluster.bootstrap(agent, tmp_path_factory.mktemp("bootstrap"))
    agent.start()
    return agent


def _asked(cluster: Cluster) -> Shapes:
    return of_requests(cluster.requests(lambda request: True))


def test_requests_beside_a_kubelets(cluster: Cluster, node: Agent) -> None:
    _live(cluster, node)
    theirs = of_recordings(found for found in scenes("") if found.client == "kubelet")
    assert page(theirs, _asked(cluster)) == PAGE.read_text()


def _live(cluster: Cluster, node: Agent) -> None:
    """The recorded scenes, as far as one node without a cgroup of its own can play them."""
    sources = [{"configMapRef": {"name": "cm1"}}, {"secretRef": {"name": "s1"}}]
    cluster.schedule(with_access("full", envFrom=sources, readinessProbe={"exec": {"command": ["true"]}}))
    cluster.schedule(pod("crash", container(script="exit 1")))
    cluster.schedule(pod("once", container(script="exit 7"), restartPolicy="Never"))
    cluster.schedule(pod("nocm", container(envFrom=[{"configMapRef": {"name": "nocm"}}])))
    cluster.schedule(pod("nosuch", container(image="localhost/nosuch:1")))
    cluster.schedule(pod("large", container(resources={"requests": {"cpu": "100000"}})))
    node.write(pod("static"))
    mirror = "static-e2e"
    node.until(lambda: cluster.is_ready("full") and cluster.is_ready(mirror), "pods are ready")
    node.until(lambda: cluster.status("once").get("phase") == "Failed", "a pod has failed")
    node.until(lambda: cluster.status("large").get("phase") == "Failed", "a pod was refused")
    node.until(lambda: node.waiting("crash").get("reason") == "CrashLoopBackOff", "a pod waits")
    cluster.delete(mirror)
    node.until(lambda: cluster.is_ready(mirror), "there is a new mirror")
    node.remove("static")
    for name in ("full", "crash", "once", "nocm", "nosuch", "large"):
        cluster.delete(name)
    node.until(lambda: not cluster.pods(), "the server has no pod left")
