"""Next work of the pods that an event concerns: sync and probes (pkg/kubelet/pod_workers.go, podWorkerLoop)."""

from __future__ import annotations

import msgspec

from ipc.api.v1.status import TERMINAL_PHASES
from ipc.host.clock import Instant
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages import event_reasons
from ipc.messages.node_worker import Untrack
from ipc.messages.pod_worker import Freeze, ObjectsRead, SyncPod, WorkType
from ipc.messages.wait_reasons import WaitReason
from ipc.podobjects.config_objects import ConfigObjects
from supervisor.loop.parts import LoopParts
from supervisor.loop.pod_updates import PodUpdates
from supervisor.loop.requeue import BACK_OFF_PERIOD_S
from supervisor.loop.volume_updates import VolumeUpdates
from supervisor.managers.allocation import IN_PROGRESS
from supervisor.managers.object_delivery import ObjectDelivery
from supervisor.managers.object_store import MAX_POD_BYTES, PodObjects
from supervisor.pods.cache import CacheEntry
from supervisor.pods.next_step import OF_OBJECTS, Dispatch, Standing, Wait, next_step
from supervisor.pods.record import PodRecord
from supervisor.protocol.commands import RestsOn
from supervisor.protocol.source_updates import PodsIncomplete
from supervisor.status.generate import is_restarting_all


