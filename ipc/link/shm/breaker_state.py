"""State of a process's circuit breaker for Podman, as the board and `get workers` have it."""

from __future__ import annotations

import enum


class BreakerState(enum.IntEnum):
    """The numbers lie on the board."""

    NONE = 0
    """The process does not speak to Podman."""
    CLOSED = 1
    """Podman answers; calls are made."""
    OPEN = 2
    """Podman does not; calls fail at once, and pings go on."""
    HALF_OPEN = 3
    """A ping was answered; one call at a time is made, and its outcome decides."""

    @property
    def shown(self) -> str:
        """``HalfOpen``; empty for NONE."""
        return "" if self is BreakerState.NONE else "".join(word.capitalize() for word in self.name.split("_"))
