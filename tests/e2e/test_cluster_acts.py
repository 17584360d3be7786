"""Acts on a pod of a cluster by its subresources: other resources, a container for debugging, an eviction, and a
deletion without grace. The server is told what became of each."""

from __future__ import annotations

from typing import Final

import pytest

from supervisor.admission.cgroups import delegated_controllers
from tests.e2e.agent import Agent
from tests.e2e.cluster import Cluster
from tests.e2e.manifests import Json, container, pod
from tests.support.servers.kube_api.requests import Request

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

IN_PLACE: Final = (delegated_controllers() or frozenset()) >= {"cpu", "memory"}
GRACEFUL: Final = "trap 'sleep 1; exit 3' TERM; while true; do sleep 3600 & wait $!; done"
"""Needs a moment for its end, and says that it had it."""
SMALL: Final[Json] = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "100m", "memory": "32Mi"}}
LARGE: Final[Json] = {"requests": {"cpu": "20m", "memory": "16Mi"}, "limits": {"cpu": "200m", "memory": "48Mi"}}
TOO_LARGE: Final[Json] = {"requests": {"cpu": "100000"}}


def main(cluster: Cluster, name: str) -> Json:
    """Status of a pod's container."""
    found: Json = (cluster.status(name).get("containerStatuses") or [{}])[0]
    return found


def conditions_told(cluster: Cluster, name: str) -> set[str]:
    """Types of every condition that was ever told of a pod."""
    told = [copy["status"].get("conditions", ()) for copy in cluster.copies(name)]
    return {each["type"] for conditions in told for each in conditions}


def test_resources_change_in_a_pod_that_runs(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("sized", container(resources=SMALL)))
    node.until(lambda: cluster.is_ready("sized"), "the pod is ready")
    before = main(cluster, "sized")
    assert (before["resources"], before["allocatedResources"]) == (SMALL, SMALL["requests"])
    wanted = cluster.resize("sized", main=LARGE)["metadata"]["generation"]
    node.until(
        lambda: main(cluster, "sized").get("resources") == LARGE and cluster.is_ready("sized"), "it has what it wants"
    )
    node.until(lambda: not cluster.condition("sized", "PodResizeInProgress"), "the resize is over")
    after = main(cluster, "sized")
    assert after["allocatedResources"] == LARGE["requests"]
    assert cluster.status("sized")["observedGeneration"] == wanted
    assert "PodResizeInProgress" in conditions_told(cluster, "sized")
    assert after["restartCount"] == (0 if IN_PLACE else 1)
    node.until(lambda: {"ResizeStarted", "ResizeCompleted"} <= cluster.events("sized"), "both events are told")


def test_resources_that_the_node_has_not_are_told_as_such(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("greedy", container(resources=SMALL)))
    node.until(lambda: cluster.is_ready("greedy"), "the pod is ready")
    wanted = cluster.resize("greedy", main=TOO_LARGE)["metadata"]["generation"]
    node.until(lambda: cluster.condition("greedy", "PodResizePending") == "True", "the resize waits")
    (pending,) = [each for each in cluster.status("greedy")["conditions"] if each["type"] == "PodResizePending"]
    assert (pending["reason"], pending["observedGeneration"]) == ("Infeasible", wanted)
    assert main(cluster, "greedy")["resources"] == SMALL, "it runs on with what it has"
    cluster.delete("greedy")
    node.until(lambda: "greedy" not in cluster.pods(), "the server has forgotten the pod")
    last = cluster.copies("greedy")[-1]["status"]
    assert last["phase"] == "Succeeded"
    assert "PodResizePending" not in {each["type"] for each in last["conditions"]}, "nothing waits for its end"


def test_a_container_for_debugging_joins_a_pod_that_runs(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("debugged"))
    node.until(lambda: cluster.is_ready("debugged"), "the pod is ready")
    before = main(cluster, "debugged")["containerID"]
    wanted = cluster.debug("debugged", container("dbg", "echo $((6 * 7))"))["metadata"]["generation"]

    def status() -> Json:
        return next(iter(cluster.status("debugged").get("ephemeralContainerStatuses", ())), {})

    node.until(lambda: "terminated" in status().get("state", {}), "the server knows that it has ended")
    assert status()["state"]["terminated"]["exitCode"] == 0
    assert node.output("debugged", "dbg").strip() == "42"
    assert cluster.status("debugged")["observedGeneration"] == wanted
    assert main(cluster, "debugged")["containerID"] == before


def test_an_eviction_ends_a_pod_with_its_grace(cluster: Cluster, node: Agent) -> None:
    manifest = pod("evicted", container(script=GRACEFUL), terminationGracePeriodSeconds=60)
    cluster.schedule(manifest)
    node.until(lambda: cluster.is_ready("evicted"), "the pod is ready")
    cluster.evict("evicted")
    node.until(lambda: "evicted" not in cluster.pods(), "the server has forgotten the pod")
    node.until_gone(["evicted"])
    last = cluster.copies("evicted")[-1]["status"]
    assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3, "it had the time that it needed"
    assert "DisruptionTarget" in {each["type"] for each in last["conditions"]}, "what the eviction has left stays"
    (deletion,) = _deletions(cluster, "evicted")
    assert deletion.json["gracePeriodSeconds"] == 0


def test_a_pod_that_the_server_has_forgotten_ends_without_a_word(cluster: Cluster, node: Agent) -> None:
    """``kubectl delete --force``: what runs is ended, and nothing more is told of a pod that is not there."""
    cluster.schedule(pod("forced", container(script=GRACEFUL), terminationGracePeriodSeconds=60))
    node.until(lambda: cluster.is_ready("forced"), "the pod is ready")
    told = len(cluster.patches("forced"))
    cluster.delete("forced", grace_s=0)
    assert "forced" not in cluster.pods()
    node.until_gone(["forced"])
    node.until(lambda: "Killing" in cluster.events("forced"), "the event of its end is there")
    assert _deletions(cluster, "forced") == []
    assert [patch.code for patch in cluster.patches("forced")[told:]] == []


def _deletions(cluster: Cluster, name: str) -> list[Request]:
    return cluster.requests(lambda request: request.verb == "DELETE" and request.path.endswith(f"/pods/{name}"))
