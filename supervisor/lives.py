"""Every pod that the sync loop knows: its life, its place on the board, and which pod worker owns it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ipc.api import Pod
from supervisor.pod_lifecycle import PodLifecycle
from supervisor.rows import NO_ROW, RowAllocator
from supervisor.sharding import least_loaded


class Lives:
    """Lives by UID. Iterates over them, so that what is iterated may not add or forget any."""

    def __init__(self, slots: Collection[int], rows: int) -> None:
        self._lives: dict[str, PodLifecycle] = {}
        self._pods_per_slot = dict.fromkeys(slots, 0)
        self._rows = RowAllocator(rows)

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
        return self._pods_per_slot

    def begin(self, uid: str, pod: Pod | None, source: str, acted_at: float) -> PodLifecycle:
        """A pod that was not known. Without a ``pod`` it is an orphan."""
        slot = least_loaded(tuple(self._pods_per_slot), self._pods_per_slot)
        self._pods_per_slot[slot] += 1
        life = self._lives[uid] = PodLifecycle(uid, pod, source, slot, self._rows.take(), acted_at)
        return life

    def end(self, life: PodLifecycle) -> None:
        """Nothing of it is left."""
        del self._lives[life.uid]
        self._rows.give_back(life.row)
        self._pods_per_slot[life.slot] -= 1

    def active_pods(self) -> list[Pod]:
        """Those that count when another one asks for admission."""
        return [life.pod for life in self if life.active and life.pod is not None]

    def named(self, namespace: str, name: str) -> list[PodLifecycle]:
        """More than one while an older pod of that name goes down."""
        return [life for life in self if life.name == f"{namespace}/{name}"]

    def wanted(self) -> set[str]:
        """UIDs of the pods that are not on their way out."""
        return {life.uid for life in self if not life.removed}

    def without_row(self) -> list[str]:
        """UIDs of the pods for which the board had no room."""
        return [life.uid for life in self if life.row == NO_ROW]
