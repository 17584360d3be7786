"""Publishes the newest status of every pod to the master, on the pod's row of the board or in a message."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages.node_worker import Observation
from ipc.link.shm.board import Board, PodRowWriter
from ipc.link.shm.observation_rows import encode_status

MAX_MESSAGES_BYTES: Final = 4 * 1024 * 1024
"""Most that termination messages may take in one message of the link, in bytes: half of a frame."""


class _Row(msgspec.Struct, frozen=True):
    number: int
    writer: PodRowWriter


class Publisher:
    """The rows of tracked pods and the newest status of all pods. The only writer of pod rows."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._rows: dict[str, _Row] = {}
        self._known: dict[str, RuntimePodStatus] = {}

    @property
    def tracked(self) -> Set[str]:
        """Uids that have a row."""
        return self._rows.keys()

    @property
    def statuses(self) -> Collection[RuntimePodStatus]:
        """Newest status of every pod that is known."""
        return self._known.values()

    def track(self, uid: str, row: int) -> None:
        """Write that pod's statuses to that row from now on, beginning with the newest one known. Raises IndexError."""
        self.untrack(uid)
        writer = self._board.pod_writer(row)
        self._rows[uid] = _Row(row, writer)
        known = self._known.get(uid)
        if known is None or not _write(writer, known, encode_status(known)):
            writer.clear()

    def untrack(self, uid: str) -> None:
        """Empty the pod's row, which another pod may get. Its newest status is kept as long as it exists."""
        row = self._rows.pop(uid, None)
        if row is not None:
            row.writer.clear()

    def record(self, status: RuntimePodStatus) -> Observation:
        """Publish a status; the observation to send to the master.

        An untracked pod's status travels in the message, and so does one that does not fit its row. Raises
        UnicodeEncodeError and OverflowError for one that has no encoding; then nothing was published.
        """
        known = self._known.get(status.uid)
        changed = known is None or not known.same_as(status)
        payload = encode_status(status) if changed else b""
        row = self._rows.get(status.uid)
        if row is None and status.is_empty():
            self._known.pop(status.uid, None)
        else:
            self._known[status.uid] = status
        if row is not None and _renew(row.writer, status, payload):
            return Observation(uid=status.uid, observed_at=status.observed_at, changed=changed, row=row.number)
        return Observation(uid=status.uid, observed_at=status.observed_at, changed=changed, status=status)

    def newest(self, uid: str) -> RuntimePodStatus | None:
        """Newest status of a tracked pod."""
        return self._known.get(uid) if uid in self._rows else None

    def blank(self) -> frozenset[str]:
        """Tracked pods of which nothing is known to be there."""
        known = ((uid, self._known.get(uid)) for uid in self._rows)
        return frozenset(uid for uid, status in known if status is None or status.is_empty())

    def retain(self, existing: Set[str]) -> None:
        """Forget untracked pods that are not among these."""
        for uid in self._known.keys() - existing - self.tracked:
            del self._known[uid]


def within_one_message(observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """The observations, without termination messages from where these would be more than MAX_MESSAGES_BYTES: containers
    write them, and may not make a message larger than its link allows."""
    left_bytes = MAX_MESSAGES_BYTES
    fitting: list[Observation] = []
    for observation in observations:
        messages_bytes = _messages_bytes(observation.status)
        if messages_bytes > left_bytes:
            observation = msgspec.structs.replace(observation, status=_without_messages(observation.status))
        else:
            left_bytes -= messages_bytes
        fitting.append(observation)
    return tuple(fitting)


def _messages_bytes(status: RuntimePodStatus | None) -> int:
    return sum(len(container.message.encode()) for container in status.containers) if status is not None else 0


def _without_messages(status: RuntimePodStatus | None) -> RuntimePodStatus | None:
    if status is None:
        return None
    silent = tuple(msgspec.structs.replace(container, message="", message_cut=False) for container in status.containers)
    return msgspec.structs.replace(status, containers=silent)


def _renew(writer: PodRowWriter, status: RuntimePodStatus, changed: bytes) -> bool:
    """``changed``: its encoding, unless it is as it was. False when the row cannot hold it."""
    if not changed and writer.touch(status.observed_at):
        return True
    return _write(writer, status, changed or encode_status(status))


def _write(writer: PodRowWriter, status: RuntimePodStatus, payload: bytes) -> bool:
    return writer.write(status.uid, status.observed_at, payload)
