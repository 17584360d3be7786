"""From what Podman shows of one pod's parts to its `RuntimePodStatus`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from workers.kubecontainer import labels
from workers.kubecontainer.image_reference import image_digest_reference
from workers.kubecontainer.labels import read_container, read_names, read_sandbox
from workers.kubecontainer.naming import infra_name_of
from workers.kubecontainer.overrides import lost_end
from workers.kubecontainer.runtime import InspectedContainer, ListedContainer, ListedPod

_STATES: Final[Mapping[str, ContainerState]] = {
    "configured": ContainerState.CREATED,
    "created": ContainerState.CREATED,
    "initialized": ContainerState.CREATED,
    "running": ContainerState.RUNNING,
    "paused": ContainerState.RUNNING,
    "stopping": ContainerState.RUNNING,
    "stopped": ContainerState.EXITED,
    "exited": ContainerState.EXITED,
}
"""libpod/define/containerstate.go. What is being removed, is dead, unknown or new to us is UNKNOWN."""


def container_state(podman_state: str) -> ContainerState:
    """The kubelet's word for Podman's."""
    return _STATES.get(podman_state, ContainerState.UNKNOWN)


def has_lost_end(found: InspectedContainer) -> bool:
    """Whether the container ran, runs no more, and how it ended is lost: Podman found no exit code (-1), or the host
    went down first.

    After that Podman resets what ran and keeps its dates (libpod, resetContainerState): before version 5 to created,
    since then to exited. The exit code is 0 or that of an earlier run, and the date of the end is missing or earlier
    than the start. A date that is a little earlier is true of an exited container, see `_as_reported`.
    """
    if not found.started_at:
        return False
    state = container_state(found.state)
    if state is ContainerState.CREATED:
        return found.finished_at < found.started_at
    return state is ContainerState.EXITED and (found.exit_code < 0 or not found.finished_at)


def sandbox_of(infra: ListedContainer) -> ListedPod:
    """The Podman pod as its infra container shows it: that inherits the labels."""
    return ListedPod(
        id=infra.pod_id,
        name=infra.pod_name,
        infra_id=infra.id,
        labels=infra.labels,
        created_at=infra.created_at,
    )


def sandbox_behind(infra: InspectedContainer) -> ListedPod:
    """Sandbox of an infra container that was inspected: only its name leads to the pod's."""
    return ListedPod(
        id=infra.pod_id,
        name=infra.name.removesuffix(infra_name_of("")),
        infra_id=infra.id,
        labels=infra.labels,
        created_at=infra.created_at,
    )


def as_inspected(listed: ListedContainer, monitor_pid: int) -> InspectedContainer:
    """The container as a list alone shows it: dates in whole seconds, no more of its end than the exit code, and
    nothing of its files, addresses and settings."""
    return InspectedContainer(
        id=listed.id,
        name=listed.name,
        pod_id=listed.pod_id,
        is_infra=listed.is_infra,
        state=listed.state,
        pid=listed.pid,
        conmon_pid=monitor_pid,
        exit_code=listed.exit_code,
        oom_killed=False,
        error="",
        created_at=listed.created_at,
        started_at=listed.started_at,
        finished_at=listed.exited_at,
        image=listed.image,
        image_id=listed.image_id,
        labels=listed.labels,
        ips=(),
        log_path="",
    )


def pod_status(
    uid: str, pods: Iterable[ListedPod], containers: Iterable[InspectedContainer], observed_at: float
) -> RuntimePodStatus:
    """Everything that carries the uid, the infra containers among ``containers``; empty when there is nothing.

    Mirrors GetPodStatus (pkg/kubelet/kuberuntime/kuberuntime_manager.go), which asks the runtime itself.
    """
    podman_pods, every = tuple(pods), tuple(containers)
    by_id = {container.id: container for container in every}
    sandboxes = (_sandbox(pod, by_id.get(pod.infra_id)) for pod in podman_pods)
    members = (_container(container) for container in every if not container.is_infra)
    namespace, name = _names([pod.labels for pod in podman_pods] + [container.labels for container in every])
    return RuntimePodStatus(
        uid=uid,
        name=name,
        namespace=namespace,
        observed_at=observed_at,
        sandboxes=tuple(sorted(sandboxes, key=_newest_sandbox_first)),
    ).with_containers(members)


def _names(found: Iterable[Mapping[str, str]]) -> tuple[str, str]:
    """Any of them: sandboxes and containers have the pod's own labels alike."""
    return read_names(next((some for some in found if labels.POD_NAME in some), {}))


def _sandbox(pod: ListedPod, infra: InspectedContainer | None) -> SandboxStatus:
    """Ready means that the infra container runs, whatever the pod's other containers do."""
    runs = infra is not None and container_state(infra.state) is ContainerState.RUNNING
    own = read_sandbox(pod.labels)
    return SandboxStatus(
        id=pod.id,
        name=pod.name,
        infra_id=pod.infra_id,
        attempt=own.attempt,
        state=SandboxState.READY if runs else SandboxState.NOT_READY,
        hash=own.hash,
        created_at=infra.created_at if infra else pod.created_at,
        host_network=own.host_network,
        ips=infra.ips if infra else (),
        infra_pid=infra.pid if infra is not None and infra.start_ticks else 0,
        infra_start_ticks=infra.start_ticks if infra else 0,
        infra_monitor_pid=infra.conmon_pid if infra is not None and infra.start_ticks else 0,
        grace_period_s=own.grace_period_s,
        resources=own.resources,
        active_since=own.active_since,
    )


def _container(found: InspectedContainer) -> RuntimeContainerStatus:
    container = _as_reported(found)
    if has_lost_end(found):
        return lost_end(container, found.finished_at)
    # One that was started and counts as created again had ended when the host went down, and keeps its end.
    is_reset = container.state is ContainerState.CREATED and found.started_at
    return msgspec.structs.replace(container, state=ContainerState.EXITED) if is_reset else container


def _as_reported(found: InspectedContainer) -> RuntimeContainerStatus:
    own, state = read_container(found.labels), container_state(found.state)
    # Podman notes a start after the OCI runtime has come back: a process that ended at once did so "before" it.
    finished_at = max(found.finished_at, found.started_at) if state is ContainerState.EXITED else found.finished_at
    return RuntimeContainerStatus(
        id=found.id,
        name=own.name,
        attempt=own.attempt,
        state=state,
        podman_state=found.state,
        sandbox_id=found.pod_id,
        hash=own.hash,
        image=found.image,
        image_id=image_digest_reference(found.image, found.image_digest) or found.image_id,
        backoff_s=own.backoff_s,
        grace_period_s=own.grace_period_s,
        stop_signal=found.stop_signal,
        pre_stop=own.pre_stop,
        created_at=found.created_at,
        started_at=found.started_at,
        finished_at=finished_at,
        exit_code=found.exit_code,
        oom_killed=found.oom_killed,
        error=found.error,
        pid=found.pid,
        start_ticks=found.start_ticks,
        monitor_pid=found.conmon_pid if found.start_ticks else 0,
        leaves_processes=own.leaves_processes,
        user=found.user,
        resources=own.resources,
        devices=own.devices,
        image_volumes=own.image_volumes,
    )


def _newest_sandbox_first(sandbox: SandboxStatus) -> tuple[int, float, str]:
    return (-sandbox.attempt, -sandbox.created_at, sandbox.id)
