"""Number of pod workers, and the assignment of pods to them.

A hash of the UID would need no memory but leaves one of two workers with 35 of 60 pods now and then, and the slower
shard is what a start takes. A pod may move between two syncs: nothing of it is in a worker while none is in flight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from supervisor.config.settings import Settings
from supervisor.processes.worker_pool import FIRST_POD_SLOT, QUARANTINE_SLOT

MAX_MOVES: Final = 100
"""Most pods that one round moves: each of them is reported to the API server."""
FILLED: Final = 0.75
"""How full the others may be, when a worker goes, of what brings the next one."""


class WorkerLimits(msgspec.Struct, frozen=True):
    """Limits on the number of pod workers."""

    count: int
    """At most so many."""
    pods_per_worker: int = 0
    """One more comes when each of the others has so many. 0: all are there always."""


def worker_limits(settings: Settings) -> WorkerLimits:
    """Limits as configured."""
    return WorkerLimits(settings.workers.count, settings.workers.pods_per_worker)


def workers_wanted(pods: int, there: int, limits: WorkerLimits) -> int:
    """As many as the pods need. One that is there stays while the others would be nearly full without it: a pod more
    or less does not make and end processes."""
    if not limits.pods_per_worker:
        return limits.count
    needed = math.ceil(pods / limits.pods_per_worker)
    kept = min(there, math.ceil(pods / (FILLED * limits.pods_per_worker)))
    return max(1, min(limits.count, max(needed, kept)))


def least_loaded(slots: Sequence[int], pods_per_slot: Mapping[int, int]) -> int:
    """The slot with the fewest pods, the first of several."""
    return min(slots, key=lambda slot: pods_per_slot.get(slot, 0))


class Shards:
    """Number of pods of each slot. Slots beyond the number of workers are closed and give theirs away."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self._open: tuple[int, ...] = ()
        self._pods: dict[int, int] = {}
        self.fit()

    @property
    def workers(self) -> int:
        """Number of open slots."""
        return len(self._open)

    def limit(self, limits: WorkerLimits) -> None:
        """Replace the limits."""
        self._limits = limits
        self.fit()

    def fit(self, more: int = 0) -> None:
        """Open and close slots by the number of pods, ``more`` of which are about to be assigned."""
        workers = workers_wanted(sum(self._pods.values()) + more, self.workers, self._limits)
        self._open = tuple(range(FIRST_POD_SLOT, FIRST_POD_SLOT + workers))
        self._pods |= {slot: 0 for slot in self._open if slot not in self._pods}

    def assign(self) -> int:
        """A slot for one pod more; perhaps a new one, where nobody is yet."""
        self.fit(more=1)
        slot = least_loaded(self._open, self._pods)
        self._pods[slot] += 1
        return slot

    def release(self, slot: int) -> None:
        """Take one pod from that slot."""
        self._pods[slot] -= 1

    @property
    def quarantine(self) -> bool:
        """Whether any pod is in the quarantine slot. That is never open, so that who need not be there moves away."""
        return self._pods.get(QUARANTINE_SLOT, 0) > 0

    def pods_per_slot(self) -> Mapping[int, int]:
        return self._pods

    def better_slot(self, slot: int, is_up: Callable[[int], bool]) -> int:
        """Slot in which a pod of that slot should be: another if the slot is closed, or has two pods more than that."""
        up = [other for other in self._open if is_up(other)]
        if not up:
            return slot
        best = least_loaded(up, self._pods)
        is_better = slot not in self._open or self._pods[slot] > self._pods[best] + 1
        return best if is_better else slot

    def move(self, old: int, new: int) -> None:
        self._pods[old] -= 1
        self._pods[new] = self._pods.get(new, 0) + 1

    def uneven(self, is_up: Callable[[int], bool]) -> bool:
        """Whether any pod should move."""
        return any(count and self.better_slot(slot, is_up) != slot for slot, count in self._pods.items())

    def vacated(self) -> Iterator[int]:
        """Closed slots whose last pod is gone; each is named once."""
        for slot in [slot for slot, count in self._pods.items() if slot not in self._open and not count]:
            del self._pods[slot]
            yield slot
