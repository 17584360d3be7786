"""The whole v1 PodStatus (pkg/kubelet/kubelet_pods.go, generateAPIPodStatus)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ipc.api import Container, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus
from ipc.clock import Instant, rfc3339
from ipc.messages import SyncResult
from ipc.runtime import RuntimePodStatus
from supervisor.status import conditions
from supervisor.status.containers import container_statuses
from supervisor.status.phase import get_phase
from supervisor.status.qos import compute_pod_qos

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})


class StatusInput(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a status follows from."""

    pod: Pod
    observed: RuntimePodStatus
    reasons: Mapping[str, SyncResult]
    previous: PodStatus | None
    host_ip: str = ""
    terminating: bool = False
    terminated: bool = False
    """Its containers are down for good."""
    failure: tuple[str, str] | None = None
    """Reason and message that make the pod Failed whatever its containers say (rejected, evicted)."""


def generate_pod_status(given: StatusInput, now: Instant) -> PodStatus:
    """Terminal phases are never left (PHASE-02), start time and transition times are kept from ``previous``."""
    pod, previous = given.pod, given.previous or PodStatus()
    statuses = _statuses(given, pod.spec.containers, previous.container_statuses)
    init = _statuses(given, pod.spec.init_containers, previous.init_container_statuses)
    if given.failure is not None:
        phase, (reason, message) = "Failed", given.failure
    else:
        has_initialized = conditions.any_regular_container_started(pod.spec, statuses)
        computed = get_phase(
            pod.spec, (*init, *statuses), pod_is_terminal=given.terminated, pod_has_initialized=has_initialized
        )
        phase = previous.phase if previous.phase in TERMINAL_PHASES else computed
        reason, message = (previous.reason, previous.message) if phase == previous.phase else ("", "")
    ips = next((sandbox.ips for sandbox in given.observed.sandboxes), ()) or tuple(ip.ip for ip in previous.pod_ips)
    if pod.spec.host_network and given.host_ip:
        ips = (given.host_ip,)
    status = PodStatus(
        observed_generation=pod.metadata.generation,
        phase=phase,  # type: ignore[arg-type]
        reason=reason,
        message=message,
        host_ip=given.host_ip,
        host_ips=(HostIP(ip=given.host_ip),) if given.host_ip else (),
        pod_ip=ips[0] if ips else "",
        pod_ips=tuple(PodIP(ip=ip) for ip in ips),
        start_time=_start_time(given.observed, previous, now),
        init_container_statuses=init,
        container_statuses=statuses,
        qos_class=compute_pod_qos(pod),  # type: ignore[arg-type]
    )
    every = (*init, *statuses)
    made = (
        conditions.ready_to_start_containers(pod, given.observed),
        conditions.initialized(pod.spec, every, phase),
        conditions.pod_ready(pod.spec, previous.conditions, every, phase),
        conditions.containers_ready(pod.spec, every, phase),
        conditions.scheduled(),
    )
    return msgspec.structs.replace(status, conditions=_with_transitions(made, previous, pod.metadata.generation, now))


def _statuses(
    given: StatusInput, containers: Sequence[Container], previous: Sequence[ContainerStatus]
) -> tuple[ContainerStatus, ...]:
    return container_statuses(
        given.pod, containers, given.observed, previous, given.reasons, deleting=given.terminating
    )


def _start_time(observed: RuntimePodStatus, previous: PodStatus, now: Instant) -> str:
    """When this agent or one before it first acted on the pod: the earliest known, whenever it becomes known."""
    known = [rfc3339(sandbox.created_at) for sandbox in observed.sandboxes if sandbox.created_at]
    return min([*known, previous.start_time or rfc3339(now.wall)])


def _with_transitions(
    made: tuple[PodCondition, ...], previous: PodStatus, generation: int, now: Instant
) -> tuple[PodCondition, ...]:
    before = {condition.type: condition for condition in previous.conditions}

    def stamp(condition: PodCondition) -> PodCondition:
        old = before.get(condition.type)
        same = old is not None and old.status == condition.status
        at = old.last_transition_time if old is not None and same else rfc3339(now.wall)
        return msgspec.structs.replace(condition, last_transition_time=at, observed_generation=generation)

    return tuple(stamp(condition) for condition in made)
