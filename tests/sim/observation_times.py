"""Times of the observations that the master has been given: how old what it knows of a pod may be."""

from __future__ import annotations

from supervisor.protocol.events import Observations


class ObservationTimes:
    """Monotonic seconds at which observations began."""

    def __init__(self) -> None:
        self._seen_at: dict[str, float] = {}
        self._relisted_at = 0.0
        self._relisted_before: dict[str, float] = {}
        """Times when a relist last saw those that the newest one could not look at."""

    def note(self, event: Observations) -> None:
        """The master is given these."""
        if event.relisted_at:
            before = self._relisted_before
            self._relisted_before = {uid: before.get(uid, self._relisted_at) for uid in event.unseen}
            self._relisted_at = event.relisted_at
        for observation in event.observations:
            if observation.status is not None:
                self._seen_at[observation.uid] = observation.observed_at

    def newest(self, uid: str) -> float:
        """Beginning of the observation that says most about that pod."""
        return max(self._seen_at.get(uid, 0.0), self.newest_list(uid))

    def newest_list(self, uid: str) -> float:
        """Beginning of the newest list of everything that says something about that pod."""
        return self._relisted_before.get(uid, self._relisted_at)
