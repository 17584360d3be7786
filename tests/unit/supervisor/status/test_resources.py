"""Resources of a whole pod in its status."""

from __future__ import annotations

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from supervisor.status.resources import StatusResources, pod_status_resources

NEVER_OBSERVED = RuntimePodStatus(uid="u", observed_at=0.0)


def asking(name: str, limits: dict[str, str] | None = None, **requests: str) -> Container:
    return Container(name=name, image="i", resources=ResourceRequirements(limits=limits or {}, requests=requests))


def pod_of(*containers: Container, **spec: object) -> Pod:
    return Pod(metadata=ObjectMeta(name="p", uid="u"), spec=PodSpec(containers=containers, **spec))  # type: ignore[arg-type]


def test_a_pod_of_containers_that_ask_for_nothing_has_none() -> None:
    assert pod_status_resources(pod_of(asking("a")), NEVER_OBSERVED, {}) == StatusResources()


def test_requests_limits_and_overhead_are_added_up_and_stay_as_they_were_written() -> None:
    pod = pod_of(
        asking("a", {"memory": "64Mi"}, cpu="50m", memory="32Mi"), asking("b", cpu="0.5"), overhead={"cpu": "10m"}
    )
    assert pod_status_resources(pod, NEVER_OBSERVED, {}) == StatusResources(
        allocated={"cpu": "560m", "memory": "32Mi"},
        actual=ResourceRequirements(limits={"memory": "64Mi"}, requests={"cpu": "560m", "memory": "32Mi"}),
    )


def test_a_container_that_has_less_than_it_was_allocated_counts_with_what_it_has() -> None:
    has = ResourceRequirements(requests={"cpu": "20m"})
    runs = RuntimeContainerStatus(id="1", name="a", attempt=0, state=ContainerState.RUNNING, resources=has)
    observed = RuntimePodStatus(uid="u", observed_at=0.0, containers=(runs,))
    found = pod_status_resources(pod_of(asking("a", cpu="50m"), asking("b", cpu="1")), observed, {})
    assert found.allocated == {"cpu": "1050m"}
    assert found.actual is not None
    assert found.actual.requests == {"cpu": "1020m"}


def test_resources_of_the_pod_itself_come_before_those_of_its_containers() -> None:
    own = ResourceRequirements(requests={"cpu": "2"})
    found = pod_status_resources(pod_of(asking("a", cpu="1", memory="1Gi"), resources=own), NEVER_OBSERVED, {})
    assert found.allocated == {"cpu": "2", "memory": "1Gi"}
