"""Pods of a cluster on one bridge: they reach its API server at the address that the operator has said, by the
environment and by name."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.e2e.agent import Agent
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.podman_service import PodmanService, podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

FETCH: Final = "wget -q -T 10 -O - --no-check-certificate"
"""TLS without the certificate's validation, which busybox has not."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """At an address that a pod reaches: a loopback address is its own."""
    if not (address := _outer_address()):
        pytest.skip("the host has no address beside its loopback's")
    with running_cluster(address) as made:
        yield made


def _outer_address() -> str:
    found = (each for addresses in psutil.net_if_addrs().values() for each in addresses)
    of_v4 = (each.address for each in found if each.family == socket.AF_INET)
    return next((address for address in of_v4 if not address.startswith("127.")), "")


@pytest.fixture
def node(cluster: Cluster, podman_service: PodmanService, new_agent: NewAgent, tmp_path: Path) -> Iterator[Agent]:
    name = f"{podman_service.new_instance()}-bridge"
    podman("network", "create", name)
    try:
        made = new_agent(podNetwork={"mode": "bridge", "bridge": name}, clusterDomain="cluster.test")
        host, port = cluster.do(lambda server: server.address)
        cluster.join(made, tmp_path, kubernetesService=f"{host}:{port}")
        made.start()
        yield made
        made.stop_pods()
    finally:
        podman("network", "rm", "--force", name)


def test_pods_reach_the_api_server_by_environment_and_by_name(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("client", container()))
    node.until(lambda: cluster.is_ready("client"), "the pod is ready")
    host, port = cluster.do(lambda server: server.address)
    assert node.inside("client", "echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT") == f"{host}:{port}"
    names = ["kubernetes.default.svc", "kubernetes.default", "kubernetes", "kubernetes.default.svc.cluster.test"]
    entry = "\t".join((host, *names))
    assert entry in node.inside("client", "cat /etc/hosts").splitlines()
    for name in ("$KUBERNETES_SERVICE_HOST", *names):
        answer = node.inside("client", f"{FETCH} https://{name}:$KUBERNETES_SERVICE_PORT/version")
        assert '"gitVersion": "v1.36.2"' in answer or '"gitVersion":"v1.36.2"' in answer, (name, answer)


def test_pods_of_files_are_told_nothing_of_it(cluster: Cluster, node: Agent) -> None:
    node.run(pod("local", container()))
    assert "kubernetes.default" not in node.inside("local", "cat /etc/hosts")
