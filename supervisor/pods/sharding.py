"""Number of pod workers, and the assignment of pods to them.

A hash of the UID would need no memory but leaves one of two workers with 35 of 60 pods now and then, and the slower
shard is what a start takes. A pod may move between two syncs: nothing of it is in a worker while none is in flight.

A quiet pod, to which nothing has happened for a while, counts as a fifth of one.
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
MEANWHILE: Final = 1.5
"""How full a worker may become while the next one comes, of what brings it."""
QUIET_PER_BUSY: Final = 5
"""So many quiet pods count as a busy one: one worker has 2000 of them by default."""


class WorkerLimits(msgspec.Struct, frozen=True):
    """Limits on the number of pod workers."""

    count: int
    """At most so many."""
    pods_per_worker: int = 0
    """One more comes when each of the others has so many. 0: all are there always."""
    quiet_after_s: float = math.inf
    """A pod to which nothing has happened for so long is quiet."""


def worker_limits(settings: Settings) -> WorkerLimits:
    """Limits as configured."""
    workers = settings.workers
    return WorkerLimits(workers.count, workers.pods_per_worker, float(workers.idle_timeout_s))


def workers_wanted(load: float, there: int, limits: WorkerLimits) -> int:
    """Number of workers that a load needs, in busy pods. One that is there stays while the others would be nearly full
    without it: a pod more or less does not make and end processes."""
    if not limits.pods_per_worker:
        return limits.count
    needed = math.ceil(load / limits.pods_per_worker)
    kept = min(there, math.ceil(load / (FILLED * limits.pods_per_worker)))
    return max(1, min(limits.count, max(needed, kept)))


def least_loaded(slots: Sequence[int], load_of: Callable[[int], int]) -> int:
    """The slot with the least load, the first of several."""
    return min(slots, key=load_of)


class Shards:
    """Number of pods of each slot. Slots beyond the number of workers are closed and give theirs away."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self._open: tuple[int, ...] = ()
        self._pods: dict[int, int] = {}
        self._quiet: dict[int, int] = {}
        """How many of them are quiet."""
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
        load = sum(map(self._load, self._pods)) / QUIET_PER_BUSY + more
        workers = workers_wanted(load, self.workers, self._limits)
        self._open = tuple(range(FIRST_POD_SLOT, FIRST_POD_SLOT + workers))
        self._pods |= {slot: 0 for slot in self._open if slot not in self._pods}

    def assign(self, is_up: Callable[[int], bool] = lambda _: True) -> int:
        """A slot for one pod more. The pods that bring another worker do not wait for it and move later, unless they
        are so many that those who are there would have too much to do."""
        self.fit(more=1)
        room = MEANWHILE * QUIET_PER_BUSY * self._limits.pods_per_worker
        up = [slot for slot in self._open if is_up(slot) and self._load(slot) < room]
        slot = least_loaded(up or self._open, self._load)
        self._pods[slot] += 1
        return slot

    def _load(self, slot: int) -> int:
        """Load of all pods in that slot, in quiet ones."""
        quiet = self._quiet.get(slot, 0) if self._limits.pods_per_worker else 0
        return QUIET_PER_BUSY * self._pods.get(slot, 0) - (QUIET_PER_BUSY - 1) * quiet

    def quieten(self, slot: int, pods: int) -> None:
        """So many pods more in that slot are quiet, or fewer."""
        self._quiet[slot] = self._quiet.get(slot, 0) + pods

    def release(self, slot: int, *, is_quiet: bool = False) -> None:
        """Take one pod from that slot."""
        self._pods[slot] -= 1
        self.quieten(slot, -is_quiet)

    @property
    def quarantine(self) -> bool:
        """Whether any pod is in the quarantine slot. That is never open, so that who need not be there moves away."""
        return self._pods.get(QUARANTINE_SLOT, 0) > 0

    def pods_per_slot(self) -> Mapping[int, int]:
        return self._pods

    def better_slot(self, slot: int, is_up: Callable[[int], bool], *, is_quiet: bool = False) -> int:
        """Slot in which a pod of that slot should be: another if the slot is closed, or has two busy pods more than
        that. A quiet pod stays where it is while its slot is open: to move it costs more than it weighs."""
        up = [other for other in self._open if is_up(other)]
        if not up or (is_quiet and self._limits.pods_per_worker and slot in self._open):
            return slot
        best = least_loaded(up, self._load)
        is_better = slot not in self._open or self._load(slot) > self._load(best) + QUIET_PER_BUSY
        return best if is_better else slot

    def move(self, old: int, new: int, *, is_quiet: bool = False) -> None:
        self.release(old, is_quiet=is_quiet)
        self._pods[new] = self._pods.get(new, 0) + 1
        self.quieten(new, is_quiet)

    def uneven(self, is_up: Callable[[int], bool]) -> bool:
        """Whether any pod should move."""
        return any(
            count and self.better_slot(slot, is_up, is_quiet=count == self._quiet.get(slot, 0)) != slot
            for slot, count in self._pods.items()
        )

    def vacated(self) -> Iterator[int]:
        """Closed slots whose last pod is gone; each is named once."""
        for slot in [slot for slot, count in self._pods.items() if slot not in self._open and not count]:
            del self._pods[slot]
            self._quiet.pop(slot, None)
            yield slot
