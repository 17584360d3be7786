"""The newest observation of every pod, when each was last acted on, and which pods have to be observed again.

A sync acts on an observation that is newer than the last act alone (pkg/kubelet/pod_workers.go, podWorkerLoop:
GetNewerThan(lastSyncTime)). The node worker is asked once per pod and answers every request sooner or later; a new node
worker is asked again for everything that is still open. So an observation that is needed is always under way, and never
two for one need.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages.node_worker import Observation, Observe
from ipc.link.messages.pod_worker import NO_EFFECTS, SyncEffects
from supervisor.pods.board_rows import NO_ROW
from supervisor.pods.cache import PodCache
from supervisor.pods.parts import Acts, CacheEntry, KnownPods


class ObservationRequests:
    """Owns the pod cache, the acts on each pod and the requests to the node worker."""

    def __init__(
        self, known: KnownPods, with_ended: Callable[[RuntimePodStatus], RuntimePodStatus] = lambda status: status
    ) -> None:
        """``with_ended`` as of the pod cache."""
        self.cache = PodCache(known, with_ended)
        self._known = known
        self._due: set[str] = set()
        """To be requested with the next `take_request`."""
        self._number = 0
        """Number of the newest request."""
        known.on_forget(lambda uid, _: self._due.discard(uid))

    # --- the last act on each pod --------------------------------------------------------------------------------

    def track(self, uid: str, acted_at: float) -> None:
        """A pod from now on. ``acted_at``: no view observed before that may be acted on."""
        self._known.of(uid).acts = Acts(acted_at, acted_at)

    def acted(self, uid: str, now_mono: float, *, with_effect: bool) -> None:
        """A sync of the pod has ended. ``with_effect``: views that are older than it may be no longer true."""
        parts = self._known.of(uid)
        with_effect_at = now_mono if with_effect else parts.acts.with_effect_at
        parts.acts = replace(parts.acts, at=now_mono, with_effect_at=with_effect_at)

    def lost(self, uid: str, now_mono: float) -> None:
        """The sync of the pod died with its worker: its effect is unknown."""
        parts = self._known.of(uid)
        parts.acts = replace(parts.acts, at=now_mono, with_effect_at=now_mono)
        self.touched(uid, SyncEffects(unsure=True))

    def touched(self, uid: str, effects: SyncEffects) -> None:
        """A sync has touched containers of the pod, or may have: an observation of them is due."""
        parts = self._known.of(uid)
        parts.acts = replace(
            parts.acts,
            untold=parts.acts.untold | effects,
            was_unsure=parts.acts.was_unsure or effects.unsure,
            needed=self._number + 1,
        )
        self._due.add(uid)

    def accept_older(self, uid: str) -> None:
        """For a periodic sync, and for one that a change of the view asks for, a view will do that is newer than the
        last act with an effect: when that sync found nothing to do, what was seen before it is as true as it was.
        Upstream wants a newer view all the same, which its relist every second has at hand
        (pkg/kubelet/pod_workers.go, podWorkerLoop)."""
        parts = self._known.of(uid)
        parts.acts = replace(parts.acts, at=parts.acts.with_effect_at)

    def acted_at(self, uid: str) -> float:
        """No view of the pod that was observed before this (monotonic seconds) may be acted on."""
        return self._known.find(uid).acts.at

    # --- requests ------------------------------------------------------------------------------------------------

    def known_newer(self, uid: str) -> CacheEntry | None:
        """A view that is newer than the last act, or None."""
        return self.cache.newer_than(uid, self.acted_at(uid))

    def newer(self, uid: str) -> CacheEntry | None:
        """A view that is newer than the last act, or None, and then one is on its way."""
        entry = self.known_newer(uid)
        if entry is None and not self.is_under_way(uid):
            self._due.add(uid)
        return entry

    def is_under_way(self, uid: str) -> bool:
        """Whether an observation of the pod was asked for, or is with the next request."""
        return uid in self._due or self._known.find(uid).acts.is_asked

    def ask_again(self) -> None:
        """The node worker that was asked is gone. The next one begins with everything that there is, which answers what
        is not asked again. But it may have begun before an act of which the request that told has not arrived, and has
        to be told what may come late."""
        for uid, parts in self._known.items():
            acts = parts.acts
            is_missed = acts.is_asked and acts.needed > 0
            is_unsure = acts.was_unsure or is_missed
            untold = acts.untold | SyncEffects(unsure=is_unsure)
            needed = self._number + 1 if is_missed else 0
            parts.acts = Acts(acts.at, acts.with_effect_at, untold, is_unsure, acts.is_asked, acts.is_asked, needed)
            if is_unsure:
                self._due.add(uid)

    def take_request(self) -> Observe | None:
        """The request to send now."""
        if not self._due:
            return None
        self._number += 1
        uids, effects = tuple(sorted(self._due)), dict[str, SyncEffects]()
        self._due.clear()
        for uid in uids:
            parts = self._known.of(uid)
            if parts.acts.untold != NO_EFFECTS:
                effects[uid] = parts.acts.untold
            parts.acts = replace(parts.acts, untold=NO_EFFECTS, is_asked=True, was_asked_before=False)
        return Observe(uids=uids, number=self._number, effects=effects)

    # --- answers -------------------------------------------------------------------------------------------------

    def take(self, observation: Observation) -> RuntimePodStatus | None:
        """Store the observation; the status if that of a tracked pod changed. One that could not be read is requested
        again."""
        uid, status, parts = observation.uid, observation.status, self._known.of(observation.uid)
        acts, tracked = parts.acts, parts.is_tracked
        if status is None:
            if tracked:
                self.cache.invalidate(uid)
                self._due.add(uid)
            self._known.tidy(uid)
            return None
        if observation.answers < acts.needed:
            # The worker's answer may be true, but not of what the last act has made: it is no newer than that.
            status = replace(status, observed_at=min(status.observed_at, acts.with_effect_at))
        else:
            is_seen = tracked and status.observed_at > acts.with_effect_at
            parts.acts = replace(acts, is_asked=False, needed=0 if is_seen else acts.needed)
        if not tracked and status.is_empty() and not status.lost_attempts:
            self.cache.delete(uid)
            return None
        changed = self.cache.set(status, observation.row if tracked else NO_ROW)
        return status if changed and tracked else None

    def absent(self, relisted_at: float, shown: Iterable[Observation], untracked: Iterable[str]) -> list[Observation]:
        """Observations of pods without a row: a pod that a relist does not show is not there. Pods that were observed
        since it began are passed over."""
        seen = {observation.uid for observation in shown}
        return [
            Observation(
                uid=uid,
                observed_at=relisted_at,
                changed=True,
                row=NO_ROW,
                status=RuntimePodStatus(uid=uid, observed_at=relisted_at),
            )
            for uid in untracked
            if uid not in seen and self.cache.get(uid).observed_at <= relisted_at
        ]

    def relisted(self, started_at: float, unseen: Collection[str]) -> Collection[str]:
        """A full relist observes every pod but the ``unseen``: the pods that waited for an observation."""
        self.cache.relisted(started_at, unseen)
        waited = {uid: parts for uid, parts in self._known.items() if parts.acts.is_asked}
        for uid, parts in waited.items():
            is_open = parts.is_tracked and self.known_newer(uid) is None
            if is_open and parts.acts.was_asked_before and uid not in unseen:
                self._due.add(uid)  # acted on since that relist began
            parts.acts = replace(parts.acts, is_asked=is_open, was_asked_before=False)
        return waited.keys()
