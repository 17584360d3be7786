"""Periodic syncs, and those of them that need no worker, because they would find nothing to do.

Upstream makes them all. A sync looks at the pod and at what was observed of it, and each change of these brings a sync
of its own; it looks at volumes, limits of disks, bandwidth and slices too, so pods with any of them are always synced.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.network.bandwidth import UNLIMITED, pod_bandwidth
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.podresources.pod_requests import EPHEMERAL_STORAGE
from ipc.link.metrics import rootlet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.loop import requeue
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.tracking import PodTracking
from supervisor.pods.cache import PodCache
from supervisor.pods.lifecycle import MAX_RESTS, PodLifecycle
from supervisor.pods.table import PodTable
from supervisor.pods.work_queue import WorkQueue

_RESTS: Final = METERS.counter(metrics.RESTS)


class PeriodicSyncs(msgspec.Struct, frozen=True, eq=False):
    """Has pods synced whose time has come."""

    _node: ThisNode
    _pod_table: PodTable
    _cache: PodCache
    _queue: WorkQueue
    _tracking: PodTracking
    _rng: random.Random

    def sync_due(self, now: Instant) -> None:
        """Sync the pods whose time has come, or pass over the sync."""
        view = self._node.view
        for uid in self._queue.pop_due(now.mono):
            state = self._pod_table.get(uid)
            if state is None or state.lifecycle.finished:
                continue
            if rests(state.lifecycle, self._cache.get(uid), view.resources):
                state.lifecycle.rest()
                _RESTS.inc()
                wait_s = requeue.periodic(now.mono, view.settings.sync_frequency_s, len(self._pod_table), self._rng)
                self._queue.enqueue(uid, now.mono + wait_s)
            else:
                state.lifecycle.wake()
                self._tracking.resync(state)


def rests(lifecycle: PodLifecycle, view: RuntimePodStatus, node: NodeResources) -> bool:
    """Whether a periodic sync of that pod may be passed over."""
    pod = lifecycle.pod
    return (
        pod is not None
        and lifecycle.rested < MAX_RESTS
        and lifecycle.is_settled
        and lifecycle.has_all(view)
        and not _looks_beyond(pod, node)
    )


def _looks_beyond(pod: Pod, node: NodeResources) -> bool:
    """Whether a sync of the pod looks at what nobody observes and no event tells of."""
    if pod.spec.volumes or node.pod_cgroups is not None or pod_bandwidth(pod.metadata.annotations) != UNLIMITED:
        return True
    return any(EPHEMERAL_STORAGE in container.resources.limits for container in pod.spec.containers)
