"""Verbosity of all processes: the master writes it on the board, each process takes it from there at its heartbeat."""

from __future__ import annotations

import logging
from typing import Final

from ipc.host.log.verbosity import Verbosity, apply
from ipc.link.shm.board import Board

_NEVER: Final = -1
_UNWRITTEN: Final = 0

log = logging.getLogger(__name__)


class FollowedVerbosity:
    """This process's view of the board's verbosity."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._sequence = _NEVER

    def look(self) -> None:
        """Apply what was written since the last look; when nothing was, that costs one load of eight bytes."""
        sequence = self._board.verbosity_sequence
        if sequence == self._sequence:
            return
        wanted = Verbosity() if sequence == _UNWRITTEN else self._board.read_verbosity()
        if wanted is not None:  # else its writer has stopped in the middle, and will write it again
            apply(wanted)
            self._sequence = sequence
            log.debug("log levels are now: %s", ", ".join(wanted.words))
