"""Whether a container that ended may start again: the decision asks it and the status does, so it stands between."""

from __future__ import annotations

from ipc.api import Container, PodSpec
from ipc.runtime import ContainerState, RuntimeContainerStatus


def is_restartable_init(container: Container) -> bool:
    """A sidecar: an init container with its own ``restartPolicy: Always`` (pkg/api/v1/pod/util.go)."""
    return container.restart_policy == "Always"


def container_should_restart(container: Container, spec: PodSpec, exit_code: int) -> bool:
    """May it start again after that exit code (pkg/api/v1/pod/util.go, ContainerShouldRestart).

    The first matching rule wins, but only where the container has a policy of its own; without one the pod's counts,
    and an empty one is Always.
    """
    policy = container.restart_policy or spec.restart_policy
    if container.restart_policy and _rule_matches(container, exit_code):
        return True
    return {"Never": False, "OnFailure": exit_code != 0}.get(policy, True)


def _rule_matches(container: Container, exit_code: int) -> bool:
    """An operator that is neither of the two matches nothing."""
    wanted = {"In": True, "NotIn": False}
    return any(
        wanted.get(rule.exit_codes.operator) == (exit_code in rule.exit_codes.values)
        for rule in container.restart_policy_rules
        if rule.exit_codes is not None
    )


def should_container_be_restarted(
    container: Container, spec: PodSpec, newest: RuntimeContainerStatus | None, *, deleting: bool = False
) -> bool:
    """Should a container of this name be started at the next sync (pkg/kubelet/container/helpers.go)."""
    if deleting:
        return False
    if newest is None or newest.state in (ContainerState.CREATED, ContainerState.UNKNOWN):
        return True
    if newest.state is ContainerState.RUNNING:
        return False
    return container_should_restart(container, spec, newest.exit_code)
