"""`kubectl top`: the node's metrics as metrics-server reads and judges them, with the rights and the trust it has."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import psutil
import pytest

from tests.e2e.agent import Agent, free_ports, restart_count
from tests.e2e.cluster import NODE, Cluster, running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, container, pod
from tests.support.metrics_server import MetricsServer, Usage, endpoint, read
from tests.support.podman_service import IMAGE
from tests.support.servers.kube_api.requests import User
from tests.support.servers.kube_api.server import KubeApiServer
from workers.certificates.signing_request import SERVING_SIGNER

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

ACCOUNT: Final = "metrics-server"
USER: Final = f"system:serviceaccount:kube-system:{ACCOUNT}"
BUSY: Final = "while true; do i=0; while [ $((i += 1)) -lt 10000 ]; do :; done; sleep 0.1; done"
ASLEEP: Final = {"image": IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "3600"]}
"""A command that uses less CPU than a tick of the kernel's clock."""
ENDS_ONCE: Final = "[ -e /hold/x ] || { touch /hold/x; exit 0; }; exec sleep 3600"
"""A program whose first life ends at once and whose second one stays."""


class Node(NamedTuple):
    """A node with a certificate that its cluster has signed, and somebody else's right to its metrics."""

    agent: Agent
    cluster: Cluster
    token: str
    authority: str

    def node(self) -> Json:
        found: Json = self.cluster.do(lambda server: server.store.get("nodes", "", NODE))
        return found

    def read(self, *, token: str = "", path: str = "") -> str:
        """Raises HTTPError, URLError."""
        url = endpoint(self.node())
        return read(url.replace("/metrics/resource", path) if path else url, token or self.token, self.authority)

    def code(self, **asked: str) -> int:
        """Code of an answer."""
        try:
            self.read(**asked)
        except urllib.error.HTTPError as error:
            with error:  # it is the answer, and holds a socket
                return error.code
        return 200

    def is_served(self) -> bool:
        """Whether the port shows a certificate of the cluster."""
        try:
            self.read()
        except urllib.error.HTTPError as error:
            error.close()
            return True
        except (urllib.error.URLError, LookupError, OSError):
            return False
        return True


def _account(server: KubeApiServer) -> str:
    """A token of the service account, with the rights of its manifest."""
    server.access.allow(USER, "get", "nodes/metrics")
    server.signing.approves.add(SERVING_SIGNER)
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": ACCOUNT, "namespace": "kube-system"}}
    request: dict[str, Any] = {"spec": {"expirationSeconds": 3607}}
    issued = server.tokens.issue("kube-system", server.store.create(account), request)
    return str(issued["status"]["token"])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def node(cluster: Cluster, new_shared_agent: NewAgent, tmp_path_factory: pytest.TempPathFactory) -> Node:
    token = cluster.do(_account)
    agent = new_shared_agent()
    cluster.bootstrap(agent, tmp_path_factory.mktemp("bootstrap"))
    (port,) = free_ports(1)
    server = {"port": port, "authentication": {"webhook": {"enabled": True}}, "authorization": {"mode": "Webhook"}}
    agent.configure({"cluster": {**agent.settings["cluster"], "serverTLSBootstrap": True}, "server": server})
    agent.start()
    made = Node(agent, cluster, token, cluster.do(lambda server: server.authority.pem.decode()))
    agent.until(made.is_served, "the port has the certificate that the cluster has signed")
    return made


def told(node: Node, server: MetricsServer, *names: str) -> dict[str, dict[str, Usage]]:
    """Usage of all pods, when these are among them."""

    def are_told() -> bool:
        server.scrape()
        return set(names) <= server.pods().keys()

    node.agent.until(are_told, f"{', '.join(names)} have figures", poll_s=0.5)
    return server.pods()


def test_top_of_pods_and_node(node: Node) -> None:
    """Also of a container that has used less CPU than can be counted, beside one that has ended."""
    ended = container("first", script="exit 0")
    node.cluster.schedule(pod("busy", container(script=BUSY)))
    node.cluster.schedule(pod("asleep", {"name": "a", **ASLEEP}, {"name": "b", **ASLEEP}, initContainers=[ended]))
    node.agent.until(lambda: {"busy", "asleep"} <= node.cluster.ready(), "the pods are ready")
    server = MetricsServer(node.read)
    pods = told(node, server, "busy", "asleep")
    assert set(pods["asleep"]) == {"a", "b"}
    assert pods["busy"]["main"].cores > 0.0
    assert all(usage.memory > 0 and usage.window_s > 0 for found in pods.values() for usage in found.values())
    usage = server.node()
    assert usage is not None
    assert 0.0 < usage.cores <= (psutil.cpu_count() or 1) * 1.5
    assert pods["busy"]["main"].memory < usage.memory < psutil.virtual_memory().total


@pytest.mark.slow
def test_a_container_that_was_restarted_is_told_again(node: Node) -> None:
    """The counter begins anew, and with it the point before."""
    server = MetricsServer(node.read)
    ends_once = container(script=ENDS_ONCE, volumeMounts=[{"name": "hold", "mountPath": "/hold"}])
    node.cluster.schedule(pod("anew", ends_once, container("stays"), volumes=[{"name": "hold", "emptyDir": {}}]))
    node.agent.until(lambda: restart_count({"status": node.cluster.status("anew")}) > 0, "it was restarted")
    assert told(node, server, "anew")["anew"].keys() == {"main", "stays"}


def test_only_who_may_see_metrics_sees_them(node: Node) -> None:
    stranger = node.cluster.do(lambda server: server.tokens.add(User("ann", ("system:authenticated",))))
    assert node.code() == 200
    assert node.code(token=stranger) == 403
    assert node.code(token="nobody's") == 401
    assert node.code(path="/pods") == 403, "the right to metrics is no right to pods"
    reviewed = node.cluster.requests(lambda request: request.path.endswith("/subjectaccessreviews"))
    asked = [request.json["spec"]["resourceAttributes"] for request in reviewed]
    expected = {"verb": "get", "version": "v1", "resource": "nodes", "subresource": "metrics", "name": NODE}
    assert expected in [{name: value for name, value in each.items() if name in expected} for each in asked]
