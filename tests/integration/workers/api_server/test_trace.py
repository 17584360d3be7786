"""Traces over the admin socket: begun, read and ended, and ended with the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.link.shm.trace import TRACER, TraceBuffer
from tests.support.api_server import SLOT, Master, api_server, pod_changed, watching

TRACE = "/rootlet/v1/trace"


@pytest.fixture
def traced(master: Master) -> Iterator[TraceBuffer]:
    """The agent's buffer, to which this process tells what it does."""
    TRACER.attach(master.board.trace, SLOT, "api-1")
    yield master.board.trace
    TRACER.detach()


async def test_a_trace_has_what_happened_between_its_begin_and_its_end(master: Master, traced: TraceBuffer) -> None:
    master.ready(pod_changed(1, "before"))
    async with watching(master) as watch:
        await watch.next()
        async with master.http.post(TRACE) as answer:
            assert answer.status == 200
        master.feed(pod_changed(2, "web"))
        await watch.next()
        code, found = await master.get(TRACE)
        assert (code, found["dropped"]) == (200, 0)
        assert {(name, process) for name, _pod, _begin, _end, _cpu, process, _pid in found["spans"]} >= {
            ("takes PodChanged", "api-1")
        }
    async with master.http.delete(TRACE) as answer:
        assert answer.status == 200
    assert not TRACER.on
    assert (await master.get(TRACE))[1] == {"spans": [], "dropped": 0}


async def test_a_server_that_ends_leaves_no_trace_under_way(tmp_path: Path) -> None:
    async with api_server(tmp_path) as master:
        async with master.http.post(TRACE) as answer:
            assert answer.status == 200
        trace = master.board.trace
        assert trace.switch[0]
    assert not trace.switch[0]
