"""The observation that a sync acts on: the pod's row on the board, or what came with the request."""

from __future__ import annotations

import msgspec

from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.pod_worker import SyncPod
from ipc.shm.board import Board, PodRow


def read_view(request: SyncPod, board: Board) -> RuntimePodStatus | None:
    """None when there is none as new as the request wants: too old, of another pod, or unreadable."""
    status = request.status if request.status is not None else _read_row(request, board)
    if status is None or status.observed_at < request.min_observed_at:
        return None
    return status


def _read_row(request: SyncPod, board: Board) -> RuntimePodStatus | None:
    row = board.read_pod(request.row) if request.row >= 0 else None
    if row is None or row.uid != request.uid:
        return None
    return decode_row(row)


def decode_row(row: PodRow) -> RuntimePodStatus:
    """What it says, and since when: seen again unchanged, a row only gets a new date."""
    status = msgspec.msgpack.decode(row.payload, type=RuntimePodStatus)
    return msgspec.structs.replace(status, observed_at=row.observed_at)
