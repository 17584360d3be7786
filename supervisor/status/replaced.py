"""Containers that have ended and start again because the manifest changed, whatever their policy says. Pure.

Upstream has no such thing: its API server forbids the edits that need another container. The workers decide that they
start (``workers/compute/regular_containers.py``); the status has to know it, or the pod would be taken for one that is
done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.hashing import is_made_from, is_sandbox_made_from
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.k8s.kubecontainer.resize import Actuated, ResizeJudge, resize_judge


def replaced_containers(
    pod: Pod,
    observed: RuntimePodStatus,
    actuated: Actuated,
    controllers: frozenset[str],
    *,
    was_observed_before: bool,
) -> frozenset[str]:
    """Names of regular containers that ended and were made from another definition, in another sandbox than wanted, or
    with other resources, if those need another container.

    A pod that has lost its sandbox replaces nothing: its policy alone decides. One whose sandbox was stopped because
    the manifest asks for another has not lost it; but to an agent that observes the pod for the first time it seems
    to be one that was done long ago and edited since, and what is done must not run again.

    ``controllers``: those that are delegated to this user.
    """
    ended = list(_ended(pod, observed))
    if not ended or not observed.sandboxes:
        return frozenset()
    newest, resize = observed.sandboxes[0], resize_judge(pod, observed, actuated, controllers)
    if newest.state is not SandboxState.READY and not (was_observed_before and _is_other(newest, pod, resize)):
        return frozenset()
    return frozenset(
        container.name for container, made in ended if _is_replaced(pod, container, made, observed.sandboxes, resize)
    )


def _ended(pod: Pod, observed: RuntimePodStatus) -> Iterator[tuple[Container, RuntimeContainerStatus]]:
    """Each regular container whose newest one has ended, with that."""
    for container in pod.spec.containers:
        newest = observed.newest(container.name)
        if newest is not None and newest.state is ContainerState.EXITED:
            yield container, newest


def _is_replaced(
    pod: Pod,
    container: Container,
    made: RuntimeContainerStatus,
    sandboxes: Iterable[SandboxStatus],
    resize: ResizeJudge,
) -> bool:
    if not is_made_from(made, pod.spec, container) or resize.is_replaced(container, made):
        return True
    own = next((sandbox for sandbox in sandboxes if sandbox.id == made.sandbox_id), None)
    return own is not None and _is_other(own, pod, resize)


def _is_other(sandbox: SandboxStatus, pod: Pod, resize: ResizeJudge) -> bool:
    return resize.needs_sandbox or not is_sandbox_made_from(sandbox, pod)
