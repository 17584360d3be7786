"""Observations with their content put on, out of the board's rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipc.link.eventloop.tasks import note_failure
from ipc.link.messages.node_worker import Observation
from ipc.link.shm.board import Board
from ipc.link.shm.observation_rows import read_status


def resolve(board: Board, observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """Each with its status, from its row unless it came along. One that cannot be read stays without: its row serves
    another pod by now, or was torn by a death."""
    return tuple(_resolved(board, observation) for observation in observations)


def _resolved(board: Board, observation: Observation) -> Observation:
    if observation.status is not None:
        return observation
    try:
        status = read_status(board, observation.row, observation.uid)
    except msgspec.DecodeError as error:
        note_failure(f"row of pod {observation.uid} on the board", error)
        status = None
    return observation if status is None else msgspec.structs.replace(observation, status=status)
