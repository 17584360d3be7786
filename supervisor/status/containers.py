"""Container statuses out of observed containers (pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ipc.api import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
)
from ipc.clock import rfc3339
from ipc.messages import SyncResult
from ipc.restart_policy import should_container_be_restarted
from ipc.runtime import ContainerState as Observed
from ipc.runtime import RuntimeContainerStatus, RuntimePodStatus

CONTAINER_CREATING = "ContainerCreating"
POD_INITIALIZING = "PodInitializing"
STATUS_UNKNOWN = "ContainerStatusUnknown"
UNKNOWN_EXIT_CODE = 137


def container_statuses(
    pod: Pod,
    containers: Sequence[Container],
    status: RuntimePodStatus,
    previous: Sequence[ContainerStatus],
    reasons: Mapping[str, SyncResult],
    *,
    deleting: bool = False,
) -> tuple[ContainerStatus, ...]:
    """One status per container of the spec, sorted by name as upstream's normalizeStatus does."""
    before = {old.name: old for old in previous}
    made = [
        _container_status(pod, c, status, before.get(c.name), reasons.get(c.name), deleting) for c in containers
    ]
    return tuple(sorted(made, key=lambda made_status: made_status.name))


def _container_status(
    pod: Pod,
    container: Container,
    status: RuntimePodStatus,
    old: ContainerStatus | None,
    reason: SyncResult | None,
    deleting: bool,
) -> ContainerStatus:
    seen = [c for c in status.containers if c.name == container.name]
    result = _seen(seen, old) if seen else _unseen(pod, container, status, old)
    if reason is not None and should_container_be_restarted(
        container, pod.spec, seen[0] if seen else None, deleting=deleting
    ):
        result = _waiting_because(result, reason)
    running = result.state.running is not None
    return msgspec.structs.replace(result, ready=running, started=running)


def _unseen(pod: Pod, container: Container, status: RuntimePodStatus, old: ContainerStatus | None) -> ContainerStatus:
    """Never made, or made and gone from the runtime."""
    waiting = POD_INITIALIZING if pod.spec.init_containers else CONTAINER_CREATING
    fresh = ContainerState(waiting=ContainerStateWaiting(reason=waiting))
    if old is None:
        return ContainerStatus(name=container.name, image=container.image, state=fresh)
    if old.state.terminated is not None:
        return old
    if old.state.running is None:
        return msgspec.structs.replace(old, state=fresh)
    lost = ContainerState(
        terminated=ContainerStateTerminated(
            reason=STATUS_UNKNOWN,
            message="The container could not be located when the pod was deleted.  The container used to be Running",
            exit_code=UNKNOWN_EXIT_CODE,
            started_at=old.state.running.started_at,
        )
    )
    return msgspec.structs.replace(old, state=fresh, last_state=lost)


def _seen(seen: Sequence[RuntimeContainerStatus], old: ContainerStatus | None) -> ContainerStatus:
    newest = seen[0]
    old = old or ContainerStatus(name=newest.name)
    replaced = old.state.terminated is not None and old.container_id != _container_id(newest)
    return ContainerStatus(
        name=newest.name,
        state=_state(newest),
        last_state=_ended_state(seen[1]) if len(seen) > 1 else old.state if replaced else old.last_state,
        restart_count=max(newest.attempt, old.restart_count + replaced),  # a count never falls
        image=newest.image,
        image_id=newest.image_id,
        container_id=_container_id(newest),
    )


def _container_id(container: RuntimeContainerStatus) -> str:
    return f"podman://{container.id}" if container.id else ""


def _state(container: RuntimeContainerStatus) -> ContainerState:
    if container.state is Observed.RUNNING:
        return ContainerState(running=ContainerStateRunning(started_at=_stamp(container.started_at)))
    if container.state is Observed.CREATED:
        return ContainerState(waiting=ContainerStateWaiting(reason=CONTAINER_CREATING))
    return _ended_state(container)


def _ended_state(container: RuntimeContainerStatus) -> ContainerState:
    if container.state is Observed.RUNNING:
        return ContainerState()
    unknown = container.state is Observed.UNKNOWN
    return ContainerState(
        terminated=ContainerStateTerminated(
            exit_code=UNKNOWN_EXIT_CODE if unknown else container.exit_code,
            reason=STATUS_UNKNOWN if unknown else _end_reason(container),
            message=container.error,
            started_at=_stamp(container.started_at),
            finished_at=_stamp(container.finished_at),
            container_id=_container_id(container),
        )
    )


def _end_reason(container: RuntimeContainerStatus) -> str:
    """Podman knows no reason: the one that a CRI runtime would give."""
    if container.oom_killed:
        return "OOMKilled"
    if not container.started_at:
        return "ContainerCannotRun"
    return "Completed" if container.exit_code == 0 else "Error"


def _waiting_because(status: ContainerStatus, reason: SyncResult) -> ContainerStatus:
    """It should run, its last start failed: waiting, and the end that it had becomes the last state."""
    return msgspec.structs.replace(
        status,
        state=ContainerState(waiting=ContainerStateWaiting(reason=reason.error, message=reason.message)),
        last_state=status.state if status.state.terminated is not None else status.last_state,
    )


def _stamp(wall: float) -> str | None:
    return rfc3339(wall) if wall else None
