"""The pod conditions that the kubelet owns (pkg/kubelet/status/generate.go)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.status import ContainerStatus, PodCondition
from ipc.k8s.kubecontainer.initialized import has_any_regular_container_started
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init, should_all_containers_restart

POD_SCHEDULED = "PodScheduled"
POD_READY_TO_START_CONTAINERS = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
CONTAINERS_READY = "ContainersReady"
READY = "Ready"
ALL_CONTAINERS_RESTARTING = "AllContainersRestarting"
DISRUPTION_TARGET = "DisruptionTarget"
PAUSED = "rootlet.dev/Paused"
"""Our own: somebody has paused the pod. It is there while that is so."""
POD_PAUSED = "Paused"
"""Reason of a pod that runs and is paused, and of its conditions."""
PAUSED_MESSAGE: Final = "somebody has paused the pod: its processes get no CPU, and its probes do not run"
TERMINATION_BY_KUBELET = "TerminationByKubelet"
"""Reason of DisruptionTarget (k8s.io/api/core/v1, PodReasonTerminationByKubelet)."""

_WHEN_TERMINAL: Final = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
"""Phase -> reason of every condition that is False because of it."""


def _condition(type_: str, ok: bool, reason: str = "", message: str = "") -> PodCondition:
    return PodCondition(type=type_, status="True" if ok else "False", reason=reason, message=message)


def paused() -> PodCondition:
    """Condition of a pod that somebody has paused."""
    return _condition(PAUSED, True, POD_PAUSED, PAUSED_MESSAGE)


def with_pause(made: Iterable[PodCondition]) -> tuple[PodCondition, ...]:
    """Conditions of a paused pod, which answers nobody, whatever its probes have found before."""
    unready = {type: _condition(type, False, POD_PAUSED, PAUSED_MESSAGE) for type in (CONTAINERS_READY, READY)}
    return (*(unready.get(condition.type, condition) for condition in made), paused())


def containers_ready(spec: PodSpec, statuses: Sequence[ContainerStatus] | None, phase: str) -> PodCondition:
    """GenerateContainersReadyCondition; ``statuses`` None means that nothing is known yet."""
    if statuses is None:
        return _condition(CONTAINERS_READY, False, "UnknownContainerStatuses")
    by_name = {status.name: status for status in statuses}
    wanted = [c.name for c in spec.init_containers if is_restartable_init(c)] + [c.name for c in spec.containers]
    unknown = [name for name in wanted if name not in by_name]
    unready = [name for name in wanted if name in by_name and not by_name[name].ready]
    if phase == "Failed" or (phase == "Succeeded" and not unknown):
        return false_for_good(CONTAINERS_READY, phase)
    message = _name_lists(("unknown", unknown), ("unready", unready))
    return _condition(CONTAINERS_READY, not message, "ContainersNotReady" if message else "", message)


def false_for_good(type_: str, phase: str) -> PodCondition:
    """The condition of a terminal pod (generatePodReadyConditionForTerminalPhase and its sibling)."""
    return _condition(type_, False, _WHEN_TERMINAL[phase])


def pod_ready(
    spec: PodSpec, conditions: Sequence[PodCondition], statuses: Sequence[ContainerStatus] | None, phase: str
) -> PodCondition:
    """GeneratePodReadyCondition: containers ready and every readiness gate True."""
    containers = containers_ready(spec, statuses, phase)
    if containers.status != "True":
        return _condition(READY, False, containers.reason, containers.message)
    by_type = {condition.type: condition for condition in conditions}
    faults = []
    for gate in spec.readiness_gates:
        condition = by_type.get(gate.condition_type)
        if condition is None:
            faults.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif condition.status != "True":
            text = f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {condition.status}'
            faults.append(text)
    return _condition(READY, not faults, "ReadinessGatesNotReady" if faults else "", ", ".join(faults))


def initialized(
    spec: PodSpec, statuses: Sequence[ContainerStatus] | None, phase: str, previous: Iterable[PodCondition] = ()
) -> PodCondition:
    """GeneratePodInitializedCondition. Once it was True, init containers that run again do not make it False."""
    if statuses is None and spec.init_containers:
        return _condition(INITIALIZED, False, "UnknownContainerStatuses")
    by_name = {status.name: status for status in statuses or ()}
    unknown = [c.name for c in spec.init_containers if c.name not in by_name]
    incomplete = [c.name for c in spec.init_containers if c.name in by_name and not _is_done(c, by_name[c.name])]
    if phase == "Succeeded" and not unknown:
        return _condition(INITIALIZED, True, "PodCompleted")
    if has_any_regular_container_started(spec, statuses or ()) or is_true(INITIALIZED, previous):
        return _condition(INITIALIZED, True)
    message = _name_lists(("unknown", unknown), ("incomplete", incomplete))
    return _condition(INITIALIZED, not message, "ContainersNotInitialized" if message else "", message)


def _is_done(init: Container, status: ContainerStatus) -> bool:
    """The next init container may start."""
    return bool(status.started) if is_restartable_init(init) else status.ready


def is_true(type_: str, conditions: Iterable[PodCondition]) -> bool:
    """There is a condition of that type, and it is True."""
    return any(condition.type == type_ and condition.status == "True" for condition in conditions)


def all_containers_restarting(
    spec: PodSpec, observed: RuntimePodStatus, previous: Iterable[PodCondition], phase: str
) -> PodCondition:
    """GenerateAllContainersRestartingCondition: from the exit that a rule names until every container is removed."""
    if phase in _WHEN_TERMINAL:
        return false_for_good(ALL_CONTAINERS_RESTARTING, phase)
    before = is_true(ALL_CONTAINERS_RESTARTING, previous)
    cleaned_up = not any(observed.newest(c.name) for c in (*spec.init_containers, *spec.containers))
    if cleaned_up or not should_all_containers_restart(spec, observed, before):
        return _condition(ALL_CONTAINERS_RESTARTING, False)
    reason, message = "RestartAllContainersStarted", "container exited with restart policy rule"
    return _condition(ALL_CONTAINERS_RESTARTING, True, reason, message)


def ready_to_start_containers(pod: Pod, status: RuntimePodStatus) -> PodCondition:
    """GeneratePodReadyToStartContainersCondition: exactly one ready sandbox, the newest, in the right network mode."""
    ready = [sandbox for sandbox in status.sandboxes if sandbox.state is SandboxState.READY]
    ok = len(ready) == 1 and status.sandboxes[0] is ready[0] and ready[0].host_network == pod.spec.host_network
    return _condition(POD_READY_TO_START_CONTAINERS, ok)


def disruption_target(message: str) -> PodCondition:
    """Condition of a pod that the agent has ended: told with its last phase, not earlier (status_manager.go,
    mergePodStatus)."""
    return _condition(DISRUPTION_TARGET, True, TERMINATION_BY_KUBELET, message)


def scheduled() -> PodCondition:
    """A pod that is here was scheduled."""
    return _condition(POD_SCHEDULED, True)


def _name_lists(*groups: tuple[str, list[str]]) -> str:
    return ", ".join(f"containers with {what} status: [{' '.join(names)}]" for what, names in groups if names)
