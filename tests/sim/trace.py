"""Trace of what happened, for people and for comparing two runs."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from typing import Final

KEPT_LINES: Final = 400
"""How much of the end is kept."""


class Violation(AssertionError):
    """A promise was broken, or the product has an error of its own."""


class Trace:
    """The newest lines, and a digest of all. Ends with the first broken promise, so that the end tells how it came."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.noted = 0
        """How many there were."""
        self.broken = ""
        """The first broken promise."""
        self._verbose = verbose
        self._digest = hashlib.blake2b(digest_size=16)

    def note(self, line: str) -> None:
        if self.broken:
            return
        dated = f"{asyncio.get_running_loop().time():10.3f} {line}"
        self.lines.append(dated)
        self.noted += 1
        self._digest.update(dated.encode())
        if self._verbose:
            print(dated)

    def broke(self, promise: str) -> None:
        """Note it; it is raised by the driver of the simulation: here it would be caught by the one that broke it."""
        self.note(f"BROKEN: {promise}")
        self.broken = self.broken or promise

    def check(self) -> None:
        """Raises Violation."""
        if self.broken:
            raise Violation(self.broken)

    def digest(self) -> str:
        return self._digest.hexdigest()
