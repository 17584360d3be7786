"""Attribution of workers' crashes to pods: a worker dies, hangs or takes all memory in a step for one of them.

Mostly the dead worker says so: the board has whose step it died in (`ipc.link.shm.board.WorkerRow.current_pod`). A pod
in whose steps `CRASH_THRESHOLD` workers have died is quarantined. Of a worker that died in no pod's step (killed from
outside, or in a thread) all that is known is which pods had a sync in flight. One that had at `CRASH_THRESHOLD` such
crashes in a row is a suspect. Suspects of a worker are synced one at a time: a crash during such a *solo sync* is
attributed to its pod, and so is the last of these crashes when it leaves a single suspect. A suspect whose solo sync
comes back, or lasts too long, is on probation: the next crash with that pod in flight makes it a suspect again, one
without it clears it. The rest of the shard is never held up.

A quarantined pod has a worker that works for such pods only, and no other pod feels its crashes. After each nothing at
all is done for it for a back-off that doubles. It leaves an hour after the last one, or a while after its manifest has
changed.

Sans-I/O: crashes, dispatches, answers and the time (monotonic seconds) go in, attributions come out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from ipc.link.eventloop.backoff import Backoff
from supervisor.pods.parts import NO_CRASHES, KnownPods, PodParts, WorkerCrashes

CRASH_THRESHOLD: Final = 2
"""So many crashes in a row make a suspect, or quarantine a pod."""
MEMORY_S: Final = 3600.0
"""Seconds after which a crash counts for nothing any more."""
PROBATION_S: Final = 60.0
"""For how long a quarantined pod with another manifest stays where it hurts no other, in seconds."""
BACK_OFF: Final = Backoff(10.0, 300.0)
"""As a container that crashes has it (pkg/kubelet/kubelet.go, MaxContainerBackOff)."""


class Attribution(msgspec.Struct, frozen=True):
    """A pod to which a crash is attributed, and for how long nothing is done for it."""

    uid: str
    crashes: int
    """Crashes of its worker that are its doing, as far as is known."""
    wait_s: float
    """Until anything is done for it again."""


class CrashAttribution:
    """Owns what is remembered of crashes, by pod, and which solo sync is in flight, by slot."""

    def __init__(self, solo_s: float, known: KnownPods) -> None:
        """``solo_s``: a pod that was in flight for so long has not crashed its worker; longer than a hang lasts."""
        self._solo_s = solo_s
        self._known = known
        self._counted = 0
        """Number of pods of which there is something to remember: mostly none, and asked for at each end of a sync."""
        known.on_forget(self._forgotten)
        self._solo_syncs: dict[int, _SoloSync] = {}

    # --- what happens to workers ---------------------------------------------------------------------------------

    def worker_died(
        self, slot: int, in_flight: Collection[str], idle: Collection[str], now: float, *, current: str | None = None
    ) -> Attribution | None:
        """The worker in that slot died, in a step for ``current`` if that is known. To which pod that is attributed.

        ``idle``: pods of its shard that were not in flight.
        """
        shard, solo = (*in_flight, *idle), self._solo_syncs.pop(slot, None)
        if current is not None:
            is_culprit = self._count(current, now, is_located=True).is_suspect
            return self._attribute(current, shard, now) if is_culprit else None
        if solo is not None and solo.uid in in_flight:
            self._count(solo.uid, now)
            return self._attribute(solo.uid, shard, now)
        for uid in idle:
            record = self._of(uid)
            if not (record.is_suspect or record.is_located or record.is_quarantined):
                self._set(uid, NO_CRASHES)
        suspects = [uid for uid in in_flight if self._count(uid, now).is_suspect]
        return self._attribute(suspects[0], shard, now) if len(suspects) == 1 else None

    def dispatched(self, slot: int, uid: str, now: float) -> None:
        """A sync of it goes out, of a suspect as its solo sync."""
        if self._of(uid).is_suspect:
            self._solo_syncs.setdefault(slot, _SoloSync(uid, now + self._solo_s))

    def sync_completed(self, slot: int, uid: str) -> None:
        """A whole sync of it has come back."""
        solo = self._solo_syncs.get(slot)
        if solo is not None and solo.uid == uid:
            del self._solo_syncs[slot]
            self._change(uid, is_suspect=False)

    # --- what may be done for a pod ------------------------------------------------------------------------------

    def awaits_solo_sync(self, slot: int, uid: str) -> bool:
        """Whether another suspect of that slot is synced before this one."""
        solo = self._solo_syncs.get(slot)
        return self._of(uid).is_suspect and solo is not None and solo.uid != uid

    def isolated_until(self, uid: str, now: float) -> float | None:
        """Until when nothing at all is to be done for it; None for a pod that is not isolated now."""
        until = self._of(uid).isolated_until
        return until if now < until else None

    def is_quarantined(self, uid: str) -> bool:
        """Whether its place is in quarantine."""
        return self._of(uid).is_quarantined

    def attributed(self, uid: str) -> int:
        """Number of crashes that were attributed to the pod, since it was last to be tried again."""
        return self._of(uid).attributed

    def suspects(self) -> frozenset[str]:
        """UIDs of the pods that are synced one at a time: they may wait for a solo sync, another's to end or theirs."""
        return frozenset(uid for uid, crashes in self._all() if crashes.is_suspect)

    def quarantined(self) -> frozenset[str]:
        """UIDs of the pods whose place is in quarantine."""
        return frozenset(uid for uid, crashes in self._all() if crashes.is_quarantined)

    # --- another chance, and the end -----------------------------------------------------------------------------

    def try_again(self, uid: str, now: float) -> None:
        """Try the pod again: its manifest changed, or its worker was restarted by hand.

        A quarantined pod is tried where it is, and leaves that when it crashes no worker for a while.
        """
        until = now + PROBATION_S + self._solo_s if self.is_quarantined(uid) else self._of(uid).remembered_until
        self._change(uid, is_suspect=False, attributed=0, isolated_until=0.0, remembered_until=until)

    def _forgotten(self, uid: str, parts: PodParts) -> None:
        if parts.crashes is not NO_CRASHES:
            self._counted -= 1
            self._end_solo_syncs(uid)

    def _end_solo_syncs(self, uid: str) -> None:
        self._solo_syncs = {slot: solo for slot, solo in self._solo_syncs.items() if solo.uid != uid}

    def expire(self, now: float) -> None:
        """End what has lasted long enough."""
        for slot, solo in tuple(self._solo_syncs.items()):
            if now >= solo.ends_at:
                self.sync_completed(slot, solo.uid)
        for uid, crashes in self._all():
            if now > crashes.remembered_until:
                self._set(uid, NO_CRASHES)
                self._end_solo_syncs(uid)

    # --- records -------------------------------------------------------------------------------------------------

    def _all(self) -> list[tuple[str, WorkerCrashes]]:
        """UIDs of the pods of which there is something to remember, and that."""
        if not self._counted:
            return []
        return [(uid, parts.crashes) for uid, parts in self._known.items() if parts.crashes is not NO_CRASHES]

    def _of(self, uid: str) -> WorkerCrashes:
        return self._known.find(uid).crashes

    def _set(self, uid: str, record: WorkerCrashes) -> WorkerCrashes:
        parts = self._known.of(uid)
        self._counted += (record is not NO_CRASHES) - (parts.crashes is not NO_CRASHES)
        parts.crashes = record
        return record

    def _change(self, uid: str, **changes: object) -> None:
        if (known := self._of(uid)) is not NO_CRASHES:
            self._set(uid, msgspec.structs.replace(known, **changes))

    def _count(self, uid: str, now: float, *, is_located: bool = False) -> WorkerCrashes:
        old = self._of(uid)
        crashes = old.crashes + 1
        found = msgspec.structs.replace(
            old,
            crashes=crashes,
            is_located=old.is_located or is_located,
            is_suspect=crashes >= CRASH_THRESHOLD,
            remembered_until=max(old.isolated_until, now) + MEMORY_S,
        )
        return self._set(uid, found)

    def _attribute(self, uid: str, shard: Collection[str], now: float) -> Attribution:
        """The crashes so far are explained by it: who else is a suspect for them is not."""
        for other in shard:
            if not self.is_quarantined(other):
                self._change(other, is_suspect=False)
        old = self._of(uid)
        wait_s = BACK_OFF.pause_s(old.attributed + 1)
        self._change(
            uid,
            is_suspect=True,
            is_quarantined=True,
            attributed=old.attributed + 1,
            isolated_until=now + wait_s,
            remembered_until=now + wait_s + MEMORY_S,
        )
        return Attribution(uid, old.crashes, wait_s)


class _SoloSync(msgspec.Struct, frozen=True):
    uid: str
    ends_at: float
