"""Every pod that the sync loop knows: its life, its place on the board, and which pod worker owns it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.config_objects import ObjectKey, ObjectRef
from supervisor.podworkers.board_rows import NO_ROW, RowAllocator
from supervisor.podworkers.pod_lifecycle import PodLifecycle
from supervisor.podworkers.sharding import MAX_MOVES, Shards, WorkerLimits
from supervisor.processes.worker_pool import QUARANTINE_SLOT


class PodTable:
    """Lives by UID. Iterates over them, so that what is iterated may not add or forget any."""

    def __init__(self, limits: WorkerLimits, rows: int) -> None:
        self._pod_table: dict[str, PodLifecycle] = {}
        self._shards = Shards(limits)
        self._rows = RowAllocator(rows)
        self._touched: set[str] = set()
        """Pods that this event may have made ready for dispatch."""

    def __iter__(self) -> Iterator[PodLifecycle]:
        return iter(self._pod_table.values())

    def __contains__(self, uid: object) -> bool:
        return uid in self._pod_table

    def __len__(self) -> int:
        return len(self._pod_table)

    def get(self, uid: str) -> PodLifecycle | None:
        return self._pod_table.get(uid)

    def uids(self) -> Collection[str]:
        return self._pod_table.keys()

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
        lifecycle = self._pod_table[uid] = PodLifecycle(
            uid, pod, source, self._shards.assign(), self._rows.take(), acted_at
        )
        return lifecycle

    def end(self, lifecycle: PodLifecycle) -> None:
        """Nothing of it is left."""
        del self._pod_table[lifecycle.uid]
        self._rows.give_back(lifecycle.row)
        self._shards.release(lifecycle.slot)

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
        for lifecycle in self:
            if (
                len(moved) < MAX_MOVES
                and lifecycle.can_move
                and self._move(lifecycle, self._place(lifecycle, is_up, convicts))
            ):
                moved.append(lifecycle)
        return moved

    def confine(self, lifecycle: PodLifecycle) -> None:
        """To quarantine, whatever it is in: its worker has just died, and nothing of it is left there."""
        self._move(lifecycle, QUARANTINE_SLOT)

    def _place(self, lifecycle: PodLifecycle, is_up: Callable[[int], bool], convicts: Collection[str]) -> int:
        return QUARANTINE_SLOT if lifecycle.uid in convicts else self._shards.better_slot(lifecycle.slot, is_up)

    def _move(self, lifecycle: PodLifecycle, slot: int) -> bool:
        if slot == lifecycle.slot:
            return False
        self._shards.move(lifecycle.slot, slot)
        lifecycle.slot = slot
        return True

    def vacated(self) -> Iterator[int]:
        """Slots that are wanted no more and have no pods left; each is named once."""
        return self._shards.vacated()

    def inactive(self) -> set[str]:
        """UIDs of those that do not count when another one asks for admission."""
        return {lifecycle.uid for lifecycle in self if not lifecycle.active}

    def named(self, namespace: str, name: str) -> list[PodLifecycle]:
        """More than one while an older pod of that name goes down."""
        return [lifecycle for lifecycle in self if lifecycle.name == f"{namespace}/{name}"]

    def referring_to(self, keys: Collection[ObjectKey]) -> list[PodLifecycle]:
        """Those that refer to one of these ConfigMaps and Secrets."""
        by_namespace: dict[str, set[ObjectRef]] = {}
        for key in keys:
            by_namespace.setdefault(key.namespace, set()).add(ObjectRef(key.kind, key.name))
        return [
            lifecycle
            for lifecycle in self
            if lifecycle.pod is not None
            and lifecycle.references & by_namespace.get(lifecycle.pod.metadata.namespace, set())
        ]

    def wanted(self) -> set[str]:
        """UIDs of the pods that are not on their way out."""
        return {lifecycle.uid for lifecycle in self if not lifecycle.removed}

    def without_row(self) -> list[str]:
        """UIDs of the pods for which the board had no room."""
        return [lifecycle.uid for lifecycle in self if lifecycle.row == NO_ROW]
