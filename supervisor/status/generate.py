"""The whole v1 PodStatus (pkg/kubelet/kubelet_pods.go, generateAPIPodStatus)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from ipc.host.clock import Instant, rfc3339
from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import TERMINAL_PHASES, ContainerStatus, HostIP, PodCondition, PodIP, PodStatus
from ipc.k8s.kubecontainer.initialized import has_any_active_regular_container_started
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.k8s.kubecontainer.restart_policy import all_containers_could_restart, should_all_containers_restart
from ipc.k8s.network.pod_ips import sort_pod_ips
from ipc.k8s.podresources.qos import compute_pod_qos
from ipc.link.messages.pod_worker import SyncResult
from supervisor.status import conditions
from supervisor.status.active_deadline import DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE, past_active_deadline
from supervisor.status.containers import ContainerStatusInput, container_statuses
from supervisor.status.phase import get_phase
from supervisor.status.report import normalize_status
from supervisor.status.resources import StatusResources, pod_status_resources
from supervisor.status.termination import terminate_pod
from supervisor.status.transitions import with_observed_times, with_transition_times


class StatusInput(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of a status."""

    pod: Pod
    observed: RuntimePodStatus
    reasons: Mapping[str, SyncResult]
    """Container name -> why its last start failed."""
    previous: PodStatus | None
    host_ips: tuple[str, ...] = ()
    """At most one of each family."""
    probe_results: Mapping[str, ProbeResults] = {}
    """Container id -> what its probes said."""
    replaced: frozenset[str] = frozenset()
    """Names of containers that start again whatever their policy says: their definition changed."""
    was_observed_before: bool = True
    """``previous`` comes from an observation too. Otherwise it was only believed."""
    paused: bool = False
    """Somebody has paused the pod's processes."""
    terminating: bool = False
    terminated: bool = False
    """The pod's containers are down for good."""
    rejection: PodFailure | None = None
    """The pod was not admitted."""
    kill: PodFailure | None = None
    """The agent ends the pod: it was evicted, preempted, or the node goes down."""
    actuated: Mapping[str, ResourceRequirements] = {}
    """Resources that containers and sandboxes were given while they ran, by id."""
    resize_conditions: tuple[PodCondition, ...] = ()
    """With times and generations of their own."""
    steady_wall: float = math.inf
    """How late it is for its deadline, in epoch seconds, when the clock was set forward; otherwise now or later."""

    @property
    def was_observed(self) -> bool:
        """The pod was observed: an empty view means that nothing of it exists."""
        return self.observed.observed_at > 0.0


def generate_pod_status(given: StatusInput, now: Instant) -> PodStatus:
    """Terminal phases are never left (PHASE-02), start time and transition times are kept from ``previous``."""
    previous = given.previous or PodStatus()
    restarting_all = _restarting_all(given, previous)
    status = _with_containers(given, previous, restarting_all)
    status = msgspec.structs.replace(status, start_time=_start_time(given, previous, now))
    if given.rejection is not None and not _has_containers(status):
        return _rejected(status, given.rejection)
    status = _with_phase(given, status, previous, restarting_all, now)
    if given.terminated and given.rejection is None:
        status = terminate_pod(given.pod.spec, status)
    status = normalize_status(given.pod.spec, status)
    made = with_transition_times(
        _conditions(given, status, previous), previous.conditions, given.pod.metadata.generation, rfc3339(now.wall)
    )
    pending = () if status.phase in TERMINAL_PHASES else given.resize_conditions  # nothing comes of them any more
    status = msgspec.structs.replace(status, conditions=(*pending, *made))
    is_first_observation = given.was_observed and not given.was_observed_before
    return with_observed_times(status, given.observed) if is_first_observation else status


def _rejected(status: PodStatus, why: PodFailure) -> PodStatus:
    """Status of a pod of which nothing was ever here: without addresses and conditions (pkg/kubelet/kubelet.go,
    rejectPod)."""
    return PodStatus(
        phase="Failed",
        reason=why.reason,
        message=why.message,
        observed_generation=status.observed_generation,
        start_time=status.start_time,
        qos_class=status.qos_class,
    )


def _has_containers(status: PodStatus) -> bool:
    return bool(status.init_container_statuses or status.container_statuses or status.ephemeral_container_statuses)


def _with_containers(given: StatusInput, previous: PodStatus, restarting_all: bool) -> PodStatus:
    """All but phase, start time and conditions."""
    ips = _pod_ips(given, previous)
    statuses = _container_statuses(given, previous, restarting_all)
    resources = _resources(given, previous)
    return PodStatus(
        observed_generation=given.pod.metadata.generation,
        host_ip=_first(given.host_ips),
        host_ips=tuple(HostIP(ip=ip) for ip in given.host_ips),
        pod_ip=_first(ips),
        pod_ips=tuple(PodIP(ip=ip) for ip in ips),
        init_container_statuses=statuses[ContainerKind.INIT],
        container_statuses=statuses[ContainerKind.REGULAR],
        ephemeral_container_statuses=statuses[ContainerKind.EPHEMERAL],
        qos_class=compute_pod_qos(given.pod),  # type: ignore[arg-type]
        allocated_resources=resources.allocated,
        resources=resources.actual,
    )


def _resources(given: StatusInput, previous: PodStatus) -> StatusResources:
    """A pod that was rejected, or not observed yet, has none but those that it had before."""
    if given.rejection is not None or not given.was_observed:
        return StatusResources(allocated=previous.allocated_resources, actual=previous.resources)
    return pod_status_resources(given.pod, given.observed, given.actuated)


