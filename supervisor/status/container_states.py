"""The state of one observed container in v1's words (pkg/kubelet/kubelet_pods.go, convertContainerStatus)."""

from __future__ import annotations

from typing import Final

from ipc.host.clock import rfc3339
from ipc.k8s.api.v1.status import ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting
from ipc.k8s.kubecontainer.pod_status import CONTAINER_STATUS_UNKNOWN, UNKNOWN_EXIT_CODE, RuntimeContainerStatus
from ipc.k8s.kubecontainer.pod_status import ContainerState as Observed

CONTAINER_CREATING: Final = "ContainerCreating"
POD_INITIALIZING: Final = "PodInitializing"
STATUS_UNKNOWN: Final = CONTAINER_STATUS_UNKNOWN
RESTARTING_ALL_CONTAINERS: Final = "RestartingAllContainers"
COMPLETED: Final = "Completed"

LOST_WHEN_TERMINATED: Final = "The container could not be located when the pod was terminated"
LOST_WHEN_DELETED: Final = (
    "The container could not be located when the pod was deleted.  The container used to be Running"
)
REMOVED_TO_RESTART: Final = "The container is removed because RestartAllContainers in place"
INIT_LONG_GONE: Final = (
    "Unable to get init container status from container runtime and pod has been initialized, "
    "treat it as exited normally"
)


def waiting(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))


def ended_unseen(
    reason: str, message: str, started_at: str | None = None, exit_code: int = UNKNOWN_EXIT_CODE
) -> ContainerState:
    """An end that is inferred, not observed."""
    return ContainerState(
        terminated=ContainerStateTerminated(exit_code=exit_code, reason=reason, message=message, started_at=started_at)
    )


def observed_state(container: RuntimeContainerStatus) -> ContainerState:
    """The state of a container that was observed; one in an unknown state is waiting, without a reason."""
    if container.state is Observed.RUNNING:
        return ContainerState(running=ContainerStateRunning(started_at=stamp(container.started_at)))
    if container.state is Observed.CREATED:
        return waiting(CONTAINER_CREATING)
    return ended_state(container) if container.state is Observed.EXITED else waiting("")


def ended_state(container: RuntimeContainerStatus) -> ContainerState:
    """How an exited container ended; a state that says nothing for any other."""
    if container.state is not Observed.EXITED:
        return ContainerState()
    return ContainerState(
        terminated=ContainerStateTerminated(
            exit_code=container.exit_code,
            reason=_end_reason(container),
            message=": ".join(part for part in (container.error, container.message) if part),
            started_at=stamp(container.started_at),
            finished_at=stamp(container.finished_at),
            container_id=container_id(container),
        )
    )


def container_id(container: RuntimeContainerStatus) -> str:
    return f"podman://{container.id}" if container.id else ""


def stamp(wall: float) -> str | None:
    """None is never."""
    return rfc3339(wall) if wall else None


def _end_reason(container: RuntimeContainerStatus) -> str:
    """Podman knows no reason: the one that a CRI runtime would give."""
    if container.reason:
        return container.reason
    if container.oom_killed:
        return "OOMKilled"
    if not container.started_at:
        return "ContainerCannotRun"
    return COMPLETED if container.exit_code == 0 else "Error"