class Dispatcher:
    """Sends syncs and probe orders for the pods that were touched, and forgets pods of which nothing is left."""

    def __init__(self, parts: LoopParts, updates: PodUpdates, volumes: VolumeUpdates) -> None:
        self._parts = parts
        self._updates = updates
        self._pod_table = parts.pod_table
        self._out = parts.out
        self._waits = parts.waits
        self._volumes = volumes
        self._delivery = ObjectDelivery(parts.objects, volumes.claims_of, volumes.cluster_values)

    def dispatch_touched(self, now: Instant) -> None:
        """Decide for the pods that this event concerns; all the others cost nothing."""
        while uids := self._pod_table.take_touched():
            for uid in uids:
                state = self._pod_table.get(uid)
                if state is None:
                    continue
                if state.lifecycle.in_flight is None:
                    self._pod_table.touch(self._delivery.unload(state))
                if state.lifecycle.wants_dispatch():
                    self._take_next_step(state, now)
                if uid in self._pod_table:
                    self._probe(state, now)

    def _probe(self, state: PodRecord, now: Instant) -> None:
        probes, statuses = self._parts.probes, self._parts.statuses
        if not probes.concerns(state):
            return
        messages = probes.reconcile(
            state,
            self._parts.cache.entry(state.uid),
            self._out.is_up,
            has_ended=statuses.has_ended(state.uid),
            is_left_alone=self._is_left_alone(state, now),
        )
        self._out.send_all(messages)

    def retry_waiting_for_sources(self) -> None:
        """Try the pods again that wait for sources which were not read yet: they do so for a while only."""
        self._pod_table.touch(self._delivery.take_early())

    def on_pods_incomplete(self, told: PodsIncomplete, now: Instant) -> None:
        """A sync that waits for what its pod refers to gets it when it was read; a pod whose sync has not waited so
        long is synced again."""
        for uid in self._parts.incomplete.tell(told.uids):
            state = self._pod_table.get(uid)
            if state is None or state.lifecycle.phase is not WorkType.SYNC:
                continue
            if (flight := state.lifecycle.in_flight) is None:
                self._parts.tracking.resync(state)
            else:
                objects = self._delivery.load_anew(state)
                self._out.send(flight.slot, ObjectsRead(uid=uid, generation=flight.generation, objects=objects))

    def terminate_if_terminal(self, state: PodRecord, now: Instant) -> None:
        """Terminate a pod whose status or deadline says so, with its normal grace; a sync in flight is cancelled."""
        ended = state.lifecycle.phase is WorkType.SYNC and self._parts.announcer.report(state, now) in TERMINAL_PHASES
        if ended and state.lifecycle.terminate():
            self._out.cancel_sync(state)

    def _take_next_step(self, state: PodRecord, now: Instant) -> None:
        """Steps 4 to 6 of a pod's way: a view that is new enough, the status before acting, then the worker."""
        entry = self._parts.observation_requests.newer(state.uid)
        if entry is not None:
            self._settle(state, entry.status, now)
            if self._pod_table.get(state.uid) is not state:
                return  # nothing of it is left; a successor may have its UID
        standing = self._standing(state, entry, now)
        step = next_step(standing)
        if entry is not None and isinstance(step, Dispatch):
            found = self._loaded(state, now)
            if isinstance(found, PodObjects):
                self._dispatch(state, entry, found, now)
            else:
                step = next_step(msgspec.structs.replace(standing, objects=found))
        self._waits.note(state, step)

    def next_step(self, state: PodRecord, now: Instant) -> Dispatch | Wait:
        """Next step of that pod. Changes nothing."""
        requests = self._parts.observation_requests
        entry = requests.cache.newer_than(state.uid, requests.acted_at(state.uid))
        standing = self._standing(state, entry, now)
        if state.wait is not None and state.wait.reason in OF_OBJECTS:
            standing = msgspec.structs.replace(standing, objects=state.wait.reason)
        return next_step(standing)

    def _standing(self, state: PodRecord, entry: CacheEntry | None, now: Instant) -> Standing:
        parts, uid, lifecycle = self._parts, state.uid, state.lifecycle
        return Standing(
            phase=lifecycle.phase,
            is_due=lifecycle.pending,
            is_in_flight=lifecycle.in_flight is not None,
            is_at_rest=lifecycle.at_rest,
            has_fresh_view=entry is not None,
            lacks_admission=self._updates.admission.is_waiting(uid),
            lacks_devices=parts.devices.is_waiting(uid),
            is_paused=parts.pauses.holds_back(state),
            has_worker=self._out.is_up(state.slot),
            isolated_until=parts.poison_pods.isolated_until(uid, now.mono),
            awaits_trial=parts.poison_pods.awaits_trial(state.slot, uid),
            next_sync_at=state.parts.next_sync_at,
        )

    def _dispatch(self, state: PodRecord, entry: CacheEntry, found: PodObjects, now: Instant) -> None:
        incarnation = self._out.incarnation(state.slot)
        assert incarnation is not None, "the worker is up"
        self._report_too_large(state, found, now)
        self._parts.poison_pods.dispatched(state.slot, state.uid, now.mono)
        sync = self._sync_pod(state, incarnation, entry, found.objects)
        rests_on = self._rests_on(sync)
        self._out.send(state.slot, _stop_by_labels(sync) if self._kills_going_down(state) else sync, rests_on)

    def _rests_on(self, sync: SyncPod) -> RestsOn:
        """Versions of files that are on disk before a worker does this. The next agent would undo it, or do it again:
        restart a container for resources that it has, give a claim another volume, leave down a container that was
        stopped to begin anew, or run one again that had ended and was removed."""
        parts, is_resized = self._parts, self._parts.allocations.condition(sync.uid, IN_PROGRESS) is not None
        return RestsOn(
            allocations=parts.allocations.urgent_version if is_resized else 0,
            bindings=self._volumes.controller.version if sync.objects.claims else 0,
            restarts=parts.restarts.version if sync.restarts else 0,
            ends=parts.ended.version if sync.dead_containers else 0,
        )

    def _sync_pod(self, state: PodRecord, incarnation: int, entry: CacheEntry, objects: ConfigObjects) -> SyncPod:
        """The sync of what is pending, which is in flight from now on."""
        parts, lifecycle, is_inline = self._parts, state.lifecycle, entry.row < 0
        dead_containers = lifecycle.dead_containers
        flight = lifecycle.dispatched(state.slot, incarnation)
        return SyncPod(
            uid=state.uid,
            generation=flight.generation,
            incarnation=flight.incarnation,
            kind=flight.kind,
            pod=state.pod,
            row=entry.row,
            min_observed_at=parts.observation_requests.acted_at(state.uid),
            status=msgspec.structs.replace(entry.status, observed_at=entry.observed_at) if is_inline else None,
            grace_period_s=lifecycle.grace_period_s,
            remove=lifecycle.removed,
            dead_containers=dead_containers,
            restarting_all=is_restarting_all(parts.statuses.status(state.uid)),
            pull_failures=state.parts.pull_failures,
            probe_results=dict(parts.probes.results(state.uid)),
            evicted=parts.statuses.eviction(state.uid),
            objects=objects,
            awaits=flight.kind is WorkType.SYNC and state.uid in parts.incomplete,
            actuated=dict(parts.allocations.actuated(state.uid)),
            devices=parts.devices.given(state.uid),
            known_devices=parts.devices.known(state.pod),
            unsure_resources=parts.allocations.are_stale(state.uid),
            restarts=dict(state.parts.restarts),
            freeze=parts.pauses.requested(state) if flight.kind is WorkType.SYNC else Freeze.NONE,
            network_problem=parts.node.view.network_problem,
            active_since=parts.statuses.active_since(state),
            ended=parts.ended.lacked_by(entry.status),
        )

    def _is_left_alone(self, state: PodRecord, now: Instant) -> bool:
        """Whether probes leave the pod alone: while it is paused, after it has killed a worker, and when that one goes
        down, which must not fail because of them."""
        if self._parts.pauses.leaves_unprobed(state):
            return True
        poison_pods = self._parts.poison_pods
        goes_down = state.lifecycle.phase is not WorkType.SYNC
        is_isolated = poison_pods.isolated_until(state.uid, now.mono) is not None
        return is_isolated or (goes_down and poison_pods.is_convict(state.uid))

    def _kills_going_down(self, state: PodRecord) -> bool:
        """A convict that goes down is tried once as its manifest has it: a removal always comes to its end."""
        return state.lifecycle.phase is not WorkType.SYNC and self._parts.poison_pods.strikes(state.uid) > 0

    def _loaded(self, state: PodRecord, now: Instant) -> PodObjects | WaitReason:
        """Objects that the sync takes along, or one of `OF_OBJECTS`."""
        try:
            return self._delivery.load(state, now)
        except Exception as error:
            self._parts.announcer.fault(state, "what the pod refers to cannot be delivered", error, now)
            self._parts.queue.enqueue(state.uid, now.mono + BACK_OFF_PERIOD_S)
            return WaitReason.FAULT

    def _report_too_large(self, state: PodRecord, found: PodObjects, now: Instant) -> None:
        if found.too_large:
            names = ", ".join(f"{ref.kind} {ref.name}" for ref in found.too_large)
            message = f"what the pod refers to is larger than {MAX_POD_BYTES} bytes in all; it goes on without {names}"
            self._parts.announcer.pod_event(state, event_reasons.OBJECTS_TOO_LARGE, message, now)

    def _settle(self, state: PodRecord, view: RuntimePodStatus, now: Instant) -> None:
        """Phase changes that need no worker: a terminal pod goes down, a pod that is down is done."""
        before = state.lifecycle.phase
        if not state.parts.reporting.is_put_off:
            self.terminate_if_terminal(state, now)
        state.lifecycle.settle(view)
        if state.lifecycle.phase is not before:
            self._parts.announcer.report(state, now)
        if state.lifecycle.finished:
            self._pod_table.touch(self._parts.devices.release(state.uid))
            self._updates.room_was_made()
        if state.lifecycle.finished and state.lifecycle.removed:
            self._forget(state, now)

    def _forget(self, state: PodRecord, now: Instant) -> None:
        """Nothing of it is left; a successor begins anew."""
        self._pod_table.end(state)
        self._parts.observation_requests.forget(state.uid)
        self._parts.usage.drop(state.uid)
        self._parts.pauses.ended(state)
        self._out.send_all(self._parts.probes.forget(state.uid))
        self._out.to_node(Untrack(uid=state.uid))
        self._out.to_api(self._parts.statuses.gone(state.uid))
        if state.successor is not None:
            self._updates.add(state.successor, state.source, now)


def _stop_by_labels(sync: SyncPod) -> SyncPod:
    """As an orphan's, and without a hook: nothing that its manifest says is acted on any more."""
    return msgspec.structs.replace(sync, pod=None, grace_period_s=0, objects=ConfigObjects())
