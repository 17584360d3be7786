"""What the master can read of every pod: the newest view of it, on its row of the board or in a message."""

from __future__ import annotations

from collections.abc import Set

import msgspec

from ipc.board import Board, PodRowWriter
from ipc.messages import Observation
from ipc.runtime import RuntimePodStatus


class _Row(msgspec.Struct, frozen=True):
    number: int
    writer: PodRowWriter


class _Known(msgspec.Struct, frozen=True):
    status: RuntimePodStatus
    wall: float
    """When that look began, in epoch seconds."""


class Published:
    """The rows of tracked pods and the newest view of all. The only writer of pod rows."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._rows: dict[str, _Row] = {}
        self._known: dict[str, _Known] = {}

    @property
    def tracked(self) -> Set[str]:
        """Uids that have a row."""
        return self._rows.keys()

    def track(self, uid: str, row: int) -> None:
        """From now on that pod's views go to that row, beginning with the newest one there is. Raises IndexError."""
        self.untrack(uid)
        writer = self._board.pod_writer(row)
        self._rows[uid] = _Row(row, writer)
        known = self._known.get(uid)
        if known is None or not _write(writer, known.status):
            writer.clear()

    def untrack(self, uid: str) -> None:
        """Empty its row, which another pod may get. What is known of the pod stays known as long as it exists."""
        row = self._rows.pop(uid, None)
        if row is not None:
            row.writer.clear()

    def record(self, status: RuntimePodStatus, wall: float) -> Observation:
        """Publish a look that began at ``wall`` (epoch seconds): what to tell the master of it.

        An untracked pod's status travels in the message, and so does one that does not fit its row.
        """
        known = self._known.get(status.uid)
        changed = known is None or not known.status.same_as(status)
        row = self._rows.get(status.uid)
        if row is None and status.is_empty():
            self._known.pop(status.uid, None)
        else:
            self._known[status.uid] = _Known(status, wall)
        if row is not None and _renew(row.writer, status, changed):
            return Observation(uid=status.uid, observed_at=status.observed_at, changed=changed, row=row.number)
        return Observation(uid=status.uid, observed_at=status.observed_at, changed=changed, status=status)

    def is_older(self, uid: str, wall: float) -> bool:
        """Whether something that happened at that epoch second is in the newest view of the pod already."""
        known = self._known.get(uid)
        return known is not None and wall < known.wall

    def retain(self, existing: Set[str]) -> None:
        """Forget untracked pods that are not among these."""
        for uid in self._known.keys() - existing - self.tracked:
            del self._known[uid]


def _renew(writer: PodRowWriter, status: RuntimePodStatus, changed: bool) -> bool:
    """False when the row cannot hold it."""
    return (not changed and writer.touch(status.observed_at)) or _write(writer, status)


def _write(writer: PodRowWriter, status: RuntimePodStatus) -> bool:
    return writer.write(status.uid, status.observed_at, msgspec.msgpack.encode(status))
