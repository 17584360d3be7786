"""Objects that the pods of this node refer to, counted (pkg/kubelet/util/manager, objectCache). Pure state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ipc.podobjects.config_objects import ObjectKey


class Difference(NamedTuple):
    """Objects to watch and to watch no longer, after a change of one pod."""

    wanted: frozenset[ObjectKey]
    """Nobody has referred to these before."""
    unwanted: frozenset[ObjectKey]
    """Nobody refers to these any more."""


class References:
    """Number of pods that refer to each object."""

    def __init__(self) -> None:
        self._of_pod: dict[str, frozenset[ObjectKey]] = {}
        """By UID."""
        self._counts: Counter[ObjectKey] = Counter()

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._counts

    def state(self, uid: str, keys: Iterable[ObjectKey]) -> Difference:
        """The pod refers to exactly these from now on; to none of them: it has gone."""
        before, now = self._of_pod.pop(uid, frozenset()), frozenset(keys)
        if now:
            self._of_pod[uid] = now
        wanted = frozenset(key for key in now - before if key not in self._counts)
        self._counts.update(now - before)
        self._counts.subtract(before - now)
        unwanted = frozenset(key for key in before - now if not self._counts[key])
        for key in unwanted:
            del self._counts[key]
        return Difference(wanted, unwanted)
