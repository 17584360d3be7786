"""What is sent for: the next sync of a pod, or nothing because none is needed, and who probes it."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from ipc.kubecontainer.config_objects import ConfigObjects
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages import event_reasons
from ipc.messages.node_worker import Untrack
from ipc.messages.pod_worker import SyncPod, WorkType
from supervisor.managers.object_delivery import ObjectDelivery
from supervisor.managers.object_store import MAX_POD_BYTES, PodObjects
from supervisor.podworkers.pod_cache import CacheEntry
from supervisor.podworkers.pod_lifecycle import InFlight, PodLifecycle
from supervisor.status.generate import is_restarting_all
from supervisor.status.phase import TERMINAL_PHASES
from supervisor.syncloop.parts import LoopParts
from supervisor.syncloop.pod_updates import PodUpdates
from supervisor.syncloop.requeue import BACK_OFF_PERIOD_S


class Dispatcher:
    """Decides for the pods that were touched, and ends lives of which nothing is left."""

    def __init__(self, parts: LoopParts, updates: PodUpdates) -> None:
        self._parts = parts
        self._updates = updates
        self._pod_table = parts.pod_table
        self._out = parts.out
        self._delivery = ObjectDelivery(parts.objects)

    def dispatch_touched(self, now: Instant) -> None:
        """Only pods that this event concerns: a turn costs nothing for all the others."""
        while uids := self._pod_table.take_touched():
            for uid in uids:
                lifecycle = self._pod_table.get(uid)
                if lifecycle is None or lifecycle.in_flight is None:
                    self._pod_table.touch(self._delivery.unload(uid))
                if lifecycle is not None and lifecycle.wants_dispatch():
                    self._dispatch(lifecycle, now)
                if lifecycle is not None and uid in self._pod_table:
                    probing, entry = self._parts.probing, self._parts.cache.entry(uid)
                    is_left_alone = self._is_left_alone(lifecycle, now)
                    self._out.send_all(probing.tell(lifecycle, entry, self._out.is_up, is_left_alone=is_left_alone))

    def look_again_at_sources(self) -> None:
        """Pods that wait for sources which were not read yet do so for a while only."""
        self._pod_table.touch(self._delivery.take_early())

    def terminate_if_terminal(self, lifecycle: PodLifecycle, now: Instant) -> None:
        """What its status says, or its deadline, ends a pod with its normal grace; a sync in flight is in the way."""
        ended = lifecycle.phase is WorkType.SYNC and self._parts.announcer.report(lifecycle, now) in TERMINAL_PHASES
        if ended and lifecycle.terminate():
            self._out.cancel_sync(lifecycle)

    def _dispatch(self, lifecycle: PodLifecycle, now: Instant) -> None:
        """Steps 4 to 6 of a pod's way: a view that is new enough, the status before acting, then the worker."""
        entry = self._parts.observation_requests.newer_than(lifecycle.uid, lifecycle.acted_at)
        if entry is None:
            return
        self._settle(lifecycle, entry.status, now)
        if lifecycle.at_rest:
            return
        slot, incarnation, poison_pods = lifecycle.slot, self._out.incarnation(lifecycle.slot), self._parts.poison_pods
        if incarnation is None or not poison_pods.may_sync(slot, lifecycle.uid, now.mono):
            return
        found = self._loaded(lifecycle, now)
        if found is None:
            return
        self._tell_too_large(lifecycle, found, now)
        poison_pods.dispatched(slot, lifecycle.uid, now.mono)
        garbage = lifecycle.garbage
        sync = _sync_pod(lifecycle, lifecycle.dispatched(slot, incarnation), entry, garbage, found.objects)
        self._out.send(slot, _stop_by_labels(sync) if self._kills_going_down(lifecycle) else sync)

    def _is_left_alone(self, lifecycle: PodLifecycle, now: Instant) -> bool:
        """By probes: after it has killed a worker, and when it goes down, which must not fail because of them."""
        poison_pods = self._parts.poison_pods
        goes_down = lifecycle.phase is not WorkType.SYNC
        return poison_pods.is_isolated(lifecycle.uid, now.mono) or (goes_down and poison_pods.is_convict(lifecycle.uid))

    def _kills_going_down(self, lifecycle: PodLifecycle) -> bool:
        """A convict that goes down is tried once as its manifest has it: a removal always comes to its end."""
        return lifecycle.phase is not WorkType.SYNC and self._parts.poison_pods.strikes(lifecycle.uid) > 0

    def _loaded(self, lifecycle: PodLifecycle, now: Instant) -> PodObjects | None:
        """What its sync takes along; None when it has to wait, for a while too when that cannot be put together."""
        try:
            return self._delivery.load(lifecycle, now)
        except Exception as error:
            self._parts.announcer.fault(lifecycle, "what the pod refers to cannot be delivered", error, now)
            self._parts.queue.enqueue(lifecycle.uid, now.mono + BACK_OFF_PERIOD_S)
            return None

    def _tell_too_large(self, lifecycle: PodLifecycle, found: PodObjects, now: Instant) -> None:
        if found.too_large:
            names = ", ".join(f"{ref.kind} {ref.name}" for ref in found.too_large)
            message = f"what the pod refers to is larger than {MAX_POD_BYTES} bytes in all; it goes on without {names}"
            self._parts.announcer.pod_event(lifecycle, event_reasons.OBJECTS_TOO_LARGE, message, now)

    def _settle(self, lifecycle: PodLifecycle, view: RuntimePodStatus, now: Instant) -> None:
        """Phase changes that need no worker: a terminal pod goes down, a pod that is down is done."""
        before = lifecycle.phase
        self.terminate_if_terminal(lifecycle, now)
        lifecycle.settle(view)
        if lifecycle.phase is not before:
            self._parts.announcer.report(lifecycle, now)
        if lifecycle.finished and lifecycle.removed:
            self._forget(lifecycle, now)

    def _forget(self, lifecycle: PodLifecycle, now: Instant) -> None:
        """Nothing of it is left; a successor begins anew."""
        self._pod_table.end(lifecycle)
        self._parts.observation_requests.forget(lifecycle.uid)
        self._parts.queue.remove(lifecycle.uid)
        self._parts.usage.drop(lifecycle.uid)
        self._parts.poison_pods.forget(lifecycle.uid)
        self._parts.announcer.forget(lifecycle.uid)
        self._out.send_all(self._parts.probing.forget(lifecycle.uid))
        self._out.to_node(Untrack(uid=lifecycle.uid))
        self._out.to_api(self._parts.reporter.gone(lifecycle.uid))
        if lifecycle.successor is not None:
            self._updates.add(lifecycle.successor, lifecycle.source, now)


def _sync_pod(
    lifecycle: PodLifecycle, flight: InFlight, entry: CacheEntry, garbage: tuple[str, ...], objects: ConfigObjects
) -> SyncPod:
    is_inline = entry.row < 0
    return SyncPod(
        uid=lifecycle.uid,
        generation=flight.generation,
        incarnation=flight.incarnation,
        kind=flight.kind,
        pod=lifecycle.pod,
        row=entry.row,
        min_observed_at=lifecycle.acted_at,
        status=msgspec.structs.replace(entry.status, observed_at=entry.observed_at) if is_inline else None,
        grace_period_s=lifecycle.grace_period_s,
        remove=lifecycle.removed,
        garbage=garbage,
        restarting_all=is_restarting_all(lifecycle.status),
        pull_failures=lifecycle.pull_failures,
        probe_results=dict(lifecycle.probe_results),
        evicted=lifecycle.eviction.message if lifecycle.eviction is not None else "",
        objects=objects,
    )


def _stop_by_labels(sync: SyncPod) -> SyncPod:
    """As an orphan's, and without a hook: nothing that its manifest says is acted on any more."""
    return msgspec.structs.replace(sync, pod=None, grace_period_s=0, objects=ConfigObjects())
