"""Containers to stop, with signal, grace period, hook and reason. Pure.

Mirrors the first half of killContainer and restoreSpecsFromContainerLabels
(pkg/kubelet/kuberuntime/kuberuntime_container.go): the manifest says how a container is stopped, and its labels do when
there is no manifest any more.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import LifecycleHandler
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from workers.compute.grace_period import KillReason, termination_grace_s
from workers.kubecontainer.runtime import ContainerProcess
from workers.podhttp.hook_ports import with_port_number

ALIVE: Final = frozenset({ContainerState.RUNNING, ContainerState.UNKNOWN})
"""States in which a process of the container may exist."""


class ContainerKill(msgspec.Struct, frozen=True, kw_only=True):
    """Stop one container."""

    id: str
    name: str
    pid: int
    start_ticks: int = 0
    monitor_pid: int = 0
    stop_signal: str = ""
    """Stop signal with which the container was made; empty when that is not known."""
    pre_stop: LifecycleHandler | None = None
    """To be run before its stop signal, within the grace period."""
    reason: KillReason
    message: str
    grace_period_s: int
    """For its preStop hook, the wait for its turn and its own end. With 0 there is no hook and no turn."""
    remove: bool = False
    """Nobody may find it again: remove it once it is dead."""

    @property
    def process(self) -> ContainerProcess:
        """First process of the container."""
        return ContainerProcess(
            container_id=self.id, pid=self.pid, start_ticks=self.start_ticks, monitor_pid=self.monitor_pid
        )


def kill_of(
    pod: Pod, target: RuntimeContainerStatus, container: Container | None, reason: KillReason, message: str
) -> ContainerKill:
    """Stop one container of a pod that stays. ``container`` is None when the manifest has nothing to say about it."""
    return _kill(target, reason, message, termination_grace_s(pod, container, reason), container)


def kill_all(pod: Pod | None, status: RuntimePodStatus, override_s: int | None = None) -> tuple[ContainerKill, ...]:
    """Stop whatever may run of the pod (killPodWithSyncResult). Without a manifest the labels say how long it takes.

    ``override_s`` replaces every grace period.
    """
    return tuple(_kill_in_pod(pod, target, override_s) for target in status.containers if target.state in ALIVE)


def _kill_in_pod(pod: Pod | None, target: RuntimeContainerStatus, override_s: int | None) -> ContainerKill:
    found = find_container(pod.spec, target.name) if pod is not None else None
    container = found.container if found is not None else None
    grace_s = target.grace_period_s if pod is None else termination_grace_s(pod, container, KillReason.NONE)
    message = f"Stopping container {target.name}"
    return _kill(target, KillReason.NONE, message, grace_s if override_s is None else override_s, container)


def _kill(
    target: RuntimeContainerStatus, reason: KillReason, message: str, grace_period_s: int, container: Container | None
) -> ContainerKill:
    return ContainerKill(
        id=target.id,
        name=target.name,
        pid=target.pid,
        start_ticks=target.start_ticks,
        monitor_pid=target.monitor_pid,
        stop_signal=target.stop_signal,
        pre_stop=_pre_stop(container, target),
        reason=reason,
        message=message,
        grace_period_s=grace_period_s,
    )


def _pre_stop(container: Container | None, target: RuntimeContainerStatus) -> LifecycleHandler | None:
    if container is None:
        return target.pre_stop
    hook = container.lifecycle.pre_stop if container.lifecycle is not None else None
    return with_port_number(hook, container) if hook is not None else None
