"""Whether containers that run are given other resources in place or by another container. Pure.

Mirrors computePodResizeAction (pkg/kubelet/kuberuntime/kuberuntime_manager.go). Different on purpose: what cannot be
changed in place, on this host or by validatePodResize, restarts its container, because an edited manifest is an update.
A worker decides by it; the master says so, and knows that what has ended for it starts again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.validation.pods.resize import validate_pod_resize
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.podresources.allocation import (
    NO_RESOURCES,
    RESIZABLE,
    PodResourceInfo,
    ResourceAmounts,
    resizable_part,
    resource_amounts,
    same_compute,
    update_pod_from_allocation,
    with_amounts_of,
)
from ipc.k8s.podresources.pod_requests import CPU, MEMORY

RESTART_CONTAINER: Final = "RestartContainer"
NO_CONTROLLER: Final = "no such cgroup controller is delegated to this user"

Actuated = Mapping[str, ResourceRequirements]
"""Resources that containers and sandboxes were given while they ran, by id: not those that they were made with."""


class ContainerUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """A running container that is to have other resources (containerToUpdateInfo)."""

    id: str
    name: str
    pid: int = 0
    current: ResourceAmounts
    desired: ResourceAmounts
    resources: ResourceRequirements = NO_RESOURCES
    """The container's own resources, afterwards."""


def changed_resources(current: ResourceAmounts, desired: ResourceAmounts) -> frozenset[str]:
    """Names of the resources of which the two differ."""
    return frozenset(_changed(current, desired))


def _changed(current: ResourceAmounts, desired: ResourceAmounts) -> Iterator[str]:
    if (current.cpu_request, current.cpu_limit) != (desired.cpu_request, desired.cpu_limit):
        yield CPU
    if (current.memory_request, current.memory_limit) != (desired.memory_request, desired.memory_limit):
        yield MEMORY


def restarting_resources(container: Container) -> frozenset[str]:
    """Names of the resources of which a change restarts the container, because it says so."""
    return frozenset(each.resource_name for each in container.resize_policy if each.restart_policy == RESTART_CONTAINER)


def why_not_in_place(before: Pod, after: Pod, controllers: frozenset[str]) -> dict[str, str]:
    """Reasons why changes need new containers, by resource; one that can be changed in place is absent."""
    error = next(iter(validate_pod_resize(before, after)), None)
    if error is not None:
        return dict.fromkeys(RESIZABLE, str(error))
    return {name: NO_CONTROLLER for name in RESIZABLE if name not in controllers}


class ResizeJudge(msgspec.Struct, frozen=True, kw_only=True):
    """The facts by which the resize of each container of one pod is judged."""

    pod: Pod
    """With the resources that it is to have."""
    before: Pod
    """With the resources that it has."""
    actuated: Actuated = {}
    in_place: frozenset[str] = frozenset()
    """Resources that can be changed in place."""

    def update_of(self, container: Container, made: RuntimeContainerStatus) -> ContainerUpdate | None:
        """The change of that container's resources; None when there is none, or when they are not known."""
        given = resources_given(made, self.actuated)
        if given is None:
            return None
        current = resource_amounts(self.before.spec.resources, given)
        desired = resource_amounts(self.pod.spec.resources, container.resources)
        if current == desired:
            return None
        return ContainerUpdate(
            id=made.id, name=made.name, pid=made.pid, current=current, desired=desired, resources=container.resources
        )

    def needs_restart(self, container: Container, update: ContainerUpdate) -> bool:
        """Whether another container has to be made for it."""
        changed = changed_resources(update.current, update.desired)
        return not changed <= self.in_place or bool(changed & restarting_resources(container))

    def is_replaced(self, container: Container, made: RuntimeContainerStatus) -> bool:
        """Whether the container's resources are such that it is replaced."""
        update = self.update_of(container, made)
        return update is not None and self.needs_restart(container, update)

    @property
    def is_pod_level(self) -> bool:
        """Whether resources of the pod as a whole change."""
        return not same_compute(self.before.spec.resources, self.pod.spec.resources)

    @property
    def needs_sandbox(self) -> bool:
        """Whether they need another sandbox."""
        old, new = (resource_amounts(None, of.spec.resources or NO_RESOURCES) for of in (self.before, self.pod))
        return not changed_resources(old, new) <= self.in_place


def resize_judge(pod: Pod, observed: RuntimePodStatus, actuated: Actuated, controllers: frozenset[str]) -> ResizeJudge:
    """The judge of a pod with the resources that it was allocated, as it was observed. ``controllers``: those that are
    delegated to this user."""
    before = update_pod_from_allocation(pod, resources_now(pod, observed, actuated))
    problems = why_not_in_place(before, pod, controllers)
    return ResizeJudge(pod=pod, before=before, actuated=actuated, in_place=frozenset(RESIZABLE) - problems.keys())


def resources_given(made: RuntimeContainerStatus, actuated: Actuated) -> ResourceRequirements | None:
    """Cpu and memory that a container has been given; None when it does not say."""
    return actuated.get(made.id, made.resources)


def is_resize_in_progress(pod: Pod, observed: RuntimePodStatus, actuated: Actuated) -> bool:
    """Whether something that runs has other resources than it was allocated (kuberuntime_manager.go,
    IsPodResizeInProgress). What does not say what it has, has what it was allocated."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    pairs = ((container.resources, _running(observed, container.name)) for container in containers)
    if any(made is not None and not _has(wanted, resources_given(made, actuated)) for wanted, made in pairs):
        return True
    sandbox = next(iter(observed.sandboxes), None)
    return sandbox is not None and not _has(pod.spec.resources, actuated.get(sandbox.id, sandbox.resources))


def _has(wanted: ResourceRequirements | None, given: ResourceRequirements | None) -> bool:
    return given is None or same_compute(wanted, given)


def _running(observed: RuntimePodStatus, name: str) -> RuntimeContainerStatus | None:
    newest = observed.newest(name)
    return newest if newest is not None and newest.state is ContainerState.RUNNING else None


def resources_now(pod: Pod, observed: RuntimePodStatus, actuated: Actuated) -> PodResourceInfo:
    """The resources of each container: those it runs with, else those it is to have."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    running = ((container, _running(observed, container.name)) for container in containers)
    return PodResourceInfo(
        pod_level_resources=_pod_level_now(pod, observed, actuated),
        container_resources={
            container.name: with_amounts_of(container.resources, resources_given(made, actuated))
            for container, made in running
            if made is not None
        },
    )


def _pod_level_now(pod: Pod, observed: RuntimePodStatus, actuated: Actuated) -> ResourceRequirements | None:
    wanted, sandbox = pod.spec.resources, next(iter(observed.sandboxes), None)
    given = actuated.get(sandbox.id, sandbox.resources) if sandbox is not None else None
    if given is None or same_compute(resizable_part(wanted), given):
        return wanted
    now = with_amounts_of(wanted or NO_RESOURCES, given)
    return now if now.limits or now.requests else None
