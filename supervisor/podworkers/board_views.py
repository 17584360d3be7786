"""Observations with their content put on, out of the board's rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipc.host.tasks import note_failure
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.node_worker import Observation
from ipc.shm.board import Board


def resolve(board: Board, observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """Each with its status, from its row unless it came along. One that cannot be read stays without: its row serves
    another pod by now, or was torn by a death."""
    return tuple(_resolved(board, observation) for observation in observations)


def _resolved(board: Board, observation: Observation) -> Observation:
    row = board.read_pod(observation.row) if observation.status is None else None
    if row is None or row.uid != observation.uid:
        return observation
    try:
        status = msgspec.msgpack.decode(row.payload, type=RuntimePodStatus)
    except msgspec.DecodeError as error:
        note_failure(f"row of pod {row.uid} on the board", error)
        return observation
    # Seen again unchanged, a row only gets a new date.
    return msgspec.structs.replace(observation, status=msgspec.structs.replace(status, observed_at=row.observed_at))
