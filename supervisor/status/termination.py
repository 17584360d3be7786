"""Status of a pod whose containers are down for good (pkg/kubelet/status/status_manager.go, TerminatePod)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.status import TERMINAL_PHASES, ContainerStatus, PodStatus
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from supervisor.status import container_states as states


def terminate_pod(spec: PodSpec, status: PodStatus) -> PodStatus:
    """Terminal status of a pod: a container that did not show how it ended counts as failed, and so does the pod, so
    that nobody takes it for a success."""
    regular, inits = status.container_statuses, status.init_container_statuses
    begun = _begun(inits)
    return msgspec.structs.replace(
        status,
        phase=status.phase if status.phase in TERMINAL_PHASES else "Failed",
        container_statuses=_ended(regular) if _has_initialized(spec, status) else regular,
        init_container_statuses=(*_ended(inits[:begun]), *inits[begun:]),
    )


def _ended(statuses: Sequence[ContainerStatus]) -> tuple[ContainerStatus, ...]:
    unknown = states.ended_unseen(states.STATUS_UNKNOWN, states.LOST_WHEN_TERMINATED)
    return tuple(
        status
        if status.state.terminated is not None
        else msgspec.structs.replace(status, state=unknown, ready=False, started=False)
        for status in statuses
    )


def _has_initialized(spec: PodSpec, status: PodStatus) -> bool:
    """Did any regular container have its chance (hasPodInitialized)?"""
    if not spec.init_containers or any(map(_has_begun, status.container_statuses)):
        return True
    if not status.init_container_statuses:
        return False
    last = status.init_container_statuses[-1]
    if is_restartable_init(spec.init_containers[-1]):
        return last.state.running is not None and bool(last.started)
    return any(end is not None and end.exit_code == 0 for end in (last.state.terminated, last.last_state.terminated))


def _begun(statuses: Sequence[ContainerStatus]) -> int:
    """How many init containers: up to the last that has begun, and at least one (initializedContainers)."""
    begun = [place for place, status in enumerate(statuses, 1) if _has_begun(status)]
    return max(begun, default=1)


def _has_begun(status: ContainerStatus) -> bool:
    return status.state.waiting is None or status.last_state.terminated is not None
