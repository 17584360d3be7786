"""Work that time brings: the tick of the sync loop, once a second (syncLoopIteration, pkg/kubelet/kubelet.go)."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from supervisor.desired.object_updates import ObjectUpdates
from supervisor.desired.pod_updates import PodUpdates
from supervisor.loop.answered import Answered
from supervisor.loop.dispatcher import Dispatcher
from supervisor.loop.periodic_syncs import PeriodicSyncs
from supervisor.node.garbage import Garbage
from supervisor.node.pod_cgroups import PodCgroupPlans
from supervisor.node.pressure_conditions import PressureConditions
from supervisor.node.worker_updates import WorkerUpdates
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.held_up import HeldUpPods
from supervisor.pods.table import PodTable
from supervisor.protocol.events import SyncTick
from supervisor.record.status_manager import StatusManager


class Ticks(msgspec.Struct, frozen=True, eq=False):
    """Handler without a state of its own."""

    _pod_table: PodTable
    _waits: HeldUpPods
    _statuses: StatusManager
    _updates: PodUpdates
    _objects: ObjectUpdates
    _workers: WorkerUpdates
    _answered: Answered
    _dispatcher: Dispatcher
    _periodic_syncs: PeriodicSyncs
    _garbage: Garbage
    _cgroups: PodCgroupPlans
    _conditions: PressureConditions
    _reporter: PodReporter
    _out: CommandBuffer

    def on_sync_tick(self, tick: SyncTick, now: Instant) -> None:
        self._answered.on_pull(tick, now)
        self._updates.statuses_due(now)
        self._workers.spread_pods(now)
        self._objects.carry_out_due(now)
        self._out.to_api(self._statuses.expire_events(now))
        self._periodic_syncs.sync_due(now)
        self._tell_waits(now)
        self._report_again(now)
        self._end_past_deadline(now)
        self._garbage.collect_due(now)
        self._cgroups.plan_due(now)
        self._conditions.end_due(now)

    def _tell_waits(self, now: Instant) -> None:
        for state in self._waits.take_lasting():
            self._reporter.log("debug", f"{state.name}: waits for {state.reported_wait or 'nothing any more'}")
            self._reporter.report(state, now)

    def _report_again(self, now: Instant) -> None:
        for state in self._reporter.due_again(now):
            self._reporter.report(state, now)
            self._pod_table.touch((state.uid,))

    def _end_past_deadline(self, now: Instant) -> None:
        for state in self._pod_table.with_deadline():
            if self._statuses.is_past_deadline(state, now):
                self._dispatcher.terminate_if_terminal(state, now)
                self._pod_table.touch((state.uid,))
