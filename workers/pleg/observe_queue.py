"""Which pods wait to be looked at, each since when and for how long. No I/O; all times are monotonic seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable

from workers.pleg.relist_schedule import retry_delay_s


class ObserveQueue:
    """Bounded by the pods that the master tracks and those that Podman has."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        """When each is to be looked at. Oldest request first."""
        self._failures: dict[str, int] = {}
        """How often in a row a pod could not be looked at."""

    @property
    def next_at(self) -> float:
        """When the first of them is due; infinite when none waits."""
        return min(self._due.values(), default=math.inf)

    def ask(self, uid: str, at: float = 0.0) -> None:
        """Not later than then; who asks for it at once need not say when."""
        self._due[uid] = min(at, self._due.get(uid, at))

    def ask_again(self, uids: Iterable[str]) -> None:
        """Nobody of these was looked at: at once, unless somebody has asked for another time meanwhile."""
        for uid in uids:
            self._due.setdefault(uid, 0.0)

    def due(self, now: float) -> list[str]:
        """Whose time has come, oldest request first. They go on waiting until they are taken."""
        return [uid for uid, at in self._due.items() if at <= now]

    def take(self, uids: Iterable[str]) -> None:
        """These are being looked at: who asks from now on gets another look."""
        for uid in uids:
            del self._due[uid]

    def take_all(self) -> tuple[str, ...]:
        """Everybody, due or not."""
        waiting = tuple(self._due)
        self._due.clear()
        return waiting

    def failed(self, uid: str, now: float) -> int:
        """It could not be looked at: how often in a row. Again after a delay, unless somebody has asked anew."""
        failures = self._failures.get(uid, 0) + 1
        self._failures[uid] = failures
        self._due.setdefault(uid, now + retry_delay_s(failures))
        return failures

    def failures(self, uid: str) -> int:
        """How often in a row it could not be looked at."""
        return self._failures.get(uid, 0)

    def seen(self, uid: str) -> None:
        """It was looked at."""
        self._failures.pop(uid, None)

    def retry_delay_s(self, uids: Iterable[str]) -> float:
        """Seconds from their last failure until all of these are due again; infinite when there are none."""
        return max((retry_delay_s(self._failures.get(uid, 1)) for uid in uids), default=math.inf)
