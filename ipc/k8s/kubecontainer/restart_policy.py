"""Whether a container that ended may start again: the decision asks it and the status does, so it stands between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.k8s.api.v1.container import Container, ContainerRestartRule
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus

RESTART_ALL_CONTAINERS: Final = "RestartAllContainers"
"""The rule action that restarts the whole pod in its sandbox."""


def is_restartable_init(container: Container) -> bool:
    """A sidecar: an init container with its own ``restartPolicy: Always`` (pkg/api/v1/pod/util.go)."""
    return container.restart_policy == "Always"


def find_matching_restart_rule(container: Container, exit_code: int) -> ContainerRestartRule | None:
    """The first rule that the exit code matches (pkg/api/v1/pod/util.go, FindMatchingContainerRestartRule)."""
    return next((rule for rule in container.restart_policy_rules if _matches(rule, exit_code)), None)


def _matches(rule: ContainerRestartRule, exit_code: int) -> bool:
    """An operator that is neither of the two matches nothing."""
    wanted = {"In": True, "NotIn": False}
    return rule.exit_codes is not None and wanted.get(rule.exit_codes.operator) == (exit_code in rule.exit_codes.values)


def container_should_restart(container: Container, spec: PodSpec, exit_code: int) -> bool:
    """Whether the container may start again after that exit code (pkg/api/v1/pod/util.go, ContainerShouldRestart).

    The first matching rule wins, but only where the container has a policy of its own; without one the pod's counts,
    and an empty one is Always.
    """
    policy = container.restart_policy or spec.restart_policy
    if container.restart_policy and find_matching_restart_rule(container, exit_code) is not None:
        return True
    return {"Never": False, "OnFailure": exit_code != 0}.get(policy, True)


def is_container_restartable(spec: PodSpec, container: Container) -> bool:
    """Whether the container may start again after some exit (pkg/api/v1/pod/util.go, IsContainerRestartable)."""
    if container.restart_policy is None:
        return spec.restart_policy != "Never"
    return container.restart_policy != "Never" or any(
        rule.action == "Restart" for rule in container.restart_policy_rules
    )


def all_containers_could_restart(spec: PodSpec) -> bool:
    """Has some container a rule that restarts them all (pkg/api/v1/pod/util.go, AllContainersCouldRestart)."""
    return any(
        rule.action == RESTART_ALL_CONTAINERS
        for container in _ruled_containers(spec)
        for rule in container.restart_policy_rules
    )


def should_all_containers_restart(spec: PodSpec, status: RuntimePodStatus, restarting: bool) -> bool:
    """Is a restart of all containers due or under way (pkg/kubelet/container/helpers.go, ShouldAllContainersRestart).

    ``restarting`` is the pod's condition AllContainersRestarting: it has begun and not come to its end.
    """
    return restarting or any(triggers_restart_of_all(container, status) for container in _ruled_containers(spec))


def triggers_restart_of_all(container: Container, status: RuntimePodStatus) -> bool:
    """Whether the container's newest exit matches a rule that restarts all containers."""
    newest = status.newest(container.name)
    if newest is None or newest.state is not ContainerState.EXITED:
        return False
    rule = find_matching_restart_rule(container, newest.exit_code)
    return rule is not None and rule.action == RESTART_ALL_CONTAINERS


def _ruled_containers(spec: PodSpec) -> Iterator[Container]:
    """Ephemeral containers have no rules."""
    yield from spec.init_containers
    yield from spec.containers


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
