"""Ends of containers that the agent remembers, put on an observation that lacks them. Pure.

The runtime forgets an end when somebody removes what is left of its container, and when the host goes down before it
was noted. A container that ended for good must not begin again for that.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipc.kubecontainer.pod_status import (
    CONTAINER_STATUS_UNKNOWN,
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
)


def is_lost(container: RuntimeContainerStatus) -> bool:
    """Whether the container has ended, and the runtime cannot say how."""
    return container.state is ContainerState.EXITED and container.reason == CONTAINER_STATUS_UNKNOWN


def lacking(
    status: RuntimePodStatus, remembered: Iterable[RuntimeContainerStatus]
) -> tuple[RuntimeContainerStatus, ...]:
    """Remembered ends that the status lacks: the container is not in it, or how it ended is lost."""
    shown = {container.id: container for container in status.containers}
    return tuple(end for end in remembered if (seen := shown.get(end.id)) is None or is_lost(seen))


def with_remembered(status: RuntimePodStatus, remembered: Iterable[RuntimeContainerStatus]) -> RuntimePodStatus:
    """The status with the ends that it lacks."""
    lacked = {end.id: end for end in lacking(status, remembered)}
    if not lacked:
        return status
    shown = [_recalled(c, lacked.pop(c.id)) if c.id in lacked else c for c in status.containers]
    gone = [msgspec.structs.replace(end, is_remembered=True) for end in lacked.values()]
    newest = {end.name: end.attempt for end in sorted(gone, key=lambda end: end.attempt)}
    lost = {name: attempt for name, attempt in status.lost_attempts.items() if attempt > newest.get(name, -1)}
    return msgspec.structs.replace(status, lost_attempts=lost).with_containers((*shown, *gone))


def _recalled(seen: RuntimeContainerStatus, end: RuntimeContainerStatus) -> RuntimeContainerStatus:
    return msgspec.structs.replace(
        seen,
        exit_code=end.exit_code,
        finished_at=end.finished_at,
        oom_killed=end.oom_killed,
        error=end.error,
        reason=end.reason,
        message=end.message,
        message_cut=end.message_cut,
        has_fit_texts=end.has_fit_texts,
    )
