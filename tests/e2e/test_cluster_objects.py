"""Gifts of a cluster to a pod, as its containers see them: ConfigMaps, Secrets, services, tokens, volumes."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent
from tests.e2e.cluster import ACCESS, Cluster, access_mount, access_volume, running_cluster
from tests.e2e.cluster_claims import bind, pending
from tests.e2e.manifests import Json, config_map, container, pod
from tests.support.podman_service import podman
from tests.support.servers.kube_api.server import KubeApiServer

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as made:
        made.create(config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}), config_map("settings", COLOUR="red"))
        made.create(service("kubernetes", "10.96.0.1"), service("db", "10.96.0.2"))
        yield made


def service(name: str, address: str) -> Json:
    spec = {"clusterIP": address, "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}
    return {"kind": "Service", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}


def with_access(name: str, **fields: Any) -> Json:
    return pod(name, container(volumeMounts=[access_mount()], **fields), volumes=[access_volume()])


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


# --- claims ------------------------------------------------------------------------------------------------------


def claiming(name: str, claim: str) -> Json:
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]
    return pod(name, container(volumeMounts=[{"name": "d", "mountPath": "/d"}]), volumes=volumes)


def with_file(directory: Path) -> Path:
    (directory / "file").write_text("from the host")
    directory.chmod(0o755)
    return directory


def no_volume_of_podmans(*names: str) -> None:
    found = podman("volume", "ls", "--format", "{{.Name}}").split()
    assert not set(names) & set(found)


def test_claim_of_a_host_path_volume(cluster: Cluster, node: Agent, tmp_path: Path) -> None:
    pending(cluster, "data")
    bind(cluster, "data", hostPath={"path": str(with_file(tmp_path)), "type": ""})
    cluster.schedule(claiming("claiming", "data"))
    node.until(lambda: cluster.is_ready("claiming"), "the pod has its volume")
    assert node.inside("claiming", "cat /d/file") == "from the host"
    cluster.delete("claiming")
    node.until_gone(["claiming"])
    assert (tmp_path / "file").exists(), "the volume's end is the cluster's business"


def test_claim_that_is_bound_later_to_a_local_volume(cluster: Cluster, node: Agent, tmp_path: Path) -> None:
    pending(cluster, "later")
    cluster.schedule(claiming("patient", "later"))
    words = "error processing PVC default/later: PVC is not bound"
    node.until(lambda: any(words in each for each in node.messages("patient", "FailedMount")), "the pod waits")
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}
    on_this = {"required": {"nodeSelectorTerms": [term]}}
    bind(cluster, "later", local={"path": str(with_file(tmp_path))}, nodeAffinity=on_this)
    node.until(lambda: cluster.is_ready("patient"), "the pod has its volume")
    assert node.inside("patient", "cat /d/file") == "from the host"
    no_volume_of_podmans("later")


def _is_told(node: Agent, name: str, words: str) -> bool:
    return any(words in each for each in node.messages(name, "FailedMount"))


def test_claims_that_no_rootless_host_mounts_are_told_in_words(cluster: Cluster, node: Agent) -> None:
    """And never replaced by an empty volume."""
    csi = {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "fsType": "ext4", "volumeAttributes": {"a": "b"}}
    for name, source in (("disk", {"csi": csi}), ("share", {"nfs": {"server": "nfs.example", "path": "/"}})):
        pending(cluster, name)
        bind(cluster, name, **source)
        cluster.schedule(claiming(f"on-{name}", name))
    cluster.schedule(claiming("on-nothing", "nothing"))
    expected = {
        "on-disk": "of kind csi: a host without root mounts only hostPath and local",
        "on-share": "of kind nfs: a host without root mounts only hostPath and local",
        "on-nothing": 'persistentvolumeclaims "nothing" not found',
    }
    for name, words in expected.items():
        node.until(functools.partial(_is_told, node, name, words), f"{name} waits")
        assert cluster.status(name)["phase"] == "Pending"
        cluster.delete(name)
    no_volume_of_podmans("disk", "share", "nothing", "vol-1")
    node.until_gone(list(expected))


def test_ephemeral_volume_is_the_clusters_claim(cluster: Cluster, node: Agent, tmp_path: Path) -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}
    volume = {"name": "d", "ephemeral": {"volumeClaimTemplate": template}}
    mount = {"name": "d", "mountPath": "/d"}
    made = cluster.schedule(pod("scratching", container(volumeMounts=[mount]), volumes=[volume]))
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "scratching",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    pending(cluster, "scratching-d", ownerReferences=[owner])
    bind(cluster, "scratching-d", local={"path": str(with_file(tmp_path))})
    node.until(lambda: cluster.is_ready("scratching"), "the pod has its volume")
    assert node.inside("scratching", "cat /d/file") == "from the host"


@pytest.mark.slow
def test_partition_between_binding_and_reading(cluster: Cluster, node: Agent, tmp_path: Path) -> None:
    """The pod is bound, and the server falls silent before the node has read its claim."""
    pending(cluster, "cut")
    bind(cluster, "cut", hostPath={"path": str(with_file(tmp_path))})
    cluster.do(lambda server: server.faults.drop("GET", "/persistentvolumeclaims/cut", times=1000))
    cluster.schedule(claiming("severed", "cut"))
    words = "error processing PVC default/cut: failed to fetch PVC from API server"
    node.until(lambda: any(words in each for each in node.messages("severed", "FailedMount")), "the pod waits")
    cluster.do(lambda server: server.faults.relent())
    node.until(lambda: cluster.is_ready("severed"), "the pod has its volume")
    assert node.inside("severed", "cat /d/file") == "from the host"
    no_volume_of_podmans("cut")
