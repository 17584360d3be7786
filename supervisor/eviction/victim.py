"""Pod that a met threshold evicts, with the grace and the words that it gets.

Mirrors the second half of synchronize and evictPod (pkg/kubelet/eviction/eviction_manager.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.eviction.file_systems import Layout
from ipc.k8s.eviction.observations import SignalObservations, thresholds_met
from ipc.k8s.eviction.signals import resource_of
from ipc.k8s.eviction.thresholds import Threshold
from ipc.k8s.eviction.usage import PodUsage
from ipc.k8s.scheduling.priority import is_critical
from supervisor.eviction.messages import EvictionMessage, eviction_message
from supervisor.eviction.ranking import rank

IMMEDIATE_GRACE_PERIOD_S: Final = 1
"""immediateEvictionGracePeriodSeconds: of a hard threshold."""


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """One pod that goes."""

    uid: str
    grace_period_s: int
    message: EvictionMessage


def eviction(
    thresholds: Sequence[Threshold],
    observations: SignalObservations,
    pods: Iterable[Pod],
    usage: Mapping[str, PodUsage],
    layout: Layout,
    max_pod_grace_period_s: int,
) -> Eviction | None:
    """Eviction for the first of the thresholds; None when every pod is critical, or there is none.

    ``pods``: those that run or may run. ``usage`` by uid."""
    urgent = thresholds[0]
    pod = next((pod for pod in rank(pods, urgent.signal, layout, usage) if not is_critical(pod)), None)
    if pod is None:
        return None
    of_pod, resource = usage.get(pod.metadata.uid), resource_of(urgent.signal)
    return Eviction(
        uid=pod.metadata.uid,
        grace_period_s=IMMEDIATE_GRACE_PERIOD_S if urgent.is_hard else _soft_grace(pod, max_pod_grace_period_s),
        message=eviction_message(resource, pod, of_pod, thresholds, observations),
    )


def is_reclaimed(thresholds: Iterable[Threshold], observations: SignalObservations) -> bool:
    """Whether the node has enough of everything again, minimum reclaim included, so that no pod has to go
    (reclaimNodeLevelResources)."""
    return not thresholds_met(thresholds, observations, enforce_min_reclaim=True)


def _soft_grace(pod: Pod, max_pod_grace_period_s: int) -> int:
    own = pod.spec.termination_grace_period_seconds
    return max_pod_grace_period_s if own is None else min(max_pod_grace_period_s, own)
