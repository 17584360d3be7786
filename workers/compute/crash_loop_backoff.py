"""When a container that may start again does so: the crash-loop back-off, without any state of its own.

The kubelet remembers a back-off per container in memory. Here each container carries what was remembered when it was
made, as a label: how long its end must lie back before its successor starts. The two are equal because an entry of
the kubelet's is only touched when a container starts (client-go util/flowcontrol Backoff.Next), so "the entry" is the
label of the newest container and "last update" is when that was created. It survives every process of ours.

Mirrors doBackOff of pkg/kubelet/kuberuntime/kuberuntime_manager.go. Different on purpose: a start that fails before
there is a container (its image cannot be pulled) does not double the crash-loop back-off, because nothing crashed.
Whether a container may start again at all is ``ipc.k8s.kubecontainer.restart_policy``'s question.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.eventloop.backoff import Backoff, BackoffEntry

CRASH_LOOP_INITIAL_S: Final = 10.0
"""First back-off in seconds (pkg/kubelet/kubelet.go, backOffPeriod)."""
CRASH_LOOP_RESET_S: Final = 600.0
"""A container that ran longer than this many seconds starts with a clean slate (newCrashLoopBackOff)."""


class RestartDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Start now with that label, or wait until ``retry_at``."""

    backoff_s: float
    """Starting: for the new container's label. Waiting: the delay that is being served."""
    retry_at: float = 0.0
    """Wall time before which the container must not start; 0.0 is now."""


def crash_loop_limits(max_container_restart_period_s: float) -> Backoff:
    """pkg/kubelet/kubelet.go, newCrashLoopBackOff: a lower maximum lowers the first delay too."""
    return Backoff(
        initial_s=min(CRASH_LOOP_INITIAL_S, max_container_restart_period_s),
        max_s=max_container_restart_period_s,
        expires_after_s=CRASH_LOOP_RESET_S,
    )


def do_backoff(name: str, hash: str, status: RuntimePodStatus, now_wall: float, limits: Backoff) -> RestartDecision:
    """Whether the container ``name``, whose definition now hashes to ``hash``, may start (kuberuntime doBackOff).

    A changed definition is a new key upstream, so it starts at once and its back-off at the beginning.
    """
    newest, last_exited = status.newest(name), _newest_exited(name, status)
    entry = _entry(newest, hash)
    if last_exited is None:
        return RestartDecision(backoff_s=entry.backoff_s if entry else 0.0)
    event_at = last_exited.finished_at
    if entry is not None and limits.must_wait(entry, event_at, now_wall):
        return RestartDecision(backoff_s=entry.backoff_s, retry_at=event_at + entry.backoff_s)
    return RestartDecision(backoff_s=limits.next_s(entry, event_at))


def restart_all_retry_at(trigger: RuntimeContainerStatus, limits: Backoff) -> float:
    """Wall time before which the exit of this container must not restart its whole pod; 0.0 is at once.

    The restart removes every container, and with them what they remember; only how many there were is left, in the
    logs. So the delay follows from the attempt, and is not served after a run that would have reset a back-off.
    """
    ran_s = trigger.finished_at - trigger.started_at
    if trigger.attempt == 0 or ran_s > limits.expires_after_s:
        return 0.0
    return trigger.finished_at + limits.pause_s(trigger.attempt)


def _newest_exited(name: str, status: RuntimePodStatus) -> RuntimeContainerStatus | None:
    return next((c for c in status.of_name(name) if c.state is ContainerState.EXITED), None)


def _entry(newest: RuntimeContainerStatus | None, hash: str) -> BackoffEntry | None:
    """None when nothing is remembered: no container yet, the first one, or one of another definition."""
    if newest is None or newest.hash != hash or newest.backoff_s <= 0:
        return None
    return BackoffEntry(backoff_s=newest.backoff_s, updated_at=newest.created_at)
