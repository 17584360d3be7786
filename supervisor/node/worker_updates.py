"""Handlers of the agent's own processes: consequences of their starts and deaths for the pods that they work for."""

from __future__ import annotations

from ipc.host.clock import Instant
from ipc.link.messages.event_reasons import SYNC_CRASH_LOOP_BACK_OFF
from ipc.link.shm.board import pod_digest
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.image_pulls import ImagePulls
from supervisor.managers.probe_manager import ProbeManager
from supervisor.node.garbage import Garbage
from supervisor.node.pod_cgroups import PodCgroupPlans
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.crash_attribution import Attribution, CrashAttribution
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.processes.worker_pool import NODE_SLOT
from supervisor.protocol.commands import DeathExplained, SlotVacated, WorkersWanted
from supervisor.protocol.events import WorkerDown, WorkerLeaving, WorkerUp
from supervisor.record.status_manager import StatusManager


class WorkerUpdates:
    """Owns how many pod workers were asked for."""

    def __init__(
        self,
        pod_table: PodTable,
        observation_requests: ObservationRequests,
        statuses: StatusManager,
        allocations: AllocationManager,
        ended: EndedContainers,
        probes: ProbeManager,
        pulls: ImagePulls,
        crashes: CrashAttribution,
        garbage: Garbage,
        cgroups: PodCgroupPlans,
        reporter: PodReporter,
        out: CommandBuffer,
    ) -> None:
        self._pod_table = pod_table
        self._observation_requests = observation_requests
        self._statuses = statuses
        self._allocations = allocations
        self._ended = ended
        self._probes = probes
        self._pulls = pulls
        self._crashes = crashes
        self._garbage = garbage
        self._cgroups = cgroups
        self._reporter = reporter
        self._out = out
        self._asked_for = WorkersWanted(self._pod_table.workers)

    def on_worker_up(self, up: WorkerUp, now: Instant) -> None:
        self._out.up(up.slot, up.incarnation)
        self._pod_table.touch(state.uid for state in self._pod_table if state.slot == up.slot)
        if up.slot == NODE_SLOT:
            self._track_all()
            self._cgroups.node_up()
            self._out.send_all(self._pulls.handle(up, now.mono))
        if up.slot in self._out.fed:
            self._out.feed(up.slot, self._statuses.everything())

    def _track_all(self) -> None:
        """A new node worker knows nothing."""
        cache = self._observation_requests.cache
        for state in self._pod_table:
            self._out.track(state)
            if not cache.get(state.uid).is_empty():
                # A relist that ends before this arrives passes over what is gone: that is not "as it was".
                cache.invalidate(state.uid)
        self._observation_requests.ask_again()

    def on_worker_leaving(self, leaving: WorkerLeaving, now: Instant) -> None:
        self._out.down(leaving.slot)

    def on_worker_down(self, down: WorkerDown, now: Instant) -> None:
        """Pods of a dead worker wait for an observation newer than the death, then go on."""
        self._out.down(down.slot)
        if down.slot == NODE_SLOT:
            self._garbage.node_down(now)
        self._out.send_all(self._pulls.handle(down, now.mono))
        self._pod_table.touch(self._probes.down(down.slot))
        lost = [
            state
            for state in self._pod_table
            if state.lifecycle.in_flight is not None and state.lifecycle.in_flight.slot == down.slot
        ]
        found = self._attribute_crash(down, tuple(state.uid for state in lost), now)
        for state in lost:
            state.lifecycle.lost()
            self._allocations.mark_stale(state.uid)
            self._ended.mark_stale(state.uid)
            self._observation_requests.lost(state.uid, now.mono)
        self._pod_table.touch(state.uid for state in lost)
        if found is not None:
            self._isolate(found, down, now)

    def settle(self, now: Instant) -> None:
        """Ask for as many pod workers as there are to be now."""
        if not self._reporter.is_batch_under_way():  # a new worker would take the CPU, and the pods do not wait for it
            self._scale()

    def _scale(self) -> None:
        wanted = WorkersWanted(self._pod_table.workers, self._pod_table.quarantine)
        if wanted != self._asked_for:
            self._asked_for = wanted
            self._out.add(wanted)

    def spread_pods(self, now: Instant) -> None:
        """Try quarantined pods again whose time has come, and move pods."""
        self._crashes.expire(now.mono)
        self._move_pods(now)
        self._pod_table.touch(self._crashes.suspects())

    def _move_pods(self, now: Instant) -> None:
        """Move pods to other workers: their number has changed, or their load, or a pod goes to or from quarantine."""
        self._pod_table.fit_workers(now.mono)
        for state in self._pod_table.move(self._out.is_up, self._crashes.quarantined()):
            self._pod_table.touch((state.uid,))
            self._reporter.report(state, now)
        self._scale()
        for slot in self._pod_table.vacated():
            self._out.down(slot)
            self._out.add(SlotVacated(slot))

    # --- a pod that kills its worker -----------------------------------------------------------------------------

    def _attribute_crash(self, down: WorkerDown, in_flight: tuple[str, ...], now: Instant) -> Attribution | None:
        """A pod that kills its worker every time pauses; one that somebody gives another try gets it."""
        shard = {state.uid for state in self._pod_table if state.slot == down.slot}
        if down.orderly:
            for uid in shard:
                self._crashes.try_again(uid, now.mono)
            return None
        if not down.current_pod:
            return self._crashes.worker_died(down.slot, in_flight, shard.difference(in_flight), now.mono)
        current = next((uid for uid in self._pod_table.uids() if pod_digest(uid) == down.current_pod), None)
        if current is None:  # it is gone meanwhile, and nobody else has done it
            return None
        return self._crashes.worker_died(down.slot, in_flight, shard.difference(in_flight), now.mono, current=current)

    def _isolate(self, found: Attribution, down: WorkerDown, now: Instant) -> None:
        state = self._pod_table.get(found.uid)
        assert state is not None, "it was found among those that are there"
        if state.slot == down.slot:
            self._pod_table.confine(state)  # else it moves when it can
        self._pod_table.touch((state.uid,))
        self._out.add(DeathExplained(down.slot))
        self._report_isolation(state, found, now)

    def _report_isolation(self, state: PodRecord, found: Attribution, now: Instant) -> None:
        summary = (
            f"{found.crashes} deaths of its worker in a row while it worked for this pod, "
            f"which is in quarantine now; next try in {found.wait_s:g} s"
        )
        self._statuses.summarize(state.uid, summary)
        self._reporter.pod_event(state, SYNC_CRASH_LOOP_BACK_OFF, summary, now)
        self._reporter.report(state, now)
