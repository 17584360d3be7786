"""The identity of a node on a real agent: certificates that end while nobody signs others, and a node that leaves."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from ipc.k8s.kubeconfig.types import CLIENT_CERTIFICATE, SERVING_CERTIFICATE
from tests.e2e.cluster import NODE, Cluster, running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import pod
from tests.support.servers.kube_api.server import KubeApiServer
from workers.certificates.signing_request import SERVING_SIGNER
from workers.certificates.validity import read_validity

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

LIFETIME: Final = timedelta(seconds=24)
"""Life of a certificate: the next one is asked for after 17 to 22 s."""
PORT: Final = 24250
SERVER: Final = {"port": PORT, "authentication": {"anonymous": {"enabled": True}}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster() as made:
        yield made


def _admin(server: KubeApiServer, directory: Path) -> str:
    server.access.allow("admin", "*", "*")
    return str(server.kubeconfig(directory, user="admin"))


def _signs_for_seconds(server: KubeApiServer) -> None:
    server.signing.lifetime, server.signing.begins_now = LIFETIME, True
    server.signing.approves.add(SERVING_SIGNER)


def _signs_for_a_day(server: KubeApiServer) -> None:
    server.signing.lifetime = timedelta(days=1)


def _nodes(cluster: Cluster) -> list[str]:
    return [node["metadata"]["name"] for node in cluster.do(lambda server: server.store.all("nodes"))]


def _is_over(pem: bytes) -> bool:
    return read_validity(pem).is_over(time.time())


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_certificates_that_end_while_the_server_is_away_are_asked_for_again(
    cluster: Cluster, new_agent: NewAgent, tmp_path: Path
) -> None:
    """A bootstrap token lets the node in again; no pod notices."""

    def served() -> bytes:
        return ssl.get_server_certificate(("127.0.0.1", PORT), timeout=5.0).encode()

    cluster.do(_signs_for_seconds)
    agent = new_agent()
    cluster.bootstrap(agent, tmp_path)
    agent.configure({"cluster": {**agent.settings["cluster"], "serverTLSBootstrap": True}, "server": SERVER})
    agent.start()
    cluster.schedule(pod("before"))
    agent.until(lambda: cluster.is_ready("before"), "the pod is ready")
    running = agent.eye.pod_table("before")
    client, serving = (agent.state / "pki" / name for name in (CLIENT_CERTIFICATE, SERVING_CERTIFICATE))
    agent.until(serving.exists, "the certificate of the port was signed")
    cluster.do(lambda server: server.faults.partition())
    agent.until(lambda: _is_over(client.read_bytes()) and _is_over(serving.read_bytes()), "both have ended")
    assert not _is_over(served()), "the port has one of its own again"
    cluster.do(_signs_for_a_day)
    cluster.do(lambda server: server.faults.heal())
    agent.until(lambda: not _is_over(client.read_bytes()), "there is another client certificate")
    cluster.schedule(pod("after"))
    agent.until(lambda: cluster.is_ready("after"), "pods come again")
    agent.until(lambda: not _is_over(serving.read_bytes()), "there is another serving certificate")
    agent.until(lambda: served() in serving.read_bytes(), "the port shows it")
    assert agent.eye.pod_table("before") == running
    assert cluster.is_ready("before")


def test_a_node_that_leaves_ends_its_pods_and_is_gone(cluster: Cluster, new_agent: NewAgent, tmp_path: Path) -> None:
    """The agent goes on, without a way into the cluster; without the section it runs its own pods again."""
    agent = new_agent()
    cluster.bootstrap(agent, tmp_path)
    agent.write(pod("mine"))
    agent.start()
    cluster.schedule(pod("theirs"))
    agent.until(lambda: cluster.is_ready("theirs"), "the pod is ready")
    agent.until_ready(["mine"])
    (tmp_path / "admin").mkdir()
    admin = cluster.do(lambda server: _admin(server, tmp_path / "admin"))
    done = agent.cli("leave", "--config", str(agent.config), "--kubeconfig", admin)
    assert done.code == 0, done.err
    assert f"node/{NODE} deleted" in done.out
    assert f"removed {agent.state / 'pki' / CLIENT_CERTIFICATE}" in done.out
    agent.until(lambda: not agent.eye.running(), "no pod runs")
    tried = len(cluster.requests(lambda request: request.code == 404))
    agent.until(lambda: len(cluster.requests(lambda request: request.code == 404)) > tried, "the agent misses its Node")
    assert _nodes(cluster) == [], "and does not make it again"
    agent.stop()
    del agent.settings["cluster"]
    agent.configure({})
    agent.start()
    assert agent.cli("uncordon").code == 0
    agent.until_ready(["mine"])
    assert "theirs" not in agent.pods()
