"""Resources of simulated pods, the edits that resize them, and the rules of resizes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec

from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.container import Container, ContainerResizePolicy, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.allocation import allocation_from_pod
from ipc.k8s.podresources.node_resources import NodeResources, PodCgroups
from ipc.k8s.podresources.pod_requests import CPU, MEMORY, amount, pod_requests
from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.base import EventReport
from ipc.link.messages.pod_worker import SyncPod, WorkType
from tests.fakes.podman import FakeContainer
from tests.sim.watch import every_status, name_of

NODE: Final = NodeResources(
    allocatable={"cpu": "5", "memory": "8Gi"},
    controllers=frozenset({"cpu", "memory"}),
    pod_cgroups=PodCgroups(),
    pods_limit={"cpu": "5", "memory": "8Gi"},
)
REQUESTS: Final = ("100m", "100m", "200m", "500m", "1500m", "3")
LIMITS: Final = ("3", "4")
MEMORY_LIMITS: Final = ("64Mi", "128Mi", "256Mi")
PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
_PERIODS_PER_S: Final = 10

_C = TypeVar("_C", bound=Container)


class Sizes:
    """Random resources. Every pod is Burstable, whatever it is given: a resize never needs other containers for its
    class."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def sized(self, pod: Pod) -> Pod:
        """All containers of a pod with resources and policies of their own."""
        return self._with(pod, self._sized)

    def edited(self, before: Pod, after: Pod) -> Pod:
        """Edition of a pod; of some edits nothing is left but other resources."""
        return self._with(before, self._resized) if self._rng.random() < 0.3 else after

    def _with(self, pod: Pod, change: object) -> Pod:
        assert callable(change)
        spec = msgspec.structs.replace(
            pod.spec,
            containers=tuple(change(container) for container in pod.spec.containers),
            init_containers=tuple(change(container) for container in pod.spec.init_containers),
        )
        return msgspec.structs.replace(pod, spec=spec)

    def _sized(self, container: Container) -> Container:
        policies = (
            ContainerResizePolicy(resource_name=name, restart_policy="RestartContainer")
            for name in (CPU, MEMORY)
            if self._rng.random() < 0.15
        )
        return msgspec.structs.replace(container, resources=self._resources(), resize_policy=tuple(policies))

    def _resized(self, container: Container) -> Container:
        return msgspec.structs.replace(container, resources=self._resources())

    def _resources(self) -> ResourceRequirements:
        pick = self._rng.choice
        return ResourceRequirements(
            requests={CPU: pick(REQUESTS), MEMORY: "16Mi"}, limits={CPU: pick(LIMITS), MEMORY: pick(MEMORY_LIMITS)}
        )


class SentAllocations:
    """Resources of pods and of their containers as workers were told them, by whatever agent. None goes back to older
    ones, unless its source has stated those again: it would restart containers that have the newer."""

    def __init__(self) -> None:
        self._newest: dict[str, dict[str, ResourceRequirements | None]] = {}
        """By uid and container; the pod's own have the empty name."""
        self._older: dict[str, dict[str, list[ResourceRequirements | None]]] = {}

    def stated(self, pod: Pod) -> None:
        """The pod is stated anew, perhaps with other resources."""
        older = self._older.get(pod.metadata.uid, {})
        for name, given in _allocated(pod).items():
            older[name] = [each for each in older.get(name, ()) if each != given]

    def wrong(self, sync: SyncPod) -> str:
        """Says what is wrong with a sync that goes out."""
        if sync.kind is not WorkType.SYNC or sync.pod is None:
            return ""
        newest, older = self._newest.setdefault(sync.uid, {}), self._older.setdefault(sync.uid, {})
        for name, given in _allocated(sync.pod).items():
            if given in older.get(name, ()):
                return f"a sync of {sync.uid[:8]} goes back to resources that it had before"
            if newest.get(name, given) != given:
                older.setdefault(name, []).append(newest[name])
            newest[name] = given
        return ""

    def gone(self, uid: str) -> None:
        """Nothing is left of that pod."""
        self._newest.pop(uid, None)
        self._older.pop(uid, None)


def _allocated(pod: Pod) -> dict[str, ResourceRequirements | None]:
    given = allocation_from_pod(pod)
    return {"": given.pod_level_resources, **given.container_resources}


def never_policies(pod: Pod) -> Pod:
    """A pod that restarts nothing may not ask for restarts (validateResizePolicy)."""
    if pod.spec.restart_policy != "Never":
        return pod

    def plain(container: _C) -> _C:
        return msgspec.structs.replace(container, resize_policy=())

    spec = msgspec.structs.replace(
        pod.spec,
        containers=tuple(map(plain, pod.spec.containers)),
        init_containers=tuple(map(plain, pod.spec.init_containers)),
    )
    return msgspec.structs.replace(pod, spec=spec)


def unasked_restart(report: EventReport, pod: Pod | None) -> str:
    """A container that is killed for its resources has asked for it; says what is wrong."""
    words = report.message.split()
    if report.reason != "Killing" or not report.message.endswith("resize requires restart") or pod is None:
        return ""
    found = find_container(pod.spec, words[1])
    if found is not None and any(each.restart_policy == "RestartContainer" for each in found.container.resize_policy):
        return ""
    return f"{words[1]} of {report.uid[:8]} is restarted for a resize, and did not ask for it"


def overcommitted(pods: Iterable[Pod]) -> str:
    """Allocated resources are never above what is allocatable; says what is wrong."""
    totals = {CPU: 0, MEMORY: 0}
    for pod in pods:
        for name, asked in pod_requests(pod).items():
            totals[name] = totals.get(name, 0) + asked
    beyond = [name for name in (CPU, MEMORY) if totals[name] > amount(NODE.allocatable, name)]
    return f"allocated are {totals}, beyond {dict(NODE.allocatable)}" if beyond else ""


def wrong_limits(pod: Pod, told: PodChanged, alive: dict[str, FakeContainer]) -> Iterator[str]:
    """In quiet times what runs has the limits that are told of it, and those are its manifest's unless that is
    pending."""
    wanted = {container.name: container for container in (*pod.spec.init_containers, *pod.spec.containers)}
    conditions = {condition.type for condition in told.status.conditions}
    is_pending = PENDING in conditions
    if IN_PROGRESS in conditions:
        yield "its resize comes to no end"
    for status in every_status(told):
        container = alive.get(status.name)
        if container is None or status.name not in wanted or status.resources is None:
            continue
        if _limits(container) != _told(status.resources):
            yield f"{name_of(container)} has {_limits(container)}, and is said to have {_told(status.resources)}"
        if not is_pending and _told(status.resources) != _told(wanted[status.name].resources):
            yield f"{name_of(container)} has {_told(status.resources)}, and nothing is pending"


def _limits(container: FakeContainer) -> tuple[int, int]:
    cpu, memory = container.resources.get("cpu", {}), container.resources.get("memory", {})
    return cpu.get("quota", 0), memory.get("limit", 0)


def _told(resources: ResourceRequirements) -> tuple[int, int]:
    """As microseconds of a period of 100 ms, and bytes."""
    return amount(resources.limits, CPU) * 1000 // _PERIODS_PER_S, amount(resources.limits, MEMORY)
