"""How long a container gets to stop. Pure; mirrors pkg/kubelet/kuberuntime/kuberuntime_container.go."""

from __future__ import annotations

import enum
from typing import Final

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import Probe
from ipc.link.messages import event_reasons

MINIMUM_GRACE_PERIOD_S: Final = 2
"""Shortest grace period of a container, in seconds, also when zero is requested (minimumGracePeriodInSeconds)."""


class KillReason(enum.StrEnum):
    """Why a container is stopped, as far as it changes how (containerKillReason)."""

    NONE = ""
    UNKNOWN = "Unknown"
    STARTUP_PROBE = "StartupProbe"
    LIVENESS_PROBE = "LivenessProbe"
    FAILED_POST_START_HOOK = event_reasons.FAILED_POST_START_HOOK.reason


def termination_grace_s(pod: Pod, container: Container | None, reason: KillReason) -> int:
    """Seconds that its manifest gives a container to stop (setTerminationGracePeriod).

    The pod's deletion decides first, then the probe that failed, then the pod's spec. ``container`` is None when the
    manifest no longer has it.
    """
    spec_s = pod.spec.termination_grace_period_seconds
    if pod.metadata.deletion_grace_period_seconds is not None:
        return pod.metadata.deletion_grace_period_seconds
    if spec_s is None:
        return MINIMUM_GRACE_PERIOD_S
    probe = _failed_probe(container, reason)
    if probe is not None and probe.termination_grace_period_seconds is not None:
        return probe.termination_grace_period_seconds
    return spec_s


def _failed_probe(container: Container | None, reason: KillReason) -> Probe | None:
    if container is None:
        return None
    return {
        KillReason.STARTUP_PROBE: container.startup_probe,
        KillReason.LIVENESS_PROBE: container.liveness_probe,
    }.get(reason)


def signal_window_s(grace_period_s: int, spent_s: float) -> float:
    """Seconds between the stop signal and SIGKILL, when the preStop hook and the wait for its turn took ``spent_s``.

    They take from the grace period, but never the minimum (killContainer).
    """
    return max(grace_period_s - spent_s, MINIMUM_GRACE_PERIOD_S)
