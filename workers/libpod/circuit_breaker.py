"""Circuit breaker for the calls of one process: when Podman has stopped answering, calls fail at once.

Without it three hundred pods would each wait for a deadline of minutes against a service that hangs, four at a time.
A state machine without I/O: its methods are called with what happens.
"""

from __future__ import annotations

from typing import Final

from ipc.link.eventloop.backoff import Backoff
from ipc.link.shm.breaker_state import BreakerState

MAX_FAILURES: Final = 3
"""Calls and pings in a row without an answer, after which it opens."""
PINGS: Final = Backoff(0.25, 5.0)
"""Between two pings. By the longest pause it is noticed late, at worst, that Podman answers again."""


class Breaker:
    """State of the breaker. Any answer counts as one, an error too."""

    def __init__(self) -> None:
        self.state = BreakerState.CLOSED
        self.why = ""
        """Message of the last failure; empty while Podman answers."""
        self.pings_lost = 0
        """Pings in a row without an answer."""
        self._failures = 0
        """Calls in a row without an answer; no ping makes up for them."""
        self._late = 0
        """Calls among them that Podman accepted and did not answer in time."""
        self._trial = False

    @property
    def pause_s(self) -> float:
        """Pause until the next ping, in seconds."""
        return PINGS.pause_s(self.pings_lost)

    @property
    def needs_pings(self) -> bool:
        """Whether pings are to be sent until one is answered."""
        return self.state is BreakerState.OPEN or self.pings_lost > 0 or self._closes_by_ping

    @property
    def _closes_by_ping(self) -> bool:
        """Where connections were refused one more ping will do. Calls that were late for a reason of their own, such as
        a lock that never comes free, are not cured by it: the next call decides, whenever it comes."""
        return self.state is BreakerState.HALF_OPEN and not self._trial and self._late < MAX_FAILURES

    def admit(self) -> bool:
        """Whether a call may be made now. While half open only one at a time: it must end in one of the two below."""
        if self.state is BreakerState.OPEN or self._trial:
            return False
        self._trial = self.state is BreakerState.HALF_OPEN
        return True

    def answered(self) -> None:
        """A call was answered."""
        self.state, self.why, self.pings_lost = BreakerState.CLOSED, "", 0
        self._failures, self._late, self._trial = 0, 0, False

    def failed(self, why: str, *, late: bool) -> None:
        """A call was not answered: it was ``late``, or the connection was refused. When half open the breaker opens
        again."""
        self._failures += 1
        self._late += late
        self.why = why
        if self._trial or self._failures >= MAX_FAILURES:
            self.state, self._trial = BreakerState.OPEN, False

    def abandoned(self) -> None:
        """A call that was admitted was not made, or its outcome says nothing."""
        self._trial = False

    def ping_answered(self) -> None:
        """Not yet enough for calls: a ping takes no lock of Podman's."""
        self.pings_lost = 0
        if self.state is BreakerState.OPEN:
            self.state = BreakerState.HALF_OPEN
        elif self._closes_by_ping:
            self.answered()

    def ping_failed(self, why: str) -> None:
        self.pings_lost += 1
        self.why = why
        if self.state is BreakerState.HALF_OPEN or self.pings_lost >= MAX_FAILURES:
            self.state, self._trial = BreakerState.OPEN, False
