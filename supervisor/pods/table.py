"""Every pod that the sync loop knows: its record, its row on the board, and the pod worker that owns it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectRef
from supervisor.pods.board_rows import NO_ROW, RowAllocator
from supervisor.pods.parts import KnownPods
from supervisor.pods.record import PodRecord
from supervisor.pods.sharding import MAX_MOVES, Shards, WorkerLimits
from supervisor.processes.worker_pool import QUARANTINE_SLOT


class PodTable:
    """Pod records by UID. An iteration over them must not add or forget any."""

    def __init__(self, limits: WorkerLimits, rows: int, is_up: Callable[[int], bool], known: KnownPods) -> None:
        """``is_up``: whether a worker is in that slot."""
        self._known = known
        self._is_up = is_up
        self._states: dict[str, PodRecord] = {}
        self._limits = limits
        self._shards = Shards(limits)
        self._rows = RowAllocator(rows)
        self._with_deadline: list[PodRecord] = []
        """Pods whose manifest has, or had, activeDeadlineSeconds."""
        self._active: list[PodRecord] = []
        """Pods to which something has happened since the last tick."""
        self._quieter: deque[tuple[float, PodRecord]] = deque()
        """When the others are quiet, earliest first; passed over where something has happened since."""
        self._touched: set[str] = set()
        """UIDs of pods that this event may have made ready for dispatch: the dispatcher's work queue. Handlers name
        pods that are gone, too."""
        self._concerned: set[str] = set()
        """UIDs of pods that were touched or changed since `take_concerned`, of those that are gone, too: the work queue
        of who plans for all pods."""

    def __iter__(self) -> Iterator[PodRecord]:
        return iter(self._states.values())

    def __contains__(self, uid: object) -> bool:
        return uid in self._states

    def __len__(self) -> int:
        return len(self._states)

    def get(self, uid: str) -> PodRecord | None:
        return self._states.get(uid)

    def uids(self) -> Collection[str]:
        return self._states.keys()

    @property
    def pods_per_slot(self) -> Mapping[int, int]:
        return self._shards.pods_per_slot()

    def touch(self, uids: Iterable[str]) -> None:
        """Mark pods that this event concerns; unknown UIDs do no harm."""
        self._touched.update(uids)

    def take_touched(self) -> list[str]:
        """UIDs that were touched since the last call, in their order."""
        touched, self._touched = sorted(self._touched), set()
        self._concerned.update(touched)
        return touched

    def take_concerned(self) -> Collection[str]:
        """UIDs of the pods that events have concerned since the last call, of pods that are gone among them: nothing
        of any other has changed."""
        concerned, self._concerned = self._concerned | self._touched, set()
        return concerned

    def begin(self, uid: str, name: str, pod: Pod | None, source: str) -> PodRecord:
        """Enter a pod; without ``pod`` it is an orphan."""
        slot = self._shards.assign(self._is_up)
        state = self._states[uid] = PodRecord(uid, name, pod, source, slot, self._rows.assign(), self._known.track(uid))
        self._active.append(state)
        self._note_deadline(state, None)
        return state

    def update(self, state: PodRecord, pod: Pod) -> None:
        """A newer desired pod."""
        self.note_activity(state)
        before = state.pod
        state.update(pod)
        self._concerned.add(state.uid)
        self._note_deadline(state, before)

    def note_activity(self, state: PodRecord) -> None:
        """Something happens to the pod: for a while it counts as a whole one."""
        if state.is_quiet:
            self._shards.quieten(state.slot, -1)
        if state.quiet_at < math.inf:
            state.is_quiet_from(math.inf)
            self._active.append(state)

    def _note_deadline(self, state: PodRecord, before: Pod | None) -> None:
        if _has_deadline(state.pod) and not _has_deadline(before):
            self._with_deadline.append(state)

    def with_deadline(self) -> Collection[PodRecord]:
        """Pods that may only be active for so long."""
        left = [state for state in self._with_deadline if _has_deadline(state.pod) and self._has(state)]
        self._with_deadline = left
        return left

    def _has(self, state: PodRecord) -> bool:
        """Whether something is left of that pod."""
        return self._states.get(state.uid) is state

    def end(self, state: PodRecord) -> None:
        """Forget a pod of which nothing is left, and all that is known of it."""
        del self._states[state.uid]
        self._known.forget(state.uid, is_stated=state.successor is not None)
        state.clear()
        self._concerned.add(state.uid)
        self._rows.give_back(state.row)
        self._shards.release(state.slot, is_quiet=state.is_quiet)

    @property
    def workers(self) -> int:
        """Number of pod workers that are wanted."""
        return self._shards.workers

    @property
    def quarantine(self) -> bool:
        """Whether there is to be a worker more, for pods that kill theirs."""
        return self._shards.quarantine

    def limit_workers(self, limits: WorkerLimits) -> None:
        """Replace the limits on the number of workers."""
        self._limits = limits
        self._shards.limit(limits)

    def fit_workers(self, now_mono: float) -> None:
        """Fewer pods, or quiet ones, may need fewer workers. (For more of them there are more as soon as they
        `begin`.) A pod that is probed or at work is not quiet."""
        active, self._active = self._active, []
        for state in active:
            state.is_quiet_from(now_mono + self._limits.quiet_after_s)
            self._quieter.append((state.quiet_at, state))
        while self._quieter and self._quieter[0][0] <= now_mono:
            at, state = self._quieter.popleft()
            if state.quiet_at != at or not self._has(state):
                continue
            if state.is_probed or state.lifecycle.in_flight is not None:
                self.note_activity(state)
            else:
                state.is_quiet_from(-math.inf)
                self._shards.quieten(state.slot, 1)
        self._shards.fit()

    def move(self, is_up: Callable[[int], bool], quarantined: Collection[str] = ()) -> list[PodRecord]:
        """Move pods to workers that have fewer, away from those that go, or into quarantine; those that moved,
        at most MAX_MOVES.

        Only between two syncs, so that a pod never has two actors.
        """
        if not quarantined and not self._shards.uneven(is_up):
            return []
        moved: list[PodRecord] = []
        for state in self:
            if (
                len(moved) < MAX_MOVES
                and state.lifecycle.can_move
                and self._move(state, self._place(state, is_up, quarantined))
            ):
                moved.append(state)
        return moved

    def confine(self, state: PodRecord) -> None:
        """Move a pod to quarantine in whatever phase: its worker has just died, and nothing of it is left there."""
        self._move(state, QUARANTINE_SLOT)

    def _place(self, state: PodRecord, is_up: Callable[[int], bool], quarantined: Collection[str]) -> int:
        if state.uid in quarantined:
            return QUARANTINE_SLOT
        return self._shards.better_slot(state.slot, is_up, is_quiet=state.is_quiet)

    def _move(self, state: PodRecord, slot: int) -> bool:
        if slot == state.slot:
            return False
        self._shards.move(state.slot, slot, is_quiet=state.is_quiet)
        state.move(slot)
        return True

    def vacated(self) -> Iterator[int]:
        """Slots that are wanted no more and have no pods left; each is named once."""
        return self._shards.vacated()

    def named(self, namespace: str, name: str) -> list[PodRecord]:
        """Pods of that name; more than one while an older one goes down."""
        return [state for state in self if state.name == f"{namespace}/{name}"]

    def referring_to(self, keys: Collection[ObjectKey]) -> list[PodRecord]:
        """Pods that refer to one of these objects."""
        by_namespace: dict[str, set[ObjectRef]] = {"": set()}
        for key in keys:
            by_namespace.setdefault(key.namespace, set()).add(ObjectRef(key.kind, key.name))
        anywhere = by_namespace[""]
        return [
            state
            for state in self
            if state.pod is not None
            and state.references & (by_namespace.get(state.pod.metadata.namespace, anywhere) | anywhere)
        ]

    def wanted(self) -> set[str]:
        """UIDs of the pods that are not on their way out."""
        return {state.uid for state in self if not state.lifecycle.removed}

    def without_row(self) -> list[str]:
        """UIDs of the pods for which the board had no room."""
        return [state.uid for state in self if state.row == NO_ROW]


def _has_deadline(pod: Pod | None) -> bool:
    return pod is not None and pod.spec.active_deadline_seconds is not None
