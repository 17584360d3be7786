"""The observation that a sync acts on: the pod's row on the board, or what came with the request."""

from __future__ import annotations

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.kubecontainer.remembered_ends import with_remembered
from ipc.link.messages.pod_worker import SyncPod
from ipc.link.shm.board import Board
from ipc.link.shm.observation_rows import read_status


def read_view(request: SyncPod, board: Board) -> RuntimePodStatus | None:
    """The observation with the ends that it lacks. None when there is none as new as the request wants: too old, of
    another pod, or unreadable."""
    status = request.status if request.status is not None else _read_row(request, board)
    if status is None or status.observed_at < request.min_observed_at:
        return None
    return with_remembered(status, request.ended)


def _read_row(request: SyncPod, board: Board) -> RuntimePodStatus | None:
    return read_status(board, request.row, request.uid) if request.row >= 0 else None
