"""Containers that were touched since their pod was observed, and pods of which they are not known. No I/O.

An observation of a pod inspects containers that were touched or whose state does not last; the others are as they were.
So it costs Podman the same whatever else there is, where a filtered list goes through every pod: 3.6 ms of CPU beside 6
pods, 7.2 beside 600 (4.3.1). A sync tells in its answer which containers it has touched; Podman's events tell of the
acts of others. A relist finds the act whose event was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

import msgspec

from workers.kubecontainer.look import Look

LATE_S: Final = 600.0
"""How long a pod is listed after an act that has failed, in seconds: what was given up may still be carried out."""
MAX_TOUCHED: Final = 64
"""Containers of one pod that are inspected one by one: beyond, the pod is listed."""


class Doubts(msgspec.Struct, frozen=True):
    """Containers of a pod that may have changed."""

    touched: frozenset[str] = frozenset()
    """Containers, by id or name, and sandboxes, by id, that may not be as they were observed."""
    removed: frozenset[str] = frozenset()
    """Containers and sandboxes, by id, of which Podman has answered that they were removed."""
    hinted: frozenset[tuple[str, float]] = frozenset()
    """Containers, by id, that Podman has told an event of, and when, in epoch seconds. Most were touched as well."""
    looks: tuple[Look, ...] = ()
    """Containers as a sync has seen them: what became of them since, the others tell."""
    is_unsure: bool = False
    """The pod may have containers of which nothing is known: only a list shows them."""

    def __or__(self, other: Doubts) -> Doubts:
        touched, hinted = self.touched | other.touched, self.hinted | other.hinted
        removed = self.removed | other.removed
        is_unsure = self.is_unsure or other.is_unsure or len(touched) + len(hinted) > MAX_TOUCHED
        return Doubts(is_unsure=True) if is_unsure else Doubts(touched, removed, hinted, self.looks + other.looks)


NO_DOUBTS: Final = Doubts()


class Touched:
    """The doubts about every pod."""

    def __init__(self) -> None:
        self._doubts: dict[str, Doubts] = {}
        self._suspect_until: dict[str, float] = {}
        """Monotonic seconds, by uid."""
        self._knows_all = False
        """Everything was listed: a pod that was not seen had nothing then."""

    def add(
        self,
        uid: str,
        references: Iterable[str] = (),
        *,
        removed: Iterable[str] = (),
        looks: tuple[Look, ...] = (),
        unsure: bool = False,
    ) -> None:
        """Containers of the pod were made, changed or removed, or may have been. ``removed``: containers and sandboxes
        that are gone for certain. ``looks``: containers as a sync has seen them after its acts on them."""
        self.restore(uid, Doubts(frozenset(references), frozenset(removed), looks=looks, is_unsure=unsure))

    def hint(self, uid: str, container_id: str, wall: float) -> None:
        """Podman has told an event of that container."""
        self.restore(uid, Doubts(hinted=frozenset({(container_id, wall)})))

    def suspect(self, uid: str, now: float) -> None:
        """An act on the pod has failed, or its end is not known. ``now`` in monotonic seconds. It may come when the pod
        was forgotten, and another one under its UID has to find what it leaves."""
        self._suspect_until = {other: until for other, until in self._suspect_until.items() if until > now}
        self._suspect_until[uid] = now + LATE_S

    def needs_list(self, uid: str, now: float) -> bool:
        """Whether only a list shows all containers of that pod. ``now`` in monotonic seconds."""
        if not self._knows_all or self._doubts.get(uid, NO_DOUBTS).is_unsure:
            return True
        if self._suspect_until.get(uid, now) > now:
            return True
        self._suspect_until.pop(uid, None)
        return False

    def take(self, uid: str) -> Doubts:
        """The doubts that an observation which begins now removes. One that fails puts them back with `restore`."""
        return self._doubts.pop(uid, NO_DOUBTS)

    def restore(self, uid: str, doubts: Doubts) -> None:
        if doubts != NO_DOUBTS:
            self._doubts[uid] = self._doubts.get(uid, NO_DOUBTS) | doubts

    def all(self) -> dict[str, Doubts]:
        """Doubts about every pod, by uid, for `listed_all`."""
        return dict(self._doubts)

    def listed_all(self, before: Mapping[str, Doubts], failed: Set[str]) -> None:
        """Everything was listed, but for these pods. ``before``: the doubts that the list removes, where none was added
        since."""
        self._knows_all = True
        for uid, doubts in before.items():
            if self._doubts.get(uid) is doubts:
                del self._doubts[uid]
        for uid in failed:
            self.add(uid, unsure=True)
