"""The restart of all containers of a pod in its sandbox. Pure.

Mirrors getContainersToReset (pkg/kubelet/kuberuntime/kuberuntime_manager.go). Everything that has run is removed; with
nothing left, the next decision begins the pod from its first init container. Ephemeral containers stay as they are:
they never run twice.
"""

from __future__ import annotations

import msgspec

from ipc.api import Container
from ipc.restart_policy import triggers_restart_of_all
from ipc.runtime import RuntimeContainerStatus
from workers.decision import ContainerReset, Given
from workers.kills import ALIVE, ContainerKill, kill_of
from workers.termination import KillReason, stop_window_s

GRACE_PERIOD_S = 0
"""Nothing is cleaned up that begins again at once: the smallest window, and no hook."""


def containers_to_reset(given: Given) -> tuple[ContainerReset, ...]:
    """Those whose exit was the reason come last, and of each name the newest: after an interruption in between the
    reason is still seen."""
    containers = (*given.pod.spec.init_containers, *given.pod.spec.containers)
    in_order = sorted(containers, key=lambda container: triggers_restart_of_all(container, given.status))
    return tuple(
        ContainerReset(container=ran, kill=_kill(given, container, ran))
        for container in in_order
        for ran in reversed([c for c in given.status.containers if c.name == container.name])
    )


def _kill(given: Given, container: Container, ran: RuntimeContainerStatus) -> ContainerKill | None:
    if ran.state not in ALIVE:
        return None
    message = f"Container {ran.name} is stopped to restart all containers"
    kill = kill_of(given.pod, ran, container, KillReason.NONE, message)
    return msgspec.structs.replace(kill, window_s=stop_window_s(GRACE_PERIOD_S), pre_stop=None)
