"""Gifts of a cluster to a pod, as its containers see them: ConfigMaps, Secrets, services, tokens, volumes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.manifests import Json, config_map, container, pod
from tests.servers.kube_api.server import KubeApiServer

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

ACCESS: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
NAMESPACE_FILE: Final = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as made:
        made.create(config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}), config_map("settings", COLOUR="red"))
        made.create(service("kubernetes", "10.96.0.1"), service("db", "10.96.0.2"))
        yield made


def service(name: str, address: str) -> Json:
    spec = {"clusterIP": address, "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}
    return {"kind": "Service", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}


def access_volume(expiration_s: int = 3607) -> Json:
    """The volume that a cluster puts into every pod."""
    sources: list[Json] = [
        {"serviceAccountToken": {"expirationSeconds": expiration_s, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [NAMESPACE_FILE]}},
    ]
    return {"name": "kube-api-access-x2x4z", "projected": {"defaultMode": 0o644, "sources": sources}}


def with_access(name: str, **fields: Any) -> Json:
    mount = {"name": "kube-api-access-x2x4z", "mountPath": ACCESS, "readOnly": True}
    return pod(name, container(volumeMounts=[mount], **fields), volumes=[access_volume()])


def test_pod_reaches_what_a_client_in_a_cluster_needs(cluster: Cluster, node: Agent) -> None:
    """Files and variables that client-go's InClusterConfig reads: address, token, authority; and those of a service."""
    cluster.schedule(with_access("client", envFrom=[{"configMapRef": {"name": "settings"}}]))
    node.until(lambda: cluster.is_ready("client"), "the pod is ready")
    assert node.inside("client", f"ls {ACCESS}").split() == ["ca.crt", "namespace", "token"]
    assert node.inside("client", f"cat {ACCESS}/namespace {ACCESS}/ca.crt").split() == ["defaultPEM"]
    told = node.inside("client", "echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT $DB_PORT $COLOUR").split()
    assert told == ["10.96.0.1:443", "tcp://10.96.0.2:443", "red"]
    token = node.inside("client", f"cat {ACCESS}/token").strip()
    assert cluster.do(lambda server: _user_of(server, token)) == "system:serviceaccount:default:default"
    assert token not in node.log_text()
    assert token not in node.describe("client")


def test_token_belongs_to_the_user_as_whom_all_containers_run(cluster: Cluster, node: Agent) -> None:
    manifest = with_access("owned")
    manifest["spec"]["securityContext"] = {"runAsUser": 1234}
    cluster.schedule(manifest)
    node.until(lambda: cluster.is_ready("owned"), "the pod is ready")
    (token,) = node.inside("owned", f"stat -L -c %u:%a {ACCESS}/token").split()
    assert token == "1234:600"
    assert node.inside("owned", f"id -u; cat {ACCESS}/token").split()[0] == "1234"
    assert node.inside("owned", f"stat -L -c %u:%a {ACCESS}/ca.crt").strip() == "0:644"
    before = node.inside("owned", f"readlink {ACCESS}/..data")
    node.kill_and_recover("pods-0")
    node.until_ready(["owned"])
    assert node.inside("owned", f"readlink {ACCESS}/..data") == before, "what is right is not written again"


def _user_of(server: KubeApiServer, token: str) -> str:
    user = server.tokens.user(token)
    return user.name if user is not None else ""


def test_config_map_that_comes_later_and_changes(cluster: Cluster, node: Agent) -> None:
    mount = {"name": "c", "mountPath": "/c"}
    volume = {"name": "c", "configMap": {"name": "late"}}
    cluster.schedule(pod("waiting", container(volumeMounts=[mount]), volumes=[volume]))
    node.until(lambda: bool(node.messages("waiting", "FailedMount")), "the pod waits for its ConfigMap")
    assert any('configmap "late" not found' in message for message in node.messages("waiting", "FailedMount"))
    cluster.do(lambda server: server.store.create(config_map("late", key="one")))
    node.until(lambda: cluster.is_ready("waiting"), "the pod has its ConfigMap")
    cluster.do(lambda server: server.store.update(config_map("late", key="two")))
    node.until(lambda: node.inside("waiting", "cat /c/key") == "two", "the file follows")


def test_pod_without_a_token_says_why(cluster: Cluster, node: Agent) -> None:
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "robot"}}
    manifest = with_access("tokenless")
    manifest["spec"]["serviceAccountName"] = "robot"
    cluster.schedule(manifest)
    node.until(lambda: bool(node.messages("tokenless", "FailedMount")), "the pod waits for its token")
    words = 'failed to fetch token: serviceaccounts "robot" not found'
    assert any(words in message for message in node.messages("tokenless", "FailedMount"))
    cluster.do(lambda server: server.store.create(account))
    node.until(lambda: cluster.is_ready("tokenless"), "the pod has its token")


def test_claim_of_a_host_path_volume(cluster: Cluster, node: Agent, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from the host")
    tmp_path.chmod(0o755)
    spec: Json = {
        "hostPath": {"path": str(tmp_path)},
        "capacity": {"storage": "1Mi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"},
        "persistentVolumeReclaimPolicy": "Delete",
    }
    volume = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "pv"}, "spec": spec}
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "data"}}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}, "volumeName": "pv"}
    made = cluster.do(lambda server: server.store.create(claim | {"spec": wanted, "status": {"phase": "Bound"}}))
    spec["claimRef"]["uid"] = made["metadata"]["uid"]
    cluster.do(lambda server: server.store.create(volume))
    mount = {"name": "d", "mountPath": "/d"}
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster.schedule(pod("claiming", container(volumeMounts=[mount]), volumes=volumes))
    node.until(lambda: cluster.is_ready("claiming"), "the pod has its volume")
    assert node.inside("claiming", "cat /d/file") == "from the host"
    cluster.delete("claiming")
    node.until_gone(["claiming"])
    assert (tmp_path / "file").exists(), "the volume's end is the cluster's business"
