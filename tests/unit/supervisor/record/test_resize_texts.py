"""Words of the events of resizes, as upstream's."""

from __future__ import annotations

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.podresources.node_resources import NodeResources
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.resize import DEFERRED, resize_problem
from supervisor.record.resize_texts import resize_message


def asking(cpu: str) -> Pod:
    resources = ResourceRequirements(requests={"memory": "32Mi", "cpu": cpu})
    container = Container(name="c", image="i", resources=resources)
    return Pod(metadata=ObjectMeta(name="p", uid="u"), spec=PodSpec(containers=(container,)))


def test_amounts_stand_in_the_order_of_their_names() -> None:
    """Go writes a map so, whichever order the manifest has."""
    expected = '{"containers":[{"name":"c","resources":{"requests":{"cpu":"1990m","memory":"32Mi"}}}],"generation":2}'
    assert resize_message("started", asking("1990m"), 2) == f"Pod resize started: {expected}"


def test_one_that_waits_says_of_what_there_is_too_little() -> None:
    """The condition has the reason Deferred, the event that of admission."""
    node = NodeResources(allocatable={"cpu": "1", "memory": "1Gi"})
    others = NodeUsage()
    others.put(Pod(metadata=ObjectMeta(name="other", uid="o"), spec=asking("900m").spec))
    problem = resize_problem(asking("50m"), asking("200m"), others, node)
    assert problem is not None
    assert (problem.reason, problem.shortage) == (DEFERRED, "OutOfcpu")
