"""From the status that is acted on to the one that is reported (pkg/kubelet/status/status_manager.go)."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.safe_text import clipped
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.status import TERMINAL_PHASES, ContainerState, ContainerStatus, PodStatus

MAX_TERMINATION_MESSAGES_BYTES: Final = 12 * 1024
"""Bytes of one pod's messages, shared equally by its containers (MaxPodTerminationMessageLogLength)."""


def merge_pod_status(
    reported: PodStatus | None, status: PodStatus, *, could_have_running_containers: bool
) -> PodStatus:
    """A terminal phase is reported only when nothing of the pod can run any more (mergePodStatus).

    Conditions keep what they were generated with: they may say PodCompleted a moment before the phase does.
    """
    reported = reported or PodStatus(phase="Pending")
    if could_have_running_containers and status.phase in TERMINAL_PHASES and reported.phase not in TERMINAL_PHASES:
        return msgspec.structs.replace(status, phase=reported.phase, reason=reported.reason, message=reported.message)
    return status


def normalize_status(spec: PodSpec, status: PodStatus) -> PodStatus:
    """Termination messages cut to the pod's share of each container (normalizeStatus)."""
    limit_bytes = MAX_TERMINATION_MESSAGES_BYTES // max(sum(1 for _ in every_container(spec)), 1)

    def cut(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
        return tuple(_cut_status(each, limit_bytes) for each in statuses)

    return msgspec.structs.replace(
        status,
        init_container_statuses=cut(status.init_container_statuses),
        container_statuses=cut(status.container_statuses),
        ephemeral_container_statuses=cut(status.ephemeral_container_statuses),
    )


def _cut_status(status: ContainerStatus, limit_bytes: int) -> ContainerStatus:
    state, last_state = _cut_state(status.state, limit_bytes), _cut_state(status.last_state, limit_bytes)
    if state is status.state and last_state is status.last_state:
        return status
    return msgspec.structs.replace(status, state=state, last_state=last_state)


def _cut_state(state: ContainerState, limit_bytes: int) -> ContainerState:
    ended = state.terminated
    if ended is None or len(ended.message) * 4 <= limit_bytes:
        return state
    message = clipped(ended.message, limit_bytes)
    if message == ended.message:
        return state
    return ContainerState(terminated=msgspec.structs.replace(ended, message=message))
