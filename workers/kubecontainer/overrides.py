"""Corrections of a pod's status where Podman's state is stale: ends by pidfd, recorded ends, stuck stops. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.pod_status import (
    CONTAINER_STATUS_UNKNOWN,
    UNKNOWN_EXIT_CODE,
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from workers.kubecontainer.runtime import RecordedEnd

LOST_END: Final = "The container's process has ended, and nobody was there to see how"
STUCK_SLACK_S: Final = 30.0
"""How long a stop that another client has begun may take beyond the container's grace period, in seconds."""
SAID_TO_RUN: Final = frozenset({"running", "paused", "stopping"})
"""Podman's states of a container whose process lives."""
IN_MOTION: Final = frozenset({"stopping", "removing"})
"""Podman's states of containers with an operation under way: nothing shows when it is given up."""


def is_in_motion(status: RuntimePodStatus) -> bool:
    """Some container is in a state that does not last."""
    return any(container.podman_state in IN_MOTION for container in status.containers)


def is_unnoticed_end(container: RuntimeContainerStatus) -> bool:
    """Whether the container has ended while Podman shows it as running."""
    return container.state is ContainerState.EXITED and container.podman_state in SAID_TO_RUN


def with_unseen_ends(status: RuntimePodStatus, ends: Mapping[str, float]) -> RuntimePodStatus:
    """``ends``: when processes of containers have ended that Podman still says run, in epoch seconds by container id.

    An infra container's end leaves its sandbox not ready.
    """
    if not ends:
        return status
    return msgspec.structs.replace(
        status,
        sandboxes=tuple(_not_ready(sandbox) if sandbox.infra_id in ends else sandbox for sandbox in status.sandboxes),
        containers=tuple(_ended(c, ends[c.id]) if c.id in ends else c for c in status.containers),
    )


def with_recorded_ends(status: RuntimePodStatus, ends: Mapping[str, RecordedEnd]) -> RuntimePodStatus:
    """``ends``: recorded ends of containers, infra containers among them, that ran when Podman was last asked, by
    container id. The status is as Podman will show it next."""
    if not ends:
        return status
    containers = tuple(_noted(c, ends[c.id]) if c.id in ends else c for c in status.containers)
    sandboxes = tuple(_noted_sandbox(s) if s.infra_id in ends else s for s in status.sandboxes)
    return msgspec.structs.replace(status, containers=containers, sandboxes=sandboxes)


def with_stuck(status: RuntimePodStatus, stuck: Collection[str]) -> RuntimePodStatus:
    """``stuck``: ids of containers whose stop was begun and will not end. Such a container can only be replaced: its
    state counts as unknown."""
    if not stuck:
        return status
    containers = tuple(
        msgspec.structs.replace(c, state=ContainerState.UNKNOWN)
        if c.id in stuck and c.state is ContainerState.RUNNING
        else c
        for c in status.containers
    )
    return msgspec.structs.replace(status, containers=containers)


def lost_end(container: RuntimeContainerStatus, finished_at: float) -> RuntimeContainerStatus:
    """The container has ended, then or a little earlier, and its exit code is lost (ContainerStatusUnknown, as
    upstream)."""
    return msgspec.structs.replace(
        container,
        state=ContainerState.EXITED,
        finished_at=max(finished_at, container.started_at),
        exit_code=UNKNOWN_EXIT_CODE,
        reason=CONTAINER_STATUS_UNKNOWN,
        error=LOST_END,
        pid=0,
        start_ticks=0,
        monitor_pid=0,
    )


def _ended(container: RuntimeContainerStatus, at: float) -> RuntimeContainerStatus:
    return lost_end(container, at) if container.state is ContainerState.RUNNING else container


def _noted(container: RuntimeContainerStatus, end: RecordedEnd) -> RuntimeContainerStatus:
    if container.state is not ContainerState.RUNNING:
        return container
    return msgspec.structs.replace(
        container,
        state=ContainerState.EXITED,
        podman_state="exited",
        exit_code=end.exit_code,
        finished_at=max(end.finished_at, container.started_at),
        oom_killed=end.oom_killed,
        pid=0,
        start_ticks=0,
        monitor_pid=0,
    )


def _noted_sandbox(sandbox: SandboxStatus) -> SandboxStatus:
    return msgspec.structs.replace(
        sandbox, state=SandboxState.NOT_READY, ips=(), infra_pid=0, infra_start_ticks=0, infra_monitor_pid=0
    )


def _not_ready(sandbox: SandboxStatus) -> SandboxStatus:
    return msgspec.structs.replace(sandbox, state=SandboxState.NOT_READY)
