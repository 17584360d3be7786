"""Probes: orders to the workers, and their results (pkg/kubelet/prober/prober_manager.go)."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from ipc.link.messages.pod_worker import ProbeResultChanged, ProbingStopped, WorkType
from supervisor.managers.probe_manager import ProbeManager, needs_sync
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_pauses import PodPauses
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.cache import PodCache
from supervisor.pods.crash_attribution import CrashAttribution
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.record.status_manager import StatusManager


class ProbeUpdates(msgspec.Struct, frozen=True, eq=False):
    """Handlers without a state of their own."""

    _pod_table: PodTable
    _cache: PodCache
    _probes: ProbeManager
    _statuses: StatusManager
    _crashes: CrashAttribution
    _pauses: PodPauses
    _reporter: PodReporter
    _out: CommandBuffer

    def order(self, state: PodRecord, now: Instant) -> None:
        """Have the pod probed, or not any more, as it is now."""
        if not self._probes.concerns(state):
            return
        messages = self._probes.reconcile(
            state,
            self._cache.entry(state.uid),
            self._out.is_up,
            has_ended=self._statuses.has_ended(state.uid),
            is_left_alone=self._is_left_alone(state, now),
        )
        self._out.send_all(messages)

    def _is_left_alone(self, state: PodRecord, now: Instant) -> bool:
        """Whether probes leave the pod alone: while it is paused, after it has killed a worker, and when that one goes
        down, which must not fail because of them."""
        if self._pauses.leaves_unprobed(state):
            return True
        goes_down = state.lifecycle.phase is not WorkType.SYNC
        is_isolated = self._crashes.isolated_until(state.uid, now.mono) is not None
        return is_isolated or (goes_down and self._crashes.is_quarantined(state.uid))

    def on_probe_result(self, changed: ProbeResultChanged, now: Instant) -> None:
        """handleProbeSync, and the status manager's SetContainerReadiness and SetContainerStartup."""
        state = self._pod_table.get(changed.uid)
        if state is None or not self._probes.note_result(state, changed):
            return
        if needs_sync(changed):
            state.lifecycle.sync_soon()
        self._pod_table.touch((state.uid,))
        self._reporter.report(state, now)

    def on_probing_stopped(self, stopped: ProbingStopped, now: Instant) -> None:
        self._probes.stopped(stopped.uid)
        self._pod_table.touch((stopped.uid,))
