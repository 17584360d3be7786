"""The restart of all containers of a pod in its sandbox. Pure.

Mirrors getContainersToReset (pkg/kubelet/kuberuntime/kuberuntime_manager.go). Everything that has run is removed; with
nothing left, the next decision begins the pod from its first init container. Ephemeral containers stay as they are:
they never run twice.

Different on purpose: upstream restarts at once, however often. Here only the first time; a pod that does nothing but
that would keep a host busy with making and removing containers, so from then on the exit that asks for it waits as a
crash does.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus
from ipc.k8s.kubecontainer.restart_policy import triggers_restart_of_all
from workers.compute.crash_loop_backoff import restart_all_retry_at
from workers.compute.grace_period import KillReason
from workers.compute.kill_spec import ALIVE, ContainerKill, kill_of
from workers.compute.types import ContainerReset, ContainerWait, DecisionInput

GRACE_PERIOD_S = 0
"""Nothing is cleaned up that begins again at once: the smallest window, and no hook."""


def containers_to_reset(given: DecisionInput) -> tuple[ContainerReset, ...]:
    """Regular containers of the spec, then init containers, and last those whose exit was the reason."""
    triggers, others = list[Container](), list[Container]()
    for container in (*given.pod.spec.containers, *given.pod.spec.init_containers):
        (triggers if triggers_restart_of_all(container, given.status) else others).append(container)
    return tuple(
        ContainerReset(container=ran, kill=_kill(given, container, ran))
        for container in (*others, *triggers)
        for ran in _in_order(given.status.of_name(container.name))
    )


def _in_order(of_one_name: Iterable[RuntimeContainerStatus]) -> list[RuntimeContainerStatus]:
    """The live one, then past ones. Of these the newest goes last: it may be the reason, which is still seen then after
    an interruption in between."""
    live, past = list[RuntimeContainerStatus](), list[RuntimeContainerStatus]()
    for ran in of_one_name:
        (live if ran.state in ALIVE else past).append(ran)
    return [*live, *reversed(past)]


def waiting_triggers(given: DecisionInput) -> tuple[ContainerWait, ...]:
    """Containers whose exit asks for the restart, and whose back-off is not over."""
    containers = (*given.pod.spec.init_containers, *given.pod.spec.containers)
    ended = (given.status.newest(c.name) for c in containers if triggers_restart_of_all(c, given.status))
    return tuple(
        ContainerWait(name=trigger.name, backoff_s=given.limits.pause_s(trigger.attempt), retry_at=retry_at)
        for trigger in ended
        if trigger is not None and (retry_at := restart_all_retry_at(trigger, given.limits)) > given.now_wall
    )


def _kill(given: DecisionInput, container: Container, ran: RuntimeContainerStatus) -> ContainerKill | None:
    if ran.state not in ALIVE:
        return None
    message = f"Container {ran.name} is stopped to restart all containers"
    kill = kill_of(given.pod, ran, container, KillReason.NONE, message)
    return msgspec.structs.replace(kill, grace_period_s=GRACE_PERIOD_S)
