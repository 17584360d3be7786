"""A node of a cluster: pods that a server binds to it run on real Podman, and the server knows what becomes of them."""

from __future__ import annotations

import functools
import os
import signal

import pytest

from tests.e2e.agent import Agent
from tests.e2e.cluster import NODE, Cluster
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


def test_a_bound_pod_runs_and_goes_when_it_is_deleted(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("bound"))
    node.until(lambda: cluster.is_ready("bound"), "the server knows that the pod is ready")
    status = cluster.status("bound")
    assert status["phase"] == "Running"
    assert status["podIP"]
    assert status["observedGeneration"] == cluster.pods()["bound"]["metadata"]["generation"]
    assert status["containerStatuses"][0]["state"]["running"]
    assert cluster.condition("bound", "PodScheduled") == "True"
    patches = cluster.patches("bound")
    assert len(patches) <= 5, [patch.json for patch in patches]
    cluster.delete("bound")
    node.until(lambda: "bound" not in cluster.pods(), "the server has forgotten the pod")
    node.until_gone(["bound"])
    told = [patch.json["status"].get("containerStatuses") for patch in cluster.patches("bound")]
    assert "terminated" in list(filter(None, told))[-1][0]["state"], "the end was told before the DELETE"
    (deletion,) = cluster.requests(lambda request: request.verb == "DELETE" and request.path.endswith("/bound"))
    assert deletion.json["gracePeriodSeconds"] == 0
    assert deletion.json["preconditions"] == {"uid": cluster.patches("bound")[0].json["metadata"]["uid"]}


def test_a_pod_that_ends_is_kept_with_its_last_status(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("done", container(script="exit 3"), restartPolicy="Never"))
    node.until(lambda: cluster.status("done").get("phase") == "Failed", "the server knows that the pod has failed")
    (main,) = cluster.status("done")["containerStatuses"]
    assert main["state"]["terminated"]["exitCode"] == 3
    node.restart()
    assert cluster.status("done")["phase"] == "Failed"
    assert len(node.eye.containers(pod="done")) <= 1, "it did not run again"
    cluster.delete("done")
    node.until(lambda: "done" not in cluster.pods(), "the server has forgotten the pod")


def test_what_this_node_does_not_do_fails_with_its_reason(cluster: Cluster, node: Agent) -> None:
    volume = {"name": "disk", "awsElasticBlockStore": {"volumeID": "v"}}
    cluster.schedule(pod("refused", volumes=[volume]))
    node.until(lambda: cluster.status("refused").get("phase") == "Failed", "the server knows that it was refused")
    status = cluster.status("refused")
    assert status["reason"] == "UnsupportedField"
    assert status["message"].startswith("Pod was rejected: spec.volumes[0].awsElasticBlockStore: not supported")
    assert "refused" not in node.pods()
    node.until(lambda: bool(node.messages("refused", "UnsupportedField")), "an event says so")
    assert status["message"].endswith(node.messages("refused", "UnsupportedField")[0])
    cluster.delete("refused")
    node.until(lambda: "refused" not in cluster.pods(), "the server has forgotten the pod")


def test_a_static_pod_has_a_mirror(cluster: Cluster, node: Agent) -> None:
    mirror = f"static-{NODE}"
    node.run(pod("static"))
    node.until(lambda: cluster.is_ready(mirror), "the mirror is ready")
    first = cluster.pods()[mirror]
    node.until(lambda: "Started" in cluster.events(mirror), "its events are those of the mirror")
    assert first["metadata"]["ownerReferences"][0]["kind"] == "Node"
    assert "observedGeneration" not in first["status"]
    running = node.eye.pod_table("static")
    cluster.delete(mirror)
    node.until(lambda: _uid(cluster, mirror) not in ("", first["metadata"]["uid"]), "there is a new mirror")
    assert node.eye.pod_table("static") == running, "its pod never knew"
    second = _uid(cluster, mirror)
    node.write(pod("static", labels={"edited": "yes"}))
    node.until(lambda: _uid(cluster, mirror) not in ("", second), "the mirror is that of the edited pod")
    assert cluster.pods()[mirror]["metadata"]["labels"] == {"edited": "yes"}
    node.remove("static")
    node.until(lambda: mirror not in cluster.pods(), "the mirror goes with its pod")


@pytest.mark.slow
def test_no_pod_notices_that_the_server_dies_or_is_an_older_one(cluster: Cluster, node: Agent) -> None:
    """Restored from a backup, its versions fall, and it has lost a pod; that one ends, and no other."""
    cluster.schedule(pod("steady"))
    node.until(lambda: cluster.is_ready("steady"), "the pod is ready")
    running = node.eye.pod_table("steady")
    backup = cluster.do(lambda server: server.store.revision)
    cluster.schedule(pod("lost"))
    node.until(lambda: cluster.is_ready("lost"), "the pod is ready")
    node.until(lambda: cluster.lease_version() > backup, "the lease was renewed since the backup")
    cluster.do(lambda server: server.faults.restore(backup))
    node.until_gone(["lost"])
    cluster.stop()
    cluster.start()
    cluster.schedule(pod("later"))
    node.until(lambda: cluster.is_ready("later"), "pods come again after the server's death")
    assert node.eye.pod_table("steady") == running
    assert cluster.is_ready("steady")
    cluster.delete("steady")
    cluster.delete("later")
    node.until(lambda: cluster.pods().keys().isdisjoint({"steady", "later"}), "the server has forgotten both")


