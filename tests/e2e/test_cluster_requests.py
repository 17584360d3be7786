"""Every request that an agent makes as a node, beside those that a real kubelet has made in the recorded scenes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.cluster_wire.page import PAGE, page
from tests.cluster_wire.recordings import scenes
from tests.cluster_wire.shapes import Shapes, of_recordings, of_requests
from tests.e2e.agent import Agent
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, Json, config_map, container, pod
from tests.e2e.test_cluster_objects import service, with_access

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


PROTOBUF: Final = ("node-protobuf",)
"""Scenes of a kubelet that speaks protobuf, of which the bodies cannot be compared."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    scenes("node-")  # skips where there are none
    with running_cluster() as made:
        made.create(config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}), config_map("cm1", key="one"))
        hidden = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s1"}, "data": {"key": "aGlkZGVu"}}
        made.create(hidden, service("kubernetes", "10.96.0.1"))
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


def test_requests_beside_a_kubelets(cluster: Cluster, node: Agent, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("page")
    _live(cluster, node)
    recorded = [found for found in scenes("") if found.client == "kubelet" and found.scene not in PROTOBUF]
    theirs = of_recordings(recorded)
    text = page(theirs, _asked(cluster))
    (directory / PAGE.name).write_text(text)
    assert text == PAGE.read_text(), f"{PAGE} is stale: {directory / PAGE.name} is what it should be"


def _live(cluster: Cluster, node: Agent) -> None:
    """The recorded scenes, as far as one node without a cgroup of its own can play them."""
    cluster.schedule(_full())
    cluster.schedule(pod("crash", container(script="exit 1")))
    cluster.schedule(pod("once", container(script="exit 7"), restartPolicy="Never"))
    cluster.schedule(pod("nocm", container(envFrom=[{"configMapRef": {"name": "nocm"}}])))
    cluster.schedule(pod("nosuch", container(image="localhost/nosuch:1")))
    cluster.schedule(pod("large", container(resources={"requests": {"cpu": "100000"}})))
    node.write(pod("static", container(resources={"requests": {"cpu": "1m"}})))
    mirror = "static-e2e"
    node.until(lambda: cluster.is_ready("full") and cluster.is_ready(mirror), "pods are ready")
    node.until(lambda: cluster.status("once").get("phase") == "Failed", "a pod has failed")
    node.until(lambda: cluster.status("large").get("phase") == "Failed", "a pod was refused")
    node.until(lambda: _restarts(cluster, "crash") > 0, "the server knows of a restart")
    renewed = "PUT /apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    node.until(lambda: renewed in _asked(cluster), "the lease was renewed")
    cluster.delete(mirror)
    node.until(lambda: cluster.is_ready(mirror), "there is a new mirror")
    node.remove("static")
    for name in ("full", "crash", "once", "nocm", "nosuch", "large"):
        cluster.delete(name)
    node.until(lambda: not cluster.pods(), "the server has no pod left")


def _full() -> Json:
    """A pod with all that the recorded one has: objects, init containers, a sidecar, tokens, resources."""
    sources = [{"configMapRef": {"name": "cm1"}}, {"secretRef": {"name": "s1"}}]
    resources = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}}
    full = with_access("full", envFrom=sources, readinessProbe={"exec": {"command": ["true"]}}, resources=resources)
    mounts = full["spec"]["containers"][0]["volumeMounts"]
    sidecar = container("sidecar", STAY, restartPolicy="Always", volumeMounts=mounts)
    full["spec"]["initContainers"] = [container("init", "exit 0"), sidecar]
    token = {"serviceAccountToken": {"path": "vault", "audience": "vault", "expirationSeconds": 600}}
    full["spec"]["volumes"].append({"name": "vault", "projected": {"sources": [token]}})
    return full


def _restarts(cluster: Cluster, name: str) -> int:
    statuses = cluster.status(name).get("containerStatuses") or [{}]
    return int(statuses[0].get("restartCount", 0))
