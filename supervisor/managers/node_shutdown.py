"""Graceful shutdown of the node: which pods end when, and how long each has (pkg/kubelet/nodeshutdown). Pure.

Pods go down in groups of growing priority. A group has its time; the next one begins when nothing of the group is left,
or when its time is over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.scheduling.priority import SYSTEM_CRITICAL_PRIORITY
from supervisor.config.settings import MAX_SHUTDOWN_GRACE_S, Settings, ShutdownGraceItem

NODE_SHUTDOWN_REASON: Final = "Terminated"
"""Reason in the status of a pod that ended with the node (nodeshutdown_manager.go, nodeShutdownReason)."""
NODE_SHUTDOWN_MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."
NOT_ADMITTED_REASON: Final = "NodeShutdown"
"""Reason of a rejection meanwhile (nodeshutdown_manager.go, nodeShutdownNotAdmittedReason)."""
NOT_ADMITTED_MESSAGE: Final = "Pod was rejected as the node is shutting down."


class ShutdownGroup(msgspec.Struct, frozen=True):
    """Pods that end at the same time."""

    priority: int
    grace_period_s: int
    uids: tuple[str, ...]


def shutdown_classes(settings: Settings) -> tuple[ShutdownGraceItem, ...]:
    """Time of each priority as it is configured; none: the host's shutdown is not waited for."""
    by_priority = settings.shutdown_grace_period_by_pod_priority
    return by_priority or by_two_periods(
        settings.shutdown_grace_period_s, settings.shutdown_grace_period_critical_pods_s
    )


def drain_classes(settings: Settings) -> tuple[ShutdownGraceItem, ...]:
    """Classes for an orderly end at any time: where nothing is configured, each pod has its own grace period, and the
    critical ones end last."""
    unbounded = (_grace(0, MAX_SHUTDOWN_GRACE_S), _grace(SYSTEM_CRITICAL_PRIORITY, MAX_SHUTDOWN_GRACE_S))
    return shutdown_classes(settings) or unbounded


def by_two_periods(total_s: float, critical_s: float) -> tuple[ShutdownGraceItem, ...]:
    """``shutdownGracePeriod`` and ``shutdownGracePeriodCriticalPods`` by priority: the critical pods' time is
    the end of the whole (nodeshutdown_manager.go, migrateConfig). None: there is no graceful shutdown."""
    if total_s <= 0 or not 0 <= critical_s <= total_s:
        return ()
    return (
        _grace(0, int(total_s - critical_s)),
        _grace(SYSTEM_CRITICAL_PRIORITY, int(critical_s)),
    )


def group_by_priority(classes: Iterable[ShutdownGraceItem], priorities: Mapping[str, int]) -> tuple[ShutdownGroup, ...]:
    """One group for each class, the lowest first; a pod is in that of the largest priority which is not above its own,
    or in the lowest (nodeshutdown_manager.go, groupByPriority). ``priorities``: by UID."""
    ordered = sorted(classes, key=lambda item: item.priority)
    bounds = [item.priority for item in ordered]
    members: list[list[str]] = [[] for _ in ordered]
    for uid, priority in priorities.items():
        members[_class_index(bounds, priority)].append(uid)
    return tuple(
        ShutdownGroup(item.priority, item.shutdown_grace_period_seconds, tuple(uids))
        for item, uids in zip(ordered, members, strict=True)
    )


def grace_in_group(pod: Pod, group: ShutdownGroup) -> int:
    """Seconds that the pod has: its own grace period where that is shorter (nodeshutdown_manager.go, killPods)."""
    own_s = pod.spec.termination_grace_period_seconds
    return group.grace_period_s if own_s is None else min(own_s, group.grace_period_s)


def _class_index(bounds: Sequence[int], priority: int) -> int:
    index = bisect_left(bounds, priority)
    is_exact = index < len(bounds) and bounds[index] == priority
    return index if is_exact else max(index - 1, 0)


def fitted(classes: Iterable[ShutdownGraceItem], available_s: float) -> tuple[ShutdownGraceItem, ...]:
    """The same classes within the time that logind gives: shares of it where they ask for more.

    Upstream raises logind's InhibitDelayMaxSec, or does without a graceful shutdown where it may not; a rootless agent
    never may. Without the shares the last group, which is the critical one, would get nothing.
    """
    asked = tuple(classes)
    total_s = sum(item.shutdown_grace_period_seconds for item in asked)
    if total_s <= available_s:
        return asked
    return tuple(
        _grace(item.priority, int(item.shutdown_grace_period_seconds * available_s / total_s)) for item in asked
    )


def _grace(priority: int, seconds: int) -> ShutdownGraceItem:
    return ShutdownGraceItem(priority=priority, shutdown_grace_period_seconds=seconds)