def _container_statuses(
    given: StatusInput, previous: PodStatus, restarting_all: bool
) -> Mapping[ContainerKind, tuple[ContainerStatus, ...]]:
    """A pod that was rejected has none but those that it had before (upstream: rejectPod gives it none)."""
    spec, observed = given.pod.spec, given.observed
    shared = ContainerStatusInput(
        pod=given.pod,
        observed=observed,
        reasons=given.reasons,
        probe_results=given.probe_results,
        replaced=given.replaced,
        terminating=given.terminating,
        restarting_all=restarting_all,
        actuated=given.actuated,
    )
    lists = {
        ContainerKind.INIT: (spec.init_containers, previous.init_container_statuses),
        ContainerKind.REGULAR: (spec.containers, previous.container_statuses),
        ContainerKind.EPHEMERAL: (spec.ephemeral_containers, previous.ephemeral_container_statuses),
    }
    if not given.was_observed:  # not even that it waits, or how often it was restarted
        return {kind: tuple(known) for kind, (_, known) in lists.items()}
    made = {kind: container_statuses(shared, kind, *of_kind) for kind, of_kind in lists.items()}
    if given.rejection is None:
        return made
    return {kind: tuple(status for status in of_kind if status.container_id) for kind, of_kind in made.items()}


def _restarting_all(given: StatusInput, previous: PodStatus) -> bool:
    before = conditions.is_true(conditions.ALL_CONTAINERS_RESTARTING, previous.conditions)
    return should_all_containers_restart(given.pod.spec, given.observed, before)


def _pod_ips(given: StatusInput, previous: PodStatus) -> tuple[str, ...]:
    """The newest sandbox's; a pod that has lost it keeps the ones it had. In the host's network they are the host's: as
    these are now, where upstream's stay what they were (generateAPIPodStatus)."""
    if given.pod.spec.host_network:
        return given.host_ips
    newest = next((sandbox.ips for sandbox in given.observed.sandboxes), ())
    return sort_pod_ips(newest, _first(given.host_ips)) or tuple(ip.ip for ip in previous.pod_ips)


def _first(ips: tuple[str, ...]) -> str:
    return ips[0] if ips else ""


def _with_phase(
    given: StatusInput, status: PodStatus, previous: PodStatus, restarting_all: bool, now: Instant
) -> PodStatus:
    """Reason and message belong to the phase and stay as long as it does (PHASE-03)."""
    if given.rejection is not None:
        return _failed(status, given.rejection.reason, given.rejection.message)
    spec = given.pod.spec
    phase = get_phase(
        spec,
        (*status.init_container_statuses, *status.container_statuses),
        pod_is_terminal=given.terminated,
        pod_has_initialized=has_any_active_regular_container_started(spec, given.observed),
        replaced=given.replaced,
        restarting_all=restarting_all and not given.terminating,
    )
    if previous.phase in TERMINAL_PHASES:
        phase = previous.phase
    elif given.kill is not None:
        return _failed(status, given.kill.reason, given.kill.message)
    elif given.was_observed and past_active_deadline(given.pod, status.start_time, _active_until(given, phase, now)):
        return _failed(status, DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE)
    if given.paused and phase == "Running":
        return msgspec.structs.replace(
            status, phase=phase, reason=conditions.POD_PAUSED, message=conditions.PAUSED_MESSAGE
        )
    is_kept = phase == previous.phase and previous.reason != conditions.POD_PAUSED
    kept = (previous.reason, previous.message) if is_kept else ("", "")
    return msgspec.structs.replace(status, phase=phase, reason=kept[0], message=kept[1])


def _failed(status: PodStatus, reason: str, message: str) -> PodStatus:
    return msgspec.structs.replace(status, phase="Failed", reason=reason, message=message)


def _active_until(given: StatusInput, phase: str, now: Instant) -> float:
    """When its last container ended, for a pod that is at its end."""
    ends = [container.finished_at for container in given.observed.containers if container.finished_at]
    return max(ends) if ends and phase in TERMINAL_PHASES else min(now.wall, given.steady_wall)


def _conditions(given: StatusInput, status: PodStatus, previous: PodStatus) -> tuple[PodCondition, ...]:
    spec, observed, phase, before = given.pod.spec, given.observed, status.phase, previous.conditions
    every = (*status.init_container_statuses, *status.container_statuses)
    made: tuple[PodCondition, ...] = (
        conditions.ready_to_start_containers(given.pod, observed),
        conditions.initialized(spec, every, phase, before),
        conditions.pod_ready(spec, before, every, phase),
        conditions.containers_ready(spec, every, phase),
        conditions.scheduled(),
    )
    restarting = conditions.ALL_CONTAINERS_RESTARTING
    if all_containers_could_restart(spec) or any(condition.type == restarting for condition in before):
        made = (*made, conditions.all_containers_restarting(spec, observed, before, phase))
    if given.kill is not None and given.kill.disruption and given.terminated:
        made = (*made, conditions.disruption_target(given.kill.disruption))
    return conditions.with_pause(made) if given.paused else made


def is_restarting_all(status: PodStatus | None) -> bool:
    """Whether the condition AllContainersRestarting is True."""
    return status is not None and conditions.is_true(conditions.ALL_CONTAINERS_RESTARTING, status.conditions)


def _start_time(given: StatusInput, previous: PodStatus, now: Instant) -> str:
    """When this agent or one before it first acted on the pod: the earliest known, whenever it becomes known."""
    sandboxes = given.observed.sandboxes
    known = [rfc3339(sandbox.created_at) for sandbox in sandboxes if sandbox.created_at]
    noted = [sandbox.active_since for sandbox in sandboxes if sandbox.active_since]
    kept = [rfc3339(given.observed.began_at)] if given.observed.began_at else []
    return min([*known, *noted, *kept, previous.start_time or rfc3339(now.wall)])