def test_an_agent_that_starts_without_the_server_goes_on_with_what_ran(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("kept"))
    node.until(lambda: cluster.is_ready("kept"), "the pod is ready")
    running = node.eye.pod_table("kept")
    cluster.stop()
    node.stop()
    node.start(sources_ready=False)
    node.until_ready(["kept"])
    assert node.eye.pod_table("kept") == running
    node.write(pod("local"))
    node.until_ready(["local"])
    cluster.start()
    node.until(lambda: bool(node.get("/version")["sourcesReady"]), "the server was read")
    node.remove("local")
    node.until_gone(["local"])
    assert node.eye.pod_table("kept") == running
    cluster.delete("kept")
    node.until(lambda: "kept" not in cluster.pods(), "the server has forgotten the pod")


def test_a_partition_and_the_death_of_the_node_worker_restart_nothing(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("apart"))
    node.until(lambda: cluster.is_ready("apart"), "the pod is ready")
    running = node.eye.pod_table("apart")
    pid = int(node.workers()["node"]["pid"])
    cluster.do(lambda server: server.faults.partition())
    os.kill(pid, signal.SIGKILL)
    node.until(lambda: node.workers()["node"]["pid"] not in (0, pid), "there is another process")
    assert node.pods()["apart"]["status"]["phase"] == "Running"
    cluster.do(lambda server: server.faults.heal())
    assert node.eye.pod_table("apart") == running
    cluster.delete("apart")
    node.until(lambda: "apart" not in cluster.pods(), "what was deleted after the partition goes")
    node.until_gone(["apart"])


def _uid(cluster: Cluster, name: str) -> str:
    return str(cluster.pods().get(name, {}).get("metadata", {}).get("uid", ""))


def test_labels_that_the_cluster_gives_the_node_decide_also_after_a_start_without_the_server(
    cluster: Cluster, node: Agent
) -> None:
    cluster.label_node(pool="a")
    cluster.schedule(pod("picky", nodeSelector={"pool": "a"}))
    cluster.schedule(pod("elsewhere", nodeSelector={"pool": "b"}))
    node.until(lambda: cluster.is_ready("picky"), "the label that came just before is seen")
    node.until(lambda: cluster.status("elsewhere").get("reason") == "NodeAffinity", "the other pod was rejected")
    running = node.eye.pod_table("picky")
    cluster.stop()
    node.stop()
    node.start(sources_ready=False)
    node.until_ready(["picky"])
    assert node.eye.pod_table("picky") == running
    cluster.start()
    node.until(lambda: bool(node.get("/version")["sourcesReady"]), "the server was read")
    for name in ("picky", "elsewhere"):
        cluster.delete(name)
    node.until(lambda: cluster.pods().keys().isdisjoint({"picky", "elsewhere"}), "the server has forgotten both")


def _ready_is(cluster: Cluster, name: str, status: str) -> bool:
    return cluster.condition(name, "Ready") == status


def test_ready_follows_the_conditions_of_its_gates(cluster: Cluster, node: Agent) -> None:
    """A controller of the cluster opens and closes the gate; nothing of the pod starts anew for it."""
    gate = "www.example.com/load-balancer"
    cluster.schedule(pod("gated", readinessGates=[{"conditionType": gate}]))
    node.until(lambda: cluster.condition("gated", "ContainersReady") == "True", "its containers are ready")
    (ready,) = [each for each in cluster.status("gated")["conditions"] if each["type"] == "Ready"]
    words = f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "ReadinessGatesNotReady", words)
    for status in ("True", "False", "True"):
        cluster.set_condition("gated", gate, status)
        node.until(functools.partial(_ready_is, cluster, "gated", status), f"Ready is {status}")
        assert cluster.condition("gated", gate) == status, "the controller's condition stays"
    assert not [event for event in node.events("gated") if "readinessGates" in event["message"]]
    assert cluster.status("gated")["containerStatuses"][0]["restartCount"] == 0


def test_a_pod_learns_its_place_from_the_labels_that_the_server_gives_it(cluster: Cluster, node: Agent) -> None:
    zone = "topology.kubernetes.io/zone"
    cluster.label_node(**{zone: "attic"})
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{zone}']"}}
    cluster.schedule(pod("placed", container(env=[{"name": "ZONE", "valueFrom": source}])))
    node.until(lambda: cluster.is_ready("placed"), "the pod is ready")
    assert node.inside("placed", "echo $ZONE") == "attic"
