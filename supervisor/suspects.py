"""Which pod kills its workers. Nobody says so: all that is known is which pods were in flight at each death.

A pod that was in flight at `POISON_DEATHS` deaths of its worker in a row is a suspect. Suspects are synced one at a
time, each on *trial*: a death while one is on trial is its doing, and so is the last of these deaths when it leaves a
single suspect. Who is guilty is isolated: its syncs pause for a back-off that doubles with every further death. A
trial that a sync comes back from, or that lasts too long, ends in probation: the next death with that pod in flight
makes it a suspect again, one without it clears it. The rest of the shard is never held up.

Sans-I/O: deaths, dispatches, answers and the time (monotonic seconds) go in, verdicts come out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

POISON_DEATHS: Final = 3
"""So many deaths in a row make a suspect."""
MEMORY_S: Final = 3600.0
"""Seconds after which a death counts for nothing any more."""
INITIAL_BACK_OFF_S: Final = 10.0
MAX_BACK_OFF_S: Final = 300.0
"""As a container that crashes has them (pkg/kubelet/kubelet.go, MaxContainerBackOff)."""


class Isolation(msgspec.Struct, frozen=True):
    """A verdict."""

    uid: str
    deaths: int
    """Of its worker, with this pod in flight."""
    wait_s: float
    """Until its next sync."""


class _Record(msgspec.Struct, frozen=True):
    deaths: int
    """In a row."""
    suspect: bool
    died_at: float
    """The last of them."""
    strikes: int = 0
    """How often it was found guilty."""
    isolated_until: float = 0.0


class _Trial(msgspec.Struct, frozen=True):
    uid: str
    ends_at: float


class Suspects:
    """Owns what is remembered of deaths, by pod, and who is on trial, by slot."""

    def __init__(self, trial_s: float) -> None:
        """``trial_s``: a pod that was in flight for so long has not killed its worker; longer than a hang lasts."""
        self._trial_s = trial_s
        self._records: dict[str, _Record] = {}
        self._trials: dict[int, _Trial] = {}

    def died(self, slot: int, in_flight: Collection[str], idle: Collection[str], now: float) -> Isolation | None:
        """The worker in that slot died. ``idle``: pods of its shard that were not in flight. Who did it, if known."""
        trial = self._trials.pop(slot, None)
        if trial is not None and trial.uid in in_flight:
            self._implicate(trial.uid, now)
            return self._convict(trial.uid, (*in_flight, *idle), now)
        for uid in idle:
            if uid in self._records and not self._records[uid].suspect:
                del self._records[uid]
        suspects = [uid for uid in in_flight if self._implicate(uid, now).suspect]
        return self._convict(suspects[0], (*in_flight, *idle), now) if len(suspects) == 1 else None

    def may_sync(self, slot: int, uid: str, now: float) -> bool:
        """Whether it is not isolated, and no other suspect of that slot is on trial."""
        record = self._records.get(uid)
        if record is None or not record.suspect:
            return True
        trial = self._trials.get(slot)
        return now >= record.isolated_until and (trial is None or trial.uid == uid)

    def dispatched(self, slot: int, uid: str, now: float) -> None:
        """A sync of it goes out, of a suspect as its trial."""
        if uid in self._records and self._records[uid].suspect:
            self._trials.setdefault(slot, _Trial(uid, now + self._trial_s))

    def survived(self, slot: int, uid: str) -> None:
        """A whole sync of it has come back."""
        trial = self._trials.get(slot)
        if trial is not None and trial.uid == uid:
            del self._trials[slot]
            self._put_on_probation(uid)

    def absolve(self, uid: str) -> None:
        """It is another pod now (its manifest changed), or somebody says that it is to be tried again."""
        if uid in self._records:
            self._put_on_probation(uid)
            self._records[uid] = msgspec.structs.replace(self._records[uid], strikes=0, isolated_until=0.0)

    def forget(self, uid: str) -> None:
        self._records.pop(uid, None)
        self._trials = {slot: trial for slot, trial in self._trials.items() if trial.uid != uid}

    def tick(self, now: float) -> None:
        """End what has lasted long enough."""
        for slot, trial in tuple(self._trials.items()):
            if now >= trial.ends_at:
                self.survived(slot, trial.uid)
        for uid, record in tuple(self._records.items()):
            if now - max(record.died_at, record.isolated_until) > MEMORY_S:
                self.forget(uid)

    def suspects(self) -> frozenset[str]:
        """Those that may wait for a trial: another's to end, or for their own."""
        return frozenset(uid for uid, record in self._records.items() if record.suspect)

    def _implicate(self, uid: str, now: float) -> _Record:
        old = self._records.get(uid) or _Record(deaths=0, suspect=False, died_at=now)
        deaths = old.deaths + 1
        suspect = deaths >= POISON_DEATHS
        self._records[uid] = msgspec.structs.replace(old, deaths=deaths, suspect=suspect, died_at=now)
        return self._records[uid]

    def _convict(self, uid: str, shard: Collection[str], now: float) -> Isolation:
        """The deaths so far are explained by it: who else is a suspect for them is not."""
        for other in shard:
            if other in self._records and not self._records[other].strikes:
                self._put_on_probation(other)
        old = self._records[uid]
        wait_s = min(INITIAL_BACK_OFF_S * 2**old.strikes, MAX_BACK_OFF_S)
        self._records[uid] = msgspec.structs.replace(
            old, suspect=True, strikes=old.strikes + 1, isolated_until=now + wait_s
        )
        return Isolation(uid, old.deaths, wait_s)

    def _put_on_probation(self, uid: str) -> None:
        if uid in self._records:
            self._records[uid] = msgspec.structs.replace(self._records[uid], suspect=False)
