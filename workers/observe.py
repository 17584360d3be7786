"""From what Podman shows of one pod's parts to its `RuntimePodStatus`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipc.api import LifecycleHandler
from ipc.runtime import ContainerState, RuntimeContainerStatus, RuntimePodStatus, SandboxState, SandboxStatus
from workers import labels
from workers.doubts import lost_end
from workers.image_reference import image_digest_reference
from workers.naming import container_name_of
from workers.runtime import InspectedContainer, ListedContainer, ListedPod

DEFAULT_GRACE_PERIOD_S: Final = 30
"""v1's default for terminationGracePeriodSeconds, for a container whose label was lost."""

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


def is_of(found: Mapping[str, str], instance: str, uid: str) -> bool:
    """Whether the labels say that a container is this agent's and that pod's: members of a pod may be strangers."""
    return found.get(labels.INSTANCE) == instance and found.get(labels.POD_UID) == uid


def sandbox_of(infra: ListedContainer) -> ListedPod:
    """The Podman pod as its infra container shows it: that inherits the labels."""
    return ListedPod(id=infra.pod_id, name=infra.pod_name, infra_id=infra.id, labels=infra.labels, created_at=0.0)


def pod_status(
    uid: str, pods: Iterable[ListedPod], containers: Iterable[InspectedContainer], observed_at: float
) -> RuntimePodStatus:
    """Everything that carries the uid, the infra containers among ``containers``; empty when there is nothing.

    Mirrors GetPodStatus (pkg/kubelet/kuberuntime/kuberuntime_manager.go), which asks the runtime itself.
    """
    podman_pods, every = tuple(pods), tuple(containers)
    by_id = {container.id: container for container in every}
    sandboxes = (_sandbox(pod, by_id.get(pod.infra_id)) for pod in podman_pods)
    members = [_member(container) for container in every if not container.is_infra]
    named = _first_with_name([pod.labels for pod in podman_pods] + [container.labels for container in every])
    return RuntimePodStatus(
        uid=uid,
        name=named.get(labels.POD_NAME, ""),
        namespace=named.get(labels.POD_NAMESPACE, ""),
        observed_at=observed_at,
        sandboxes=tuple(sorted(sandboxes, key=_newest_sandbox_first)),
        containers=tuple(container for _, container in sorted(members, key=_newest_of_a_name_first)),
    )


def _first_with_name(found: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
    return next((some for some in found if labels.POD_NAME in some), {})


def _sandbox(pod: ListedPod, infra: InspectedContainer | None) -> SandboxStatus:
    """Ready means that the infra container runs, whatever the pod's other containers do."""
    runs = infra is not None and container_state(infra.state) is ContainerState.RUNNING
    return SandboxStatus(
        id=pod.id,
        name=pod.name,
        infra_id=pod.infra_id,
        attempt=labels.whole(pod.labels, labels.ATTEMPT, 0),
        state=SandboxState.READY if runs else SandboxState.NOT_READY,
        hash=pod.labels.get(labels.SANDBOX_HASH, ""),
        created_at=infra.created_at if infra else pod.created_at,
        host_network=pod.labels.get(labels.HOST_NETWORK) == "true",
        ips=infra.ips if infra else (),
        infra_pid=infra.pid if infra is not None and infra.start_ticks else 0,
        infra_start_ticks=infra.start_ticks if infra else 0,
        grace_period_s=labels.whole(pod.labels, labels.GRACE_PERIOD_S, DEFAULT_GRACE_PERIOD_S),
    )


def _member(found: InspectedContainer) -> tuple[bool, RuntimeContainerStatus]:
    """A container, and whether it only looks like ours: somebody ran it anew with the labels of one that we made."""
    container = _container(found)
    return found.name != container_name_of(found.labels, container.attempt), container


def _container(found: InspectedContainer) -> RuntimeContainerStatus:
    container = _as_told(found)
    if not found.started_at or container.state not in (ContainerState.CREATED, ContainerState.EXITED):
        return container
    # What was started and counts as created again has ended, like everything, with a reboot: Podman resets its state
    # and keeps its dates. Then there is no exit code, or that of an earlier end; nor where Podman found none (-1).
    if found.exit_code < 0 or (container.state is ContainerState.CREATED and found.finished_at < found.started_at):
        return lost_end(container, found.finished_at)
    return msgspec.structs.replace(container, state=ContainerState.EXITED)


def _as_told(found: InspectedContainer) -> RuntimeContainerStatus:
    state = container_state(found.state)
    # Podman notes a start after the OCI runtime has come back: a process that ended at once did so "before" it.
    finished_at = max(found.finished_at, found.started_at) if state is ContainerState.EXITED else found.finished_at
    return RuntimeContainerStatus(
        id=found.id,
        name=found.labels.get(labels.CONTAINER_NAME, ""),
        attempt=labels.whole(found.labels, labels.ATTEMPT, 0),
        state=state,
        podman_state=found.state,
        sandbox_id=found.pod_id,
        hash=found.labels.get(labels.CONTAINER_HASH, ""),
        image=found.image,
        image_id=image_digest_reference(found.image, found.image_digest) or found.image_id,
        backoff_s=_seconds(found.labels, labels.BACKOFF_S),
        grace_period_s=labels.whole(found.labels, labels.GRACE_PERIOD_S, DEFAULT_GRACE_PERIOD_S),
        stop_signal=found.stop_signal,
        pre_stop=_pre_stop(found.labels),
        created_at=found.created_at,
        started_at=found.started_at,
        finished_at=finished_at,
        exit_code=found.exit_code,
        oom_killed=found.oom_killed,
        error=found.error,
        pid=found.pid,
        leaves_processes=labels.LEAVES_PROCESSES in found.labels,
        user=found.user,
    )


def _newest_sandbox_first(sandbox: SandboxStatus) -> tuple[int, float, str]:
    return (-sandbox.attempt, -sandbox.created_at, sandbox.id)


def _newest_of_a_name_first(member: tuple[bool, RuntimeContainerStatus]) -> tuple[str, int, bool, float, str]:
    """Of one attempt the container that we made, however young its copies are."""
    is_copy, container = member
    return (container.name, -container.attempt, is_copy, -container.created_at, container.id)


def _pre_stop(found: Mapping[str, str]) -> LifecycleHandler | None:
    """The hook on the label; None also when somebody has spoiled it."""
    text = found.get(labels.PRE_STOP, "")
    try:
        return msgspec.json.decode(text, type=LifecycleHandler) if text else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _seconds(found: Mapping[str, str], key: str) -> float:
    try:
        value = float(found.get(key, "0"))
    except ValueError:
        return 0.0
    return value if 0.0 <= value < float("inf") else 0.0
