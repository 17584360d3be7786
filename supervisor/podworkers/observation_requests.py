"""The newest look at every pod, and who has to be looked at again.

The node worker is asked once per pod and answers every question sooner or later; a new node worker is asked again for
everything that is still open. So a look that is needed is always under way, and never two for one need.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.node_worker import Observation
from supervisor.podworkers.board_rows import NO_ROW
from supervisor.podworkers.pod_cache import CacheEntry, PodCache


class ObservationRequests:
    """Owns the pod cache and the questions to the node worker."""

    def __init__(self) -> None:
        self.cache = PodCache()
        self._awaited: set[str] = set()
        """Asked for and not answered."""
        self._asked: set[str] = set()
        """To be asked for with the next `questions`."""

    def newer_than(self, uid: str, mono: float) -> CacheEntry | None:
        """A view that is newer than that, or None, and then one is on its way."""
        entry = self.cache.newer_than(uid, mono)
        if entry is None and uid not in self._awaited:
            self._asked.add(uid)
        return entry

    def ask(self, uid: str) -> None:
        """A look from now on, whatever is under way."""
        self._asked.add(uid)

    def ask_again(self) -> None:
        """Whoever was asked is gone."""
        self._asked |= self._awaited

    def questions(self) -> tuple[str, ...]:
        """Pods to ask for now."""
        asked, self._asked = self._asked, set()
        self._awaited |= asked
        return tuple(sorted(asked))

    def take(self, observation: Observation, *, wanted: bool) -> RuntimePodStatus | None:
        """Store it; the status if that of a wanted pod changed. A row that could not be read is looked at again."""
        uid, status = observation.uid, observation.status
        if status is None:
            if wanted:
                self.cache.doubt(uid)
                self._asked.add(uid)
            return None
        self._awaited.discard(uid)
        if not wanted and status.is_empty() and not status.lost_attempts:
            self.cache.delete(uid)
            return None
        changed = self.cache.set(status, observation.row if wanted else NO_ROW)
        return status if changed and wanted else None

    def absent(self, relisted_at: float, shown: Iterable[Observation], untracked: Iterable[str]) -> list[Observation]:
        """Of pods that nobody tracks: what a relist does not show is not there."""
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
            if uid not in seen
        ]

    def relisted(
        self, started_at: float, unseen: Iterable[str], acted_at: Callable[[str], float | None]
    ) -> Collection[str]:
        """A full relist is a look at everybody but the ``unseen``: those that waited. ``acted_at``: None for a pod that
        is forgotten."""
        self.cache.relisted(started_at, unseen)
        waited = self._awaited
        self._awaited = {uid for uid in waited if not self._is_answered(uid, acted_at(uid))}
        return waited

    def forget(self, uid: str) -> None:
        self.cache.delete(uid)
        self._awaited.discard(uid)

    def _is_answered(self, uid: str, acted_at: float | None) -> bool:
        return acted_at is None or self.cache.newer_than(uid, acted_at) is not None
