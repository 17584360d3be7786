"""What is sent for: the next sync of a pod, or nothing because none is needed, and who probes it."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from ipc.kubecontainer.config_objects import ConfigObjects
from ipc.kubecontainer.pod_status import RuntimePodStatus
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

OBJECTS_TOO_LARGE = "ObjectsTooLarge"
"""Event reason: the pod is synced without some of the ConfigMaps and Secrets that it refers to."""


class Dispatcher:
    """Decides for the pods that were touched, and ends lives of which nothing is left."""

    def __init__(self, parts: LoopParts, updates: PodUpdates) -> None:
        self._parts = parts
        self._updates = updates
        self._lives = parts.lives
        self._out = parts.out
        self._delivery = ObjectDelivery(parts.objects)

    def dispatch_touched(self, now: Instant) -> None:
        """Only pods that this event concerns: a turn costs nothing for all the others."""
        while uids := self._lives.take_touched():
            for uid in uids:
                life = self._lives.get(uid)
                if life is None or life.in_flight is None:
                    self._lives.touch(self._delivery.unload(uid))
                if life is not None and life.wants_dispatch():
                    self._dispatch(life, now)
                if life is not None and uid in self._lives:
                    probing, entry = self._parts.probing, self._parts.cache.entry(uid)
                    is_left_alone = self._is_left_alone(life, now)
                    self._out.send_all(probing.tell(life, entry, self._out.is_up, is_left_alone=is_left_alone))

    def look_again_at_sources(self) -> None:
        """Pods that wait for sources which were not read yet do so for a while only."""
        self._lives.touch(self._delivery.take_early())

    def terminate_if_terminal(self, life: PodLifecycle, now: Instant) -> None:
        """What its status says, or its deadline, ends a pod with its normal grace; a sync in flight is in the way."""
        ended = life.phase is WorkType.SYNC and self._parts.announcer.report(life, now) in TERMINAL_PHASES
        if ended and life.terminate():
            self._out.cancel_sync(life)

    def _dispatch(self, life: PodLifecycle, now: Instant) -> None:
        """Steps 4 to 6 of a pod's way: a view that is new enough, the status before acting, then the worker."""
        entry = self._parts.looks.newer_than(life.uid, life.acted_at)
        if entry is None:
            return
        self._settle(life, entry.status, now)
        if life.at_rest:
            return
        slot, incarnation, suspects = life.slot, self._out.incarnation(life.slot), self._parts.suspects
        if incarnation is None or not suspects.may_sync(slot, life.uid, now.mono):
            return
        found = self._loaded(life, now)
        if found is None:
            return
        self._tell_too_large(life, found, now)
        suspects.dispatched(slot, life.uid, now.mono)
        garbage = life.garbage
        sync = _sync_pod(life, life.dispatched(slot, incarnation), entry, garbage, found.objects)
        self._out.send(slot, _stop_by_labels(sync) if self._kills_going_down(life) else sync)

    def _is_left_alone(self, life: PodLifecycle, now: Instant) -> bool:
        """By probes: after it has killed a worker, and when it goes down, which must not fail because of them."""
        suspects = self._parts.suspects
        goes_down = life.phase is not WorkType.SYNC
        return suspects.is_isolated(life.uid, now.mono) or (goes_down and suspects.is_convict(life.uid))

    def _kills_going_down(self, life: PodLifecycle) -> bool:
        """A convict that goes down is tried once as its manifest has it: a removal always comes to its end."""
        return life.phase is not WorkType.SYNC and self._parts.suspects.strikes(life.uid) > 0

    def _loaded(self, life: PodLifecycle, now: Instant) -> PodObjects | None:
        """What its sync takes along; None when it has to wait, for a while too when that cannot be put together."""
        try:
            return self._delivery.load(life, now)
        except Exception as error:
            self._parts.announcer.fault(life, "what the pod refers to cannot be delivered", error, now)
            self._parts.queue.enqueue(life.uid, now.mono + BACK_OFF_PERIOD_S)
            return None

    def _tell_too_large(self, life: PodLifecycle, found: PodObjects, now: Instant) -> None:
        if found.too_large:
            names = ", ".join(f"{ref.kind} {ref.name}" for ref in found.too_large)
            message = f"what the pod refers to is larger than {MAX_POD_BYTES} bytes in all; it goes on without {names}"
            self._parts.announcer.pod_event(life, "Warning", OBJECTS_TOO_LARGE, message, now)

    def _settle(self, life: PodLifecycle, view: RuntimePodStatus, now: Instant) -> None:
        """Phase changes that need no worker: a terminal pod goes down, a pod that is down is done."""
        before = life.phase
        self.terminate_if_terminal(life, now)
        life.settle(view)
        if life.phase is not before:
            self._parts.announcer.report(life, now)
        if life.finished and life.removed:
            self._forget(life, now)

    def _forget(self, life: PodLifecycle, now: Instant) -> None:
        """Nothing of it is left; a successor begins anew."""
        self._lives.end(life)
        self._parts.looks.forget(life.uid)
        self._parts.queue.remove(life.uid)
        self._parts.usage.drop(life.uid)
        self._parts.suspects.forget(life.uid)
        self._parts.announcer.forget(life.uid)
        self._out.send_all(self._parts.probing.forget(life.uid))
        self._out.to_node(Untrack(uid=life.uid))
        self._out.to_api(self._parts.reporter.gone(life.uid))
        if life.successor is not None:
            self._updates.add(life.successor, life.source, now)


def _sync_pod(
    life: PodLifecycle, flight: InFlight, entry: CacheEntry, garbage: tuple[str, ...], objects: ConfigObjects
) -> SyncPod:
    is_inline = entry.row < 0
    return SyncPod(
        uid=life.uid,
        generation=flight.generation,
        incarnation=flight.incarnation,
        kind=flight.kind,
        pod=life.pod,
        row=entry.row,
        min_observed_at=life.acted_at,
        status=msgspec.structs.replace(entry.status, observed_at=entry.observed_at) if is_inline else None,
        grace_period_s=life.grace_period_s,
        remove=life.removed,
        garbage=garbage,
        restarting_all=is_restarting_all(life.status),
        pull_failures=life.pull_failures,
        verdicts=dict(life.verdicts),
        evicted=life.eviction.message if life.eviction is not None else "",
        objects=objects,
    )


def _stop_by_labels(sync: SyncPod) -> SyncPod:
    """As an orphan's, and without a hook: nothing that its manifest says is acted on any more."""
    return msgspec.structs.replace(sync, pod=None, grace_period_s=0, objects=ConfigObjects())
