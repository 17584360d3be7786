"""Pods that run with our label and that nobody wants: they are stopped and removed (HandlePodCleanups,
pkg/kubelet/kubelet.go). They get the grace that their labels carry; upstream gives them one second."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from ipc.host.log.entry import Subject
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.podcontrol.pod_stop import PodStop
from supervisor.podcontrol.removals import PodRemovals
from supervisor.podcontrol.tracking import PodTracking
from supervisor.pods.cache import PodCache
from supervisor.pods.table import PodTable
from supervisor.protocol.events import HousekeepingTick


class Orphans(msgspec.Struct, frozen=True, eq=False):
    """Handler without a state of its own."""

    _pod_table: PodTable
    _cache: PodCache
    _tracking: PodTracking
    _removals: PodRemovals
    _stop: PodStop
    _reporter: PodReporter

    def on_housekeeping(self, _: HousekeepingTick, now: Instant) -> None:
        if self._cache.relisted_at and (self._removals.are_sources_ready or self._stop.is_under_way):
            for uid in self._cache.orphans():
                self._adopt(uid, now)

    def _adopt(self, uid: str, now: Instant) -> None:
        """Take an orphan down like any pod, by its labels; only a view from now on counts."""
        status = self._cache.get(uid)
        METERS.counter(metrics.ORPHANED_RUNTIME_PODS).inc()
        state = self._tracking.begin(uid, f"{status.namespace}/{status.name}", None, "runtime", now.mono)
        state.lifecycle.remove(None, now.wall)
        about = Subject(namespace=status.namespace, name=status.name, uid=uid)
        words = f"removing {status.namespace}/{status.name} ({uid}): no source wants it"
        self._reporter.log("info", words, about)
