"""Pods of a cluster on one bridge: they reach its API server at the address that the operator has said, by the
environment and by name."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from ipc.k8s.network.network_programs import PASTA, wanted_program
from ipc.k8s.network.network_settings import BRIDGE
from tests.e2e.agent import Agent
from tests.e2e.cluster import ACCESS, Cluster, access_volume, running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, config_map, container, pod
from tests.support.podman_service import HOST_OF_PASTA, PodmanService, podman, podman_version

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

NAMES: Final = ("kubernetes.default.svc", "kubernetes.default", "kubernetes", "kubernetes.default.svc.cluster.local")
ASK: Final = """
import http.client, os, ssl
access = "/var/run/secrets/kubernetes.io/serviceaccount"
context = ssl.create_default_context(cafile=access + "/ca.crt")
token = open(access + "/token").read()
port = int(os.environ["KUBERNETES_SERVICE_PORT"])
for host in os.environ["KUBERNETES_SERVICE_HOST"], "%s":
    there = http.client.HTTPSConnection(host, port, context=context, timeout=10)
    there.request("GET", "/api/v1/services", headers={"Authorization": "Bearer " + token})
    print(host, there.getresponse().status)
"""
"""A client in a pod, as client-go's InClusterConfig is one: it speaks to nobody whose certificate lacks the name."""
HOST_PYTHON: Final = Path("/usr/bin/python3")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """At an address that a pod reaches: a loopback address is its own."""
    if not (address := _outer_address()):
        pytest.skip("the host has no address beside its loopback's")
    if not HOST_PYTHON.exists():
        pytest.skip(f"no {HOST_PYTHON} for a client in a pod")
    with running_cluster(address, HOST_OF_PASTA) as made:
        yield made


@pytest.fixture
def service(cluster: Cluster) -> tuple[str, int]:
    """Where pods on a bridge reach a server of this host: with pasta they have a copy of the host's own address."""
    host, port = cluster.do(lambda server: server.address)
    is_copied = wanted_program(BRIDGE, podman_version()) == PASTA
    return (HOST_OF_PASTA if is_copied else host), port


def _outer_address() -> str:
    found = (each for addresses in psutil.net_if_addrs().values() for each in addresses)
    of_v4 = (each.address for each in found if each.family == socket.AF_INET)
    return next((address for address in of_v4 if not address.startswith("127.")), "")


@pytest.fixture
def node(
    cluster: Cluster, service: tuple[str, int], podman_service: PodmanService, new_agent: NewAgent, tmp_path: Path
) -> Iterator[Agent]:
    name = f"{podman_service.new_instance()}-bridge"
    podman("network", "create", name)
    try:
        made = new_agent(podNetwork={"mode": "bridge", "bridge": name}, clusterDomain="cluster.local")
        host, port = service
        cluster.join(made, tmp_path, kubernetesService=f"{host}:{port}")
        made.start()
        yield made
        made.stop_pods()
    finally:
        podman("network", "rm", "--force", name)


def client() -> Json:
    """A pod with the host's Python, and what a cluster gives to every pod."""
    places = {"/usr": "/usr", "/lib": "/usr/lib", "/lib64": "/usr/lib64"}
    volumes = [{"name": name.strip("/"), "hostPath": {"path": path}} for name, path in places.items()]
    mounts = [{"name": name.strip("/"), "mountPath": name, "readOnly": True} for name in places]
    access = access_volume()
    mounts.append({"name": access["name"], "mountPath": ACCESS, "readOnly": True})
    return pod("client", container(volumeMounts=mounts), volumes=[*volumes, access])


def test_pods_reach_the_api_server_by_environment_and_by_name(
    cluster: Cluster, service: tuple[str, int], node: Agent
) -> None:
    cluster.create(
        config_map("kube-root-ca.crt", **{"ca.crt": cluster.do(lambda server: server.authority.pem.decode())})
    )
    cluster.schedule(client())
    node.until(lambda: cluster.is_ready("client"), "the pod is ready")
    host, port = service
    assert node.inside("client", "echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT") == f"{host}:{port}"
    assert "\t".join((host, *NAMES)) in node.inside("client", "cat /etc/hosts").splitlines()
    script = ASK % '", "'.join(NAMES)
    said = node.inside("client", f"{HOST_PYTHON} -I -c '{script}'")
    assert said.splitlines() == [f"{name} 403" for name in (host, *NAMES)], "the server knows whose token it is"


@pytest.mark.slow
def test_pods_of_files_are_told_nothing_of_it(cluster: Cluster, node: Agent) -> None:
    node.run(pod("local", container()))
    assert "kubernetes.default" not in node.inside("local", "cat /etc/hosts")
