"""Reports of a worker about Podman: on the board, and of the node worker to the master."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from ipc.link.messages.api_server import WorkerInfo
from ipc.link.messages.node_worker import NodeWorkerCommand, NodeWorkerReport, ServiceSilent
from ipc.link.shm.board import Board
from ipc.link.shm.breaker_state import BreakerState
from ipc.link.wire.channel import Channel
from workers.api_server.store.workers_view import worker_view
from workers.main import NodeHealthReporter

INFO = WorkerInfo(slot=0, role="node-worker", name="node", pid=7, incarnation=1, state="Running", pods=0, deaths=0)


async def test_the_state_is_on_the_board_and_a_silence_reaches_the_master() -> None:
    board, (ours, theirs) = Board.create(worker_slots=1, pod_rows=1), socket.socketpair()
    channel: Channel[Any, Any] = await Channel.open(ours, NodeWorkerReport, NodeWorkerCommand)
    master: Channel[Any, Any] = await Channel.open(theirs, NodeWorkerCommand, NodeWorkerReport)
    writer = board.worker_writer(0)
    writer.begin(7, 1)
    teller = NodeHealthReporter(writer, channel)
    teller.breaker_changed(BreakerState.OPEN)
    assert worker_view(INFO, board.read_worker(0), 1.0).breaker == "Open"
    assert not teller.answers.is_set()
    teller.breaker_changed(BreakerState.CLOSED)
    assert teller.answers.is_set()
    teller.silent("no answer within 3.0 s")
    async with asyncio.timeout(5):
        assert await master.receive() == ServiceSilent(message="no answer within 3.0 s")
    master.close()
    channel.close()
    teller.silent("nobody is left to be told")
    await asyncio.gather(master.wait_closed(), channel.wait_closed())


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (BreakerState.NONE, ""),
        (BreakerState.CLOSED, "Closed"),
        (BreakerState.OPEN, "Open"),
        (BreakerState.HALF_OPEN, "HalfOpen"),
    ],
)
def test_how_a_state_is_shown(state: BreakerState, shown: str) -> None:
    assert state.shown == shown
