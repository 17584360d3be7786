"""A node of a real kube-apiserver with its etcd, where both are on PATH (`make test-cluster`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.support.servers.kube_programs import RealApiServer, missing_programs, real_api_server

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow]

NODE = "real"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApiServer]:
    if missing := missing_programs():
        pytest.skip(f"not on PATH: {', '.join(missing)}")
    with real_api_server(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def node(server: RealApiServer, new_shared_agent: NewAgent, tmp_path_factory: pytest.TempPathFactory) -> Agent:
    agent = new_shared_agent()
    path = server.kubeconfig(tmp_path_factory.mktemp("kubeconfig"), NODE)
    agent.configure({"nodeName": NODE, "cluster": {"kubeconfig": str(path)}})
    agent.start()
    return agent


def found(server: RealApiServer, path: str) -> Any:
    """The object; empty when it is not there."""
    code, answer = server.ask("GET", path)
    return answer if code == 200 else {}


def condition(thing: Any, type_: str) -> str:
    conditions = thing.get("status", {}).get("conditions", ())
    return next((str(each["status"]) for each in conditions if each["type"] == type_), "")


def test_node_registers_and_runs_a_pod_until_it_is_deleted(server: RealApiServer, node: Agent) -> None:
    node.until(lambda: condition(found(server, f"/api/v1/nodes/{NODE}"), "Ready") == "True", "the node is ready")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"
    node.until(lambda: bool(found(server, lease)), "the node has its lease")
    manifest = pod("bound", nodeName=NODE)
    assert server.ask("POST", PODS, manifest)[0] == 201
    node.until(lambda: condition(found(server, f"{PODS}/bound"), "Ready") == "True", "the pod is ready")
    assert found(server, f"{PODS}/bound")["status"]["phase"] == "Running"
    assert server.ask("DELETE", f"{PODS}/bound")[0] == 200
    node.until(lambda: not found(server, f"{PODS}/bound"), "the server has forgotten the pod")
    node.until_gone(["bound"])


def test_a_pod_that_never_began_is_gone_after_its_deletion(server: RealApiServer, node: Agent) -> None:
    """The server writes nulls into the status of such a pod's containers, which are no difference."""
    handler = {"kind": "RuntimeClass", "metadata": {"name": "absent"}, "handler": "nobody-has-it"}
    assert server.ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", handler)[0] == 201
    assert server.ask("POST", PODS, pod("never", nodeName=NODE, runtimeClassName="absent"))[0] == 201
    began = "PodReadyToStartContainers"
    node.until(lambda: condition(found(server, f"{PODS}/never"), began) == "False", "the node has told of it")
    assert server.ask("DELETE", f"{PODS}/never")[0] == 200
    node.until(lambda: not found(server, f"{PODS}/never"), "the server has forgotten the pod")


def test_a_claim_of_a_local_volume_as_the_server_writes_it(server: RealApiServer, node: Agent, tmp_path: Path) -> None:
    """No controller runs here: the test binds. What the server adds (lastPhaseTransitionTime, finalizers,
    managedFields) is its own."""
    (tmp_path / "file").write_text("from the host")
    tmp_path.chmod(0o755)
    claims, volumes = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
    size, mode = {"storage": "1Mi"}, ["ReadWriteOnce"]
    wanted = {"accessModes": mode, "resources": {"requests": size}, "volumeName": "local", "storageClassName": ""}
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "data"}, "spec": wanted}
    code, made = server.ask("POST", claims, claim)
    assert code == 201
    ref = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": made["metadata"]["uid"]}
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}
    spec = {
        "local": {"path": str(tmp_path)},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "capacity": size,
        "accessModes": mode,
        "claimRef": ref,
    }
    volume = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "local"}, "spec": spec}
    code, kept = server.ask("POST", volumes, volume)
    assert code == 201
    assert server.ask("PUT", f"{volumes}/local/status", kept | {"status": {"phase": "Bound"}})[0] == 200
    mounts = [{"name": "d", "mountPath": "/d"}]
    source = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    wanted_pod = pod("claiming", container(volumeMounts=mounts), nodeName=NODE, volumes=source)
    assert server.ask("POST", PODS, wanted_pod)[0] == 201
    words = "error processing PVC default/data: PVC is not bound"
    node.until(lambda: any(words in each for each in node.messages("claiming", "FailedMount")), "the pod waits")
    pending = {"type": "FileSystemResizePending", "status": "True"}
    status = {"phase": "Bound", "capacity": size, "accessModes": mode, "conditions": [pending]}
    assert server.ask("PUT", f"{claims}/data/status", made | {"status": status})[0] == 200
    node.until(lambda: condition(found(server, f"{PODS}/claiming"), "Ready") == "True", "the pod has its volume")
    assert node.inside("claiming", "cat /d/file") == "from the host"
    assert found(server, f"{volumes}/local")["status"].get("lastPhaseTransitionTime"), "the server writes it by itself"
