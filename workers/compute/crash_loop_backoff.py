"""When a container that may start again does so: the crash-loop back-off, without any state of its own.

The kubelet remembers a back-off per container in memory. Here each container carries what was remembered when it was
made, as a label: how long its end must lie back before its successor starts. The two are equal because an entry of
the kubelet's is only touched when a container starts (client-go util/flowcontrol Backoff.Next), so "the entry" is the
label of the newest container and "last update" is when that was created. It survives every process of ours.

Mirrors doBackOff of pkg/kubelet/kuberuntime/kuberuntime_manager.go. Different on purpose: a start that fails before
there is a container (its image cannot be pulled) does not double the crash-loop back-off, because nothing crashed.
Whether a container may start again at all is ``ipc.kubecontainer.restart_policy``'s question.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus

CRASH_LOOP_INITIAL_S: Final = 10.0
"""First back-off in seconds (pkg/kubelet/kubelet.go, backOffPeriod)."""
CRASH_LOOP_RESET_S: Final = 600.0
"""A container that ran longer than this many seconds starts with a clean slate (newCrashLoopBackOff)."""

MAX_DOUBLINGS: Final = 32
"""More than lie between any two delays."""


class BackoffLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of an exponential back-off, in seconds."""

    initial_s: float
    max_s: float
    expires_after_s: float


class BackoffEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Back-off entry: the delay in seconds, and the wall time of its update."""

    backoff_s: float
    updated_at: float


class RestartDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Start now with that label, or wait until ``retry_at``."""

    backoff_s: float
    """Starting: for the new container's label. Waiting: the delay that is being served."""
    retry_at: float = 0.0
    """Wall time before which the container must not start; 0.0 is now."""


def crash_loop_limits(max_container_restart_period_s: float) -> BackoffLimits:
    """pkg/kubelet/kubelet.go, newCrashLoopBackOff: a lower maximum lowers the first delay too."""
    return BackoffLimits(
        initial_s=min(CRASH_LOOP_INITIAL_S, max_container_restart_period_s),
        max_s=max_container_restart_period_s,
        expires_after_s=CRASH_LOOP_RESET_S,
    )


def has_expired(entry: BackoffEntry, event_at: float, limits: BackoffLimits) -> bool:
    """Whether the event came so long after the entry was written that the entry no longer counts."""
    return event_at - entry.updated_at > limits.expires_after_s


def in_backoff(entry: BackoffEntry, event_at: float, now_wall: float, limits: BackoffLimits) -> bool:
    """client-go flowcontrol Backoff.IsInBackOffSince.

    An event that lies further ahead than the back-off is long says that the clock was set back: how long ago it was is
    unknown, and waiting for that time could take hours. So a jump makes a wait twice as long at the most.
    """
    return not has_expired(entry, event_at, limits) and abs(now_wall - event_at) < entry.backoff_s


def next_backoff_s(entry: BackoffEntry | None, event_at: float, limits: BackoffLimits) -> float:
    """client-go flowcontrol Backoff.Next: the delay that the new entry holds, in seconds."""
    if entry is None or has_expired(entry, event_at, limits):
        return limits.initial_s
    return min(entry.backoff_s * 2, limits.max_s)


def do_backoff(
    name: str, hash: str, status: RuntimePodStatus, now_wall: float, limits: BackoffLimits
) -> RestartDecision:
    """Whether the container ``name``, whose definition now hashes to ``hash``, may start (kuberuntime doBackOff).

    A changed definition is a new key upstream, so it starts at once and its back-off at the beginning.
    """
    newest, last_exited = status.newest(name), _newest_exited(name, status)
    entry = _entry(newest, hash)
    if last_exited is None:
        return RestartDecision(backoff_s=entry.backoff_s if entry else 0.0)
    event_at = last_exited.finished_at
    if entry is not None and in_backoff(entry, event_at, now_wall, limits):
        return RestartDecision(backoff_s=entry.backoff_s, retry_at=event_at + entry.backoff_s)
    return RestartDecision(backoff_s=next_backoff_s(entry, event_at, limits))


def restart_all_retry_at(trigger: RuntimeContainerStatus, limits: BackoffLimits) -> float:
    """Wall time before which the exit of this container must not restart its whole pod; 0.0 is at once.

    The restart removes every container, and with them what they remember; only how many there were is left, in the
    logs. So the delay follows from the attempt, and is not served after a run that would have reset a back-off.
    """
    ran_s = trigger.finished_at - trigger.started_at
    if trigger.attempt == 0 or ran_s > limits.expires_after_s:
        return 0.0
    return trigger.finished_at + restart_all_backoff_s(trigger.attempt, limits)


def restart_all_backoff_s(attempt: int, limits: BackoffLimits) -> float:
    """10 s, 20 s, 40 s, … for attempts 1, 2, 3, …"""
    doublings = min(attempt - 1, MAX_DOUBLINGS)
    return min(limits.initial_s * 2.0**doublings, limits.max_s)


def _newest_exited(name: str, status: RuntimePodStatus) -> RuntimeContainerStatus | None:
    return next((c for c in status.of_name(name) if c.state is ContainerState.EXITED), None)


def _entry(newest: RuntimeContainerStatus | None, hash: str) -> BackoffEntry | None:
    """None when nothing is remembered: no container yet, the first one, or one of another definition."""
    if newest is None or newest.hash != hash or newest.backoff_s <= 0:
        return None
    return BackoffEntry(backoff_s=newest.backoff_s, updated_at=newest.created_at)
