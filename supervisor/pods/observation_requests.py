"""The newest observation of every pod, when each was last acted on, and which pods have to be observed again.

A sync acts on an observation that is newer than the last act alone (pkg/kubelet/pod_workers.go, podWorkerLoop:
GetNewerThan(lastSyncTime)). The node worker is asked once per pod and answers every request sooner or later; a new node
worker is asked again for everything that is still open. So an observation that is needed is always under way, and never
two for one need.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages.node_worker import Observation, Observe
from supervisor.pods.board_rows import NO_ROW
from supervisor.pods.cache import CacheEntry, PodCache


class _Act(msgspec.Struct, frozen=True):
    """When a pod was last acted on, monotonic seconds."""

    at: float
    """No view observed before this may be acted on."""
    with_effect_at: float
    """The last act that had any effect, as far as is known."""


class _Untold(msgspec.Struct, frozen=True):
    """News of acts on a pod that the node worker has not got: the next request tells them."""

    touched: tuple[str, ...] | None = None
    """None when no act on the pod is to be told; empty when one was, and it has touched nothing for certain."""
    removed: tuple[str, ...] = ()
    looks: tuple[bytes, ...] = ()
    """Containers as acts have seen them."""
    unsure: bool = False
    """Acts may have touched more."""


_NOTHING: Final = _Untold()


class ObservationRequests:
    """Owns the pod cache, the dates of the last acts and the requests to the node worker."""

    def __init__(self, with_ended: Callable[[RuntimePodStatus], RuntimePodStatus] = lambda status: status) -> None:
        """``with_ended`` as of the pod cache."""
        self.cache = PodCache(with_ended)
        self._acts: dict[str, _Act] = {}
        """The newest act on every tracked pod, by uid."""
        self._awaited: set[str] = set()
        """Requested and not answered."""
        self._asked: set[str] = set()
        """To be requested with the next `take_requests`."""
        self._left: set[str] = set()
        """Awaited pods that the first relist of a new node worker is to answer."""
        self._untold: dict[str, _Untold] = {}
        self._suspected: set[str] = set()
        """All pods of which that was ever told: a new node worker knows of none."""
        self._number = 0
        """Number of the newest request."""
        self._needed: dict[str, int] = {}
        """By uid: number of the request that told of its last act. An observation that does not know of it lacks what
        the act has made, however late it was."""

    # --- the last act on each pod --------------------------------------------------------------------------------

    def track(self, uid: str, acted_at: float) -> None:
        """A pod from now on. ``acted_at``: no view observed before that may be acted on."""
        self._acts[uid] = _Act(acted_at, acted_at)

    def acted(self, uid: str, now_mono: float, *, with_effect: bool) -> None:
        """A sync of the pod has ended. ``with_effect``: views that are older than it may be no longer true."""
        old = self._acts[uid]
        self._acts[uid] = _Act(now_mono, now_mono if with_effect else old.with_effect_at)

    def lost(self, uid: str, now_mono: float) -> None:
        """The sync of the pod died with its worker: its effect is unknown."""
        self._acts[uid] = _Act(now_mono, now_mono)
        self.touched(uid, (), unsure=True)

    def touched(self, uid: str, ids: Iterable[str], *, removed: Collection[str] = (), unsure: bool) -> None:
        """An act on the pod has touched these, and perhaps more: an observation of them is due. ``removed``: those that
        are gone for certain."""
        old = self._untold.get(uid, _NOTHING)
        self._untold[uid] = msgspec.structs.replace(
            old,
            touched=tuple(dict.fromkeys((*(old.touched or ()), *ids))),
            removed=tuple(dict.fromkeys((*old.removed, *removed))),
            unsure=old.unsure or unsure,
        )
        if unsure:
            self._suspected.add(uid)
        self._asked.add(uid)

    def looked(self, uid: str, looks: tuple[bytes, ...]) -> None:
        """Containers of the pod as an act has seen them: they need no inspect, unless they are touched again."""
        if looks:
            old = self._untold.get(uid, _NOTHING)
            self._untold[uid] = msgspec.structs.replace(old, looks=(*old.looks, *looks))

    def accept_older(self, uid: str) -> None:
        """For a periodic sync, and for one that a change of the view asks for, a view will do that is newer than the
        last act with an effect: when that sync found nothing to do, what was seen before it is as true as it was.
        Upstream wants a newer view all the same, which its relist every second has at hand
        (pkg/kubelet/pod_workers.go, podWorkerLoop)."""
        act = self._acts[uid]
        self._acts[uid] = _Act(act.with_effect_at, act.with_effect_at)

    def acted_at(self, uid: str) -> float:
        """No view of the pod that was observed before this (monotonic seconds) may be acted on."""
        return self._acts[uid].at

    def forget(self, uid: str) -> None:
        """Nothing of the pod is left."""
        self.cache.delete(uid)
        self._awaited.discard(uid)
        self._acts.pop(uid, None)
        self._needed.pop(uid, None)
        self._untold.pop(uid, None)
        self._suspected.discard(uid)

    # --- requests ------------------------------------------------------------------------------------------------

    def known_newer(self, uid: str) -> CacheEntry | None:
        """A view that is newer than the last act, or None."""
        return self.cache.newer_than(uid, self.acted_at(uid))

    def newer(self, uid: str) -> CacheEntry | None:
        """A view that is newer than the last act, or None, and then one is on its way."""
        entry = self.known_newer(uid)
        if entry is None and uid not in self._awaited:
            self._asked.add(uid)
        return entry

    def is_under_way(self, uid: str) -> bool:
        """Whether an observation of the pod was asked for, or is with the next request."""
        return uid in self._awaited or uid in self._asked

    def ask_again(self) -> None:
        """The node worker that was asked is gone. The next one begins with everything that there is, which answers what
        is not asked again. But it may have begun before an act of which the request that told has not arrived, and has
        to be told what may come late."""
        for uid in self._needed.keys() & self._awaited:
            self.touched(uid, (), unsure=True)
        self._asked |= self._suspected
        for uid in self._suspected:
            self._untold[uid] = msgspec.structs.replace(self._untold.get(uid, _NOTHING), unsure=True)
        self._needed.clear()
        self._left = set(self._awaited)

    def take_request(self) -> Observe | None:
        """The request to send now."""
        if not self._asked:
            return None
        asked, self._asked = self._asked, set()
        untold, self._untold = self._untold, {}
        touched = {uid: news.touched for uid, news in untold.items() if news.touched is not None}
        self._awaited |= asked
        self._left -= asked
        self._number += 1
        self._needed |= dict.fromkeys(touched, self._number)
        return Observe(
            uids=tuple(sorted(asked)),
            number=self._number,
            touched=touched,
            removed={uid: news.removed for uid, news in untold.items() if news.removed},
            looks={uid: news.looks for uid, news in untold.items() if news.looks},
            unsure=tuple(sorted(uid for uid, news in untold.items() if news.unsure)),
        )

    # --- answers -------------------------------------------------------------------------------------------------

    def take(self, observation: Observation) -> RuntimePodStatus | None:
        """Store the observation; the status if that of a tracked pod changed. One that could not be read is requested
        again."""
        uid, status, tracked = observation.uid, observation.status, observation.uid in self._acts
        if status is None:
            if tracked:
                self.cache.invalidate(uid)
                self._asked.add(uid)
            return None
        if observation.answers < self._needed.get(uid, 0):
            # The worker's answer may be true, but not of what the last act has made: it is no newer than that.
            before_act = min(status.observed_at, self._acts[uid].with_effect_at)
            status = msgspec.structs.replace(status, observed_at=before_act)
        else:
            self._awaited.discard(uid)
            if tracked and status.observed_at > self._acts[uid].with_effect_at:
                self._needed.pop(uid, None)
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
            if uid not in seen and not self._is_seen_since(uid, relisted_at)
        ]

    def _is_seen_since(self, uid: str, mono: float) -> bool:
        entry = self.cache.entry(uid)
        return entry is not None and entry.observed_at > mono

    def relisted(self, started_at: float, unseen: Iterable[str]) -> Collection[str]:
        """A full relist observes every pod but the ``unseen``: the pods that waited for an observation."""
        self.cache.relisted(started_at, unseen)
        waited = self._awaited
        self._awaited = {uid for uid in waited if not self._is_answered(uid)}
        self._asked |= (self._left & self._awaited).difference(unseen)  # acted on since that relist began
        self._left.clear()
        return waited

    def _is_answered(self, uid: str) -> bool:
        act = self._acts.get(uid)
        return act is None or self.cache.newer_than(uid, act.at) is not None
