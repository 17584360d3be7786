"""Pods that kill their workers: a worker dies, hangs or takes all memory in a step for one of them.

Mostly the dead says so: the board has whose step it died in (`ipc.link.shm.board.WorkerRow.current_pod`). A pod in
whose steps `POISON_DEATHS` workers have died is a convict. Of a worker that died in nobody's step (killed from outside,
or in a thread) all that is known is which pods had a sync in flight. One that had at `POISON_DEATHS` such deaths in a
row is a suspect. Suspects are synced one at a time, each on *trial*: a death while one is on trial is its doing, and so
is the last of these deaths when it leaves a single suspect. A trial that a sync comes back from, or that lasts too
long, ends in probation: the next death with that pod in flight makes it a suspect again, one without it clears it. The
rest of the shard is never held up.

A convict is in quarantine: a worker that has convicts only does everything for it, and nobody else feels its deaths.
After each nothing at all is done for it for a back-off that doubles. It leaves an hour after the last one, or a while
after its manifest has changed.

Sans-I/O: deaths, dispatches, answers and the time (monotonic seconds) go in, isolations come out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from ipc.link.eventloop.backoff import Backoff
from supervisor.pods.parts import NO_DEATHS, Deaths, KnownPods, PodParts

POISON_DEATHS: Final = 2
"""So many deaths in a row make a suspect, or a convict."""
MEMORY_S: Final = 3600.0
"""Seconds after which a death counts for nothing any more."""
PROBATION_S: Final = 60.0
"""For how long a convict with another manifest stays where it hurts nobody, in seconds."""
BACK_OFF: Final = Backoff(10.0, 300.0)
"""As a container that crashes has it (pkg/kubelet/kubelet.go, MaxContainerBackOff)."""


class Isolation(msgspec.Struct, frozen=True):
    """A pod that is found to kill its workers, and for how long nothing is done for it."""

    uid: str
    deaths: int
    """Deaths of its worker, that are its doing as far as is known."""
    wait_s: float
    """Until anything is done for it again."""


class PoisonPods:
    """Owns what is remembered of deaths, by pod, and who is on trial, by slot."""

    def __init__(self, trial_s: float, known: KnownPods) -> None:
        """``trial_s``: a pod that was in flight for so long has not killed its worker; longer than a hang lasts."""
        self._trial_s = trial_s
        self._known = known
        self._implicated = 0
        """Number of pods of which there is something to remember: mostly none, and asked for at each end of a sync."""
        known.on_forget(self._forgotten)
        self._trials: dict[int, _Trial] = {}

    # --- what happens to workers ---------------------------------------------------------------------------------

    def died(
        self, slot: int, in_flight: Collection[str], idle: Collection[str], now: float, *, current: str | None = None
    ) -> Isolation | None:
        """The worker in that slot died, in a step for ``current`` if that is known. Who did it, if known.

        ``idle``: pods of its shard that were not in flight.
        """
        shard, trial = (*in_flight, *idle), self._trials.pop(slot, None)
        if current is not None:
            guilty = self._implicate(current, now, caught=True).suspect
            return self._convict(current, shard, now) if guilty else None
        if trial is not None and trial.uid in in_flight:
            self._implicate(trial.uid, now)
            return self._convict(trial.uid, shard, now)
        for uid in idle:
            record = self._of(uid)
            if not (record.suspect or record.caught or record.convict):
                self._set(uid, NO_DEATHS)
        poison_pods = [uid for uid in in_flight if self._implicate(uid, now).suspect]
        return self._convict(poison_pods[0], shard, now) if len(poison_pods) == 1 else None

    def dispatched(self, slot: int, uid: str, now: float) -> None:
        """A sync of it goes out, of a suspect as its trial."""
        if self._of(uid).suspect:
            self._trials.setdefault(slot, _Trial(uid, now + self._trial_s))

    def survived(self, slot: int, uid: str) -> None:
        """A whole sync of it has come back."""
        trial = self._trials.get(slot)
        if trial is not None and trial.uid == uid:
            del self._trials[slot]
            self._change(uid, suspect=False)

    # --- what may be done for a pod ------------------------------------------------------------------------------

    def awaits_trial(self, slot: int, uid: str) -> bool:
        """Whether another suspect of that slot is on trial before this one."""
        trial = self._trials.get(slot)
        return self._of(uid).suspect and trial is not None and trial.uid != uid

    def isolated_until(self, uid: str, now: float) -> float | None:
        """Until when nothing at all is to be done for it; None for a pod that is not isolated now."""
        until = self._of(uid).isolated_until
        return until if now < until else None

    def is_convict(self, uid: str) -> bool:
        """Whether its place is in quarantine."""
        return self._of(uid).convict

    def strikes(self, uid: str) -> int:
        """Number of workers that the pod has killed since it was found guilty or last absolved."""
        return self._of(uid).strikes

    def suspects(self) -> frozenset[str]:
        """UIDs of the pods that are synced one at a time: they may wait for a trial, another's to end or their own."""
        return frozenset(uid for uid, deaths in self._deaths() if deaths.suspect)

    def convicts(self) -> frozenset[str]:
        return frozenset(uid for uid, deaths in self._deaths() if deaths.convict)

    # --- another chance, and the end -----------------------------------------------------------------------------

    def absolve(self, uid: str, now: float) -> None:
        """Try the pod again: its manifest changed, or its worker was restarted by hand.

        A convict is tried where it is, and leaves that when it kills nobody for a while.
        """
        until = now + PROBATION_S + self._trial_s if self.is_convict(uid) else self._of(uid).counts_until
        self._change(uid, suspect=False, strikes=0, isolated_until=0.0, counts_until=until)

    def _forgotten(self, uid: str, parts: PodParts) -> None:
        if parts.deaths is not NO_DEATHS:
            self._implicated -= 1
            self._end_trials(uid)

    def _end_trials(self, uid: str) -> None:
        self._trials = {slot: trial for slot, trial in self._trials.items() if trial.uid != uid}

    def expire(self, now: float) -> None:
        """End what has lasted long enough."""
        for slot, trial in tuple(self._trials.items()):
            if now >= trial.ends_at:
                self.survived(slot, trial.uid)
        for uid, deaths in self._deaths():
            if now > deaths.counts_until:
                self._set(uid, NO_DEATHS)
                self._end_trials(uid)

    # --- records -------------------------------------------------------------------------------------------------

    def _deaths(self) -> list[tuple[str, Deaths]]:
        """UIDs of the pods of which there is something to remember, and that."""
        if not self._implicated:
            return []
        return [(uid, parts.deaths) for uid, parts in self._known.items() if parts.deaths is not NO_DEATHS]

    def _of(self, uid: str) -> Deaths:
        return self._known.find(uid).deaths

    def _set(self, uid: str, record: Deaths) -> Deaths:
        parts = self._known.of(uid)
        self._implicated += (record is not NO_DEATHS) - (parts.deaths is not NO_DEATHS)
        parts.deaths = record
        return record

    def _change(self, uid: str, **changes: object) -> None:
        if (known := self._of(uid)) is not NO_DEATHS:
            self._set(uid, msgspec.structs.replace(known, **changes))

    def _implicate(self, uid: str, now: float, *, caught: bool = False) -> Deaths:
        old = self._of(uid)
        deaths = old.deaths + 1
        found = msgspec.structs.replace(
            old,
            deaths=deaths,
            caught=old.caught or caught,
            suspect=deaths >= POISON_DEATHS,
            counts_until=max(old.isolated_until, now) + MEMORY_S,
        )
        return self._set(uid, found)

    def _convict(self, uid: str, shard: Collection[str], now: float) -> Isolation:
        """The deaths so far are explained by it: who else is a suspect for them is not."""
        for other in shard:
            if not self.is_convict(other):
                self._change(other, suspect=False)
        old = self._of(uid)
        wait_s = BACK_OFF.pause_s(old.strikes + 1)
        self._change(
            uid,
            suspect=True,
            convict=True,
            strikes=old.strikes + 1,
            isolated_until=now + wait_s,
            counts_until=now + wait_s + MEMORY_S,
        )
        return Isolation(uid, old.deaths, wait_s)


class _Trial(msgspec.Struct, frozen=True):
    uid: str
    ends_at: float
