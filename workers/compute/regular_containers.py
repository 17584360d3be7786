"""Actions on the regular and ephemeral containers of a pod that is initialized and whose sandbox serves. Pure.

Mirrors the second half of computePodActions (pkg/kubelet/kuberuntime/kuberuntime_manager.go), and its part on ephemeral
containers: each is started once. An edited one stays as it is; one that is no longer in the manifest is stopped as
everything is that the pod has not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ipc.k8s.api.v1.container import Container, EphemeralContainer
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResult
from ipc.k8s.kubecontainer.restart_policy import should_container_be_restarted
from workers.compute.container_actions import (
    ContainerAction,
    is_redefined,
    keep_or_resize,
    redefine,
    replace,
    restart,
    start_created,
    start_or_wait,
    unknown_message,
)
from workers.compute.grace_period import KillReason
from workers.compute.kill_spec import ALIVE, kill_of
from workers.compute.types import DecisionInput


def judge_regular(given: DecisionInput, container: Container) -> ContainerAction:
    """A container that is killed and not started again has no place among those that live on."""
    newest = given.status.newest(container.name)
    if newest is None or (newest.state in ALIVE and not given.is_inside(newest)):
        return start_or_wait(given, container)
    return _JUDGES[newest.state](given, container, newest)


def _judge_running(given: DecisionInput, container: Container, newest: RuntimeContainerStatus) -> ContainerAction:
    if newest.id in given.restarts:
        return restart(given, container, newest)
    probe_results = given.probe_results_of(newest)
    if is_redefined(given, container, newest):
        message = f"Container {container.name} definition changed, will be restarted"
        if ProbeResult.FAILURE in (probe_results.liveness, probe_results.startup):
            return replace(given, container, newest, KillReason.NONE, message)
        return redefine(given, container, newest, message)
    if probe_results.liveness is ProbeResult.FAILURE:
        return _failed_probe(given, container, newest, KillReason.LIVENESS_PROBE, "liveness")
    if probe_results.startup is ProbeResult.FAILURE:
        return _failed_probe(given, container, newest, KillReason.STARTUP_PROBE, "startup")
    return keep_or_resize(given, container, newest)


def _failed_probe(
    given: DecisionInput, container: Container, newest: RuntimeContainerStatus, reason: KillReason, probe: str
) -> ContainerAction:
    """Action on a failed probe: the restart policy decides and no rule, for there is no exit code yet."""
    message = f"Container {container.name} failed {probe} probe"
    if (container.restart_policy or given.pod.spec.restart_policy) == "Never":
        return ContainerAction(kill=kill_of(given.pod, newest, container, reason, message))
    return replace(given, container, newest, reason, f"{message}, will be restarted")


def _judge_unknown(given: DecisionInput, container: Container, newest: RuntimeContainerStatus) -> ContainerAction:
    return replace(given, container, newest, KillReason.UNKNOWN, unknown_message("Container", newest))


def _judge_exited(given: DecisionInput, container: Container, newest: RuntimeContainerStatus) -> ContainerAction:
    deleting = given.pod.metadata.deletion_timestamp is not None
    again = should_container_be_restarted(container, given.pod.spec, newest, deleting=deleting)
    edited = not deleting and _has_not_run_since_edited(given, container, newest)
    wanted = not deleting and newest.id in given.restarts
    return start_or_wait(given, container) if again or edited or wanted else ContainerAction()


def _has_not_run_since_edited(given: DecisionInput, container: Container, ended: RuntimeContainerStatus) -> bool:
    """Whether the container ended for the manifest's sake (or before its change was seen)."""
    other_sandbox = any(s.id == ended.sandbox_id and s.hash != given.sandbox.hash for s in given.status.sandboxes)
    return other_sandbox or is_redefined(given, container, ended) or given.resize.is_replaced(container, ended)


_Judge = Callable[[DecisionInput, Container, RuntimeContainerStatus], ContainerAction]
_JUDGES: Final[Mapping[ContainerState, _Judge]] = {
    ContainerState.RUNNING: _judge_running,
    ContainerState.UNKNOWN: _judge_unknown,
    ContainerState.CREATED: start_created,
    ContainerState.EXITED: _judge_exited,
}


def judge_ephemeral(given: DecisionInput, container: EphemeralContainer) -> ContainerAction:
    """An ephemeral container starts when there is no trace of it, in an earlier sandbox either."""
    newest = given.status.newest(container.name)
    if newest is None:
        return start_or_wait(given, container)
    if newest.state is ContainerState.CREATED:
        return start_created(given, container, newest)
    return ContainerAction()
