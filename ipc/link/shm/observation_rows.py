"""Observed statuses as they lie on the board's pod rows: their one encoder and their one decoder."""

from __future__ import annotations

import msgspec

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.shm.board import Board, PodRow


def encode_status(status: RuntimePodStatus) -> bytes:
    """Payload of the pod's row. Raises what msgspec raises for what has no encoding."""
    return msgspec.msgpack.encode(status)


def decode_status(row: PodRow) -> RuntimePodStatus:
    """Status on a row. Raises msgspec.DecodeError.

    Its date is that of the row: seen again unchanged, a row only gets a new one.
    """
    status = msgspec.msgpack.decode(row.payload, type=RuntimePodStatus)
    return msgspec.structs.replace(status, observed_at=row.observed_at)


def read_status(board: Board, row: int, uid: str) -> RuntimePodStatus | None:
    """Status of that pod on that row; None when the row serves another pod or was torn by a death.

    Raises msgspec.DecodeError, and IndexError for a row that is not on the board.
    """
    found = board.read_pod(row)
    return decode_status(found) if found is not None and found.uid == uid else None
