"""Runs of containers that the agent remembers, put on an observation that lacks them. Pure.

The runtime forgets an end when somebody removes what is left of its container, when the host goes down before it was
noted, and with all else when it keeps nothing over a reboot. A container that ended for good must not begin again for
that.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipc.k8s.kubecontainer.pod_status import (
    CONTAINER_STATUS_UNKNOWN,
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
)

Runs = tuple[RuntimeContainerStatus, ...]
"""The newest runs of each container of a pod. One that went on when it was last seen says how it has ended if it is not
there any more, but not when (`is_open`)."""


class RememberedPod(msgspec.Struct, frozen=True, omit_defaults=True):
    """Memory of one pod."""

    runs: Runs = ()
    began_at: float = 0.0
    """When its first sandbox was made, in epoch seconds; 0.0 when nobody has seen one."""

    def is_empty(self) -> bool:
        """Whether there is nothing to remember."""
        return not self.runs and not self.began_at


NO_RECORD = RememberedPod()


def is_lost(container: RuntimeContainerStatus) -> bool:
    """Whether the container has ended, and the runtime cannot say how."""
    return container.state is ContainerState.EXITED and container.reason == CONTAINER_STATUS_UNKNOWN


def is_open(run: RuntimeContainerStatus) -> bool:
    """Whether a remembered run went on when it was last seen."""
    return is_lost(run) and not run.finished_at


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


def with_beginning(status: RuntimePodStatus, began_at: float) -> RuntimePodStatus:
    """The status with the date of the first sandbox, if it shows none that is as old."""
    if not began_at or any(sandbox.created_at <= began_at for sandbox in status.sandboxes):
        return status
    return msgspec.structs.replace(status, began_at=began_at)


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
