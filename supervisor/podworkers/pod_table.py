"""Every pod that the sync loop knows: its life, its place on the board, and which pod worker owns it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.config_objects import ObjectKey, ObjectRef
from supervisor.podworkers.board_rows import NO_ROW, RowAllocator
from supervisor.podworkers.pod_lifecycle import PodLifecycle
from supervisor.podworkers.sharding import MAX_MOVES, Shards, WorkerLimits
from supervisor.processes.worker_pool import QUARANTINE_SLOT


class Lives:
    """Lives by UID. Iterates over them, so that what is iterated may not add or forget any."""

    def __init__(self, limits: WorkerLimits, rows: int) -> None:
        self._lives: dict[str, PodLifecycle] = {}
        self._shards = Shards(limits)
        self._rows = RowAllocator(rows)
        self._touched: set[str] = set()
        """Pods that this event may have made ready for dispatch."""

    def __iter__(self) -> Iterator[PodLifecycle]:
        return iter(self._lives.values())

    def __contains__(self, uid: object) -> bool:
        return uid in self._lives

    def __len__(self) -> int:
        return len(self._lives)

    def get(self, uid: str) -> PodLifecycle | None:
        return self._lives.get(uid)

    def uids(self) -> Collection[str]:
        return self._lives.keys()

    @property
    def pods_per_slot(self) -> Mapping[int, int]:
        return self._shards.pods_per_slot()

    def touch(self, uids: Iterable[str]) -> None:
        """This event concerns these pods; those that are not known do no harm."""
        self._touched.update(uids)

    def take_touched(self) -> list[str]:
        """Those that were touched since this was asked last, in the order of their UIDs."""
        touched, self._touched = sorted(self._touched), set()
        return touched

    def begin(self, uid: str, pod: Pod | None, source: str, acted_at: float) -> PodLifecycle:
        """A pod that was not known. Without a ``pod`` it is an orphan."""
        life = self._lives[uid] = PodLifecycle(uid, pod, source, self._shards.assign(), self._rows.take(), acted_at)
        return life

    def end(self, life: PodLifecycle) -> None:
        """Nothing of it is left."""
        del self._lives[life.uid]
        self._rows.give_back(life.row)
        self._shards.release(life.slot)

    @property
    def workers(self) -> int:
        """How many pod workers there are to be."""
        return self._shards.workers

    @property
    def quarantine(self) -> bool:
        """Whether there is to be a worker more, for pods that kill theirs."""
        return self._shards.quarantine

    def limit_workers(self, limits: WorkerLimits) -> None:
        """Other limits hold from now on."""
        self._shards.limit(limits)

    def fit_workers(self) -> None:
        """Fewer pods may need fewer workers. (For more of them there are more as soon as they `begin`.)"""
        self._shards.fit()

    def move(self, is_up: Callable[[int], bool], convicts: Collection[str] = ()) -> list[PodLifecycle]:
        """Move pods to workers that have fewer, away from those that go, and convicts to quarantine; those that moved,
        at most MAX_MOVES.

        Only between two syncs, so that a pod never has two actors.
        """
        if not convicts and not self._shards.uneven(is_up):
            return []
        moved: list[PodLifecycle] = []
        for life in self:
            if len(moved) < MAX_MOVES and life.can_move and self._move(life, self._place(life, is_up, convicts)):
                moved.append(life)
        return moved

    def confine(self, life: PodLifecycle) -> None:
        """To quarantine, whatever it is in: its worker has just died, and nothing of it is left there."""
        self._move(life, QUARANTINE_SLOT)

    def _place(self, life: PodLifecycle, is_up: Callable[[int], bool], convicts: Collection[str]) -> int:
        return QUARANTINE_SLOT if life.uid in convicts else self._shards.better_slot(life.slot, is_up)

    def _move(self, life: PodLifecycle, slot: int) -> bool:
        if slot == life.slot:
            return False
        self._shards.move(life.slot, slot)
        life.slot = slot
        return True

    def vacated(self) -> Iterator[int]:
        """Slots that are wanted no more and have no pods left; each is named once."""
        return self._shards.vacated()

    def inactive(self) -> set[str]:
        """UIDs of those that do not count when another one asks for admission."""
        return {life.uid for life in self if not life.active}

    def named(self, namespace: str, name: str) -> list[PodLifecycle]:
        """More than one while an older pod of that name goes down."""
        return [life for life in self if life.name == f"{namespace}/{name}"]

    def referring_to(self, keys: Collection[ObjectKey]) -> list[PodLifecycle]:
        """Those that refer to one of these ConfigMaps and Secrets."""
        by_namespace: dict[str, set[ObjectRef]] = {}
        for key in keys:
            by_namespace.setdefault(key.namespace, set()).add(ObjectRef(key.kind, key.name))
        return [
            life
            for life in self
            if life.pod is not None and life.references & by_namespace.get(life.pod.metadata.namespace, set())
        ]

    def wanted(self) -> set[str]:
        """UIDs of the pods that are not on their way out."""
        return {life.uid for life in self if not life.removed}

    def without_row(self) -> list[str]:
        """UIDs of the pods for which the board had no room."""
        return [life.uid for life in self if life.row == NO_ROW]
