"""Next work of the pods that an event concerns: sync and probes (pkg/kubelet/pod_workers.go, podWorkerLoop)."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages import event_reasons
from ipc.link.messages.pod_worker import WorkType
from ipc.link.messages.wait_reasons import WaitReason
from supervisor.desired.pod_updates import PodUpdates
from supervisor.desired.resizes import Resizes
from supervisor.loop.pod_steps import PodSteps
from supervisor.loop.probe_updates import ProbeUpdates
from supervisor.loop.requeue import BACK_OFF_PERIOD_S
from supervisor.loop.sync_messages import SyncMessages
from supervisor.managers.devices import DeviceManager
from supervisor.managers.object_delivery import ObjectDelivery
from supervisor.managers.object_store import MAX_POD_BYTES, PodObjects
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.podcontrol.tracking import PodTracking
from supervisor.pods.held_up import HeldUpPods
from supervisor.pods.next_step import Dispatch, next_step
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.parts import CacheEntry
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.pods.work_queue import WorkQueue


class Dispatcher(msgspec.Struct, frozen=True, eq=False):
    """Sends syncs and probe orders for the pods that were touched, and forgets pods of which nothing is left."""

    _pod_table: PodTable
    _observation_requests: ObservationRequests
    _queue: WorkQueue
    _waits: HeldUpPods
    _devices: DeviceManager
    _delivery: ObjectDelivery
    _resizes: Resizes
    _updates: PodUpdates
    _steps: PodSteps
    _syncs: SyncMessages
    _probing: ProbeUpdates
    _tracking: PodTracking
    _reporter: PodReporter
    _out: CommandBuffer

    def dispatch_touched(self, now: Instant) -> None:
        """Decide for the pods that this event concerns; all the others cost nothing."""
        while uids := self._pod_table.take_touched():
            for uid in uids:
                state = self._pod_table.get(uid)
                if state is None:
                    continue
                if state.lifecycle.in_flight is None:
                    self._pod_table.touch(self._delivery.unload(state))
                if state.lifecycle.idle is None:
                    self._take_next_step(state, now)
                if uid in self._pod_table:
                    self._probing.order(state, now)

    def terminate_if_terminal(self, state: PodRecord, now: Instant) -> None:
        """Terminate a pod whose status or deadline says so, with its normal grace; a sync in flight is cancelled."""
        ended = state.lifecycle.phase is WorkType.SYNC and self._reporter.report(state, now) in TERMINAL_PHASES
        if ended and state.lifecycle.terminate():
            self._out.cancel_sync(state)

    def _take_next_step(self, state: PodRecord, now: Instant) -> None:
        """Steps 4 to 6 of a pod's way: a view that is new enough, the status before acting, then the worker."""
        entry = self._observation_requests.newer(state.uid)
        if entry is not None:
            self._settle(state, entry.status, now)
            if self._pod_table.get(state.uid) is not state:
                return  # nothing of it is left; a successor may have its UID
        standing = self._steps.standing(state, entry, now)
        step = next_step(standing)
        if entry is not None and isinstance(step, Dispatch):
            found = self._loaded(state, now)
            if isinstance(found, PodObjects):
                self._dispatch(state, entry, found, now)
            else:
                step = next_step(msgspec.structs.replace(standing, objects=found))
        self._waits.note(state, step)

    def _dispatch(self, state: PodRecord, entry: CacheEntry, found: PodObjects, now: Instant) -> None:
        incarnation = self._out.incarnation(state.slot)
        assert incarnation is not None, "the worker is up"
        self._report_too_large(state, found, now)
        sync, rests_on = self._syncs.dispatch(state, incarnation, entry, found.objects, now)
        self._out.send(state.slot, sync, rests_on)

    def _loaded(self, state: PodRecord, now: Instant) -> PodObjects | WaitReason:
        """Objects that the sync takes along, or one of `OF_OBJECTS`."""
        try:
            return self._delivery.load(state, now)
        except Exception as error:
            self._reporter.fault(state, "what the pod refers to cannot be delivered", error, now)
            self._queue.enqueue(state.uid, now.mono + BACK_OFF_PERIOD_S)
            return WaitReason.FAULT

    def _report_too_large(self, state: PodRecord, found: PodObjects, now: Instant) -> None:
        if found.too_large:
            names = ", ".join(f"{ref.kind} {ref.name}" for ref in found.too_large)
            message = f"what the pod refers to is larger than {MAX_POD_BYTES} bytes in all; it goes on without {names}"
            self._reporter.pod_event(state, event_reasons.OBJECTS_TOO_LARGE, message, now)

    def _settle(self, state: PodRecord, view: RuntimePodStatus, now: Instant) -> None:
        """Phase changes that need no worker: a terminal pod goes down, a pod that is down is done."""
        before = state.lifecycle.phase
        if not state.parts.reporting.is_put_off:
            self.terminate_if_terminal(state, now)
        state.lifecycle.settle(view)
        if state.lifecycle.phase is not before:
            self._reporter.report(state, now)
        if state.lifecycle.finished:
            self._pod_table.touch(self._devices.release(state.uid))
            self._resizes.wake()
        if state.lifecycle.finished and state.lifecycle.removed:
            self._tracking.forget(state)
            if state.successor is not None:  # it begins anew
                self._updates.add(state.successor, state.source, now)
