"""A SPDY session on bytes that a test gives and takes: bounds, pings, idleness, and the order of what is written."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any, Final

import pytest

from ipc.link.wire.stream_channels import Message
from tests.support.api_server import DEADLINE_S
from workers.api_server.core.spdy_session import INBOX_BYTES, ITEM_BYTES, Inbox, Route, SpdySession, StreamReset
from workers.api_server.streams.port_pairs import Permits, PortPair, PortPairs
from workers.spdy.connection import Connection, Event
from workers.spdy.frames import GoAway, Ping, SynReply, SynStream

MAX_STREAMS: Final = 4
TYPE: Final = (("streamtype", "data"),)
NEVER_S: Final = 3600.0


class Bytes:
    """Both ends of the bytes."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.taken = asyncio.Event()
        self.taken.set()
        self.aborted = False
        self.given: asyncio.Queue[bytes] = asyncio.Queue()

    async def read(self) -> bytes:
        return await self.given.get()

    async def write(self, data: bytes) -> None:
        self.written += data
        await self.taken.wait()

    def abort(self) -> None:
        self.aborted = True


class Everything:
    """Takes all streams into one inbox."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.opened: list[int] = []

    def accept(self, opened: SynStream) -> Route | None:
        return Route(self.inbox, opened.stream)

    def replied(self, opened: SynStream) -> None:
        self.opened.append(opened.stream)


class Ends:
    def __init__(self, idle_timeout_s: float = NEVER_S) -> None:
        response: Any = None
        self.bytes = Bytes()
        self.client = Connection(client=True)
        self.session = SpdySession(self.bytes, response, MAX_STREAMS, idle_timeout_s)
        self.acceptor = Everything()
        self.serving = asyncio.ensure_future(self.session.serve(self.acceptor))

    def give(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.bytes.given.put_nowait(piece)

    def open(self) -> int:
        stream, frame = self.client.open(TYPE)
        self.give(frame)
        return stream

    def received(self) -> list[Event]:
        """Events that the client reads."""
        data = bytes(self.bytes.written)
        self.bytes.written.clear()
        return list(self.client.receive(data))

    async def got(self) -> Message | StreamReset | None:
        async with asyncio.timeout(DEADLINE_S):
            return await self.acceptor.inbox.get()

    async def over(self) -> None:
        self.give(b"")
        async with asyncio.timeout(DEADLINE_S):
            await self.serving


async def a_while() -> None:
    """As many turns of the loop as anything here can take: there is no I/O that it would wait for."""
    for _ in range(1000):
        await asyncio.sleep(0)


async def test_data_of_streams_and_their_ends() -> None:
    ends = Ends()
    first, second = ends.open(), ends.open()
    ends.give(ends.client.data(first, b"one"), ends.client.data(second, b"", fin=True), ends.client.reset(first))
    assert [await ends.got() for _ in range(3)] == [
        Message(first, b"one"),
        Message(second, ends=True),
        StreamReset(first),
    ]
    assert ends.acceptor.opened == [first, second]
    assert ends.received() == [SynReply(second)]  # the client has forgotten the first one
    await ends.over()
    assert await ends.got() is None


async def test_a_full_inbox_stops_the_reading() -> None:
    ends = Ends()
    stream = ends.open()
    piece = bytes(INBOX_BYTES)
    ends.give(*(ends.client.data(stream, piece) for _ in range(5)))
    assert await ends.got() == Message(stream, piece)
    await a_while()
    assert ends.bytes.given.qsize() == 3
    for _ in range(4):
        assert await ends.got() == Message(stream, piece)
    await ends.over()


async def test_small_pieces_are_counted_with_what_they_cost() -> None:
    """A byte a frame: as many as make an inbox full hold less than a MiB."""
    ends = Ends()
    stream = ends.open()
    frames = [ends.client.data(stream, b"x") for _ in range(4 * INBOX_BYTES // ITEM_BYTES)]
    tracemalloc.start()
    try:
        ends.give(b"".join(frames))
        await a_while()
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1024 * 1024
    for _ in frames:
        assert await ends.got() == Message(stream, b"x")
    await ends.over()


async def test_replies_are_in_the_order_in_which_they_were_compressed() -> None:
    """While the client takes nothing, replies and other frames wait for their turn."""
    ends = Ends()
    ends.bytes.taken.clear()
    streams = [ends.open() for _ in range(3)]
    pinging = [asyncio.ensure_future(ends.session.ping()) for _ in range(3)]
    await a_while()
    ends.bytes.taken.set()
    await asyncio.gather(*pinging)
    await a_while()
    assert ends.acceptor.opened == streams
    found = ends.received()
    assert [event for event in found if isinstance(event, SynReply)] == [SynReply(stream) for stream in streams]
    assert sum(isinstance(event, Ping) for event in found) == 3
    await ends.over()


async def test_of_what_nobody_reads_one_frame_is_kept() -> None:
    ends = Ends()
    stream = ends.open()
    await a_while()
    ends.bytes.taken.clear()
    ends.bytes.written.clear()
    sending = [asyncio.ensure_future(ends.session.send(stream, bytes(1000))) for _ in range(50)]
    await a_while()
    assert len(ends.bytes.written) < 2000
    ends.bytes.taken.set()
    await asyncio.gather(*sending)
    await ends.over()


async def test_idleness_ends_it_and_answers_to_our_pings_are_idleness() -> None:
    ends = Ends(idle_timeout_s=0.0)
    for event in ends.client.receive(Connection().ping()):
        assert isinstance(event, Ping)
    ends.give(ends.client.answers())
    ends.bytes.taken.clear()
    with pytest.raises(ConnectionAbortedError, match="idle"):
        await ends.session.ping()
    await ends.over()


async def test_a_client_that_is_gone_cannot_be_sent_to() -> None:
    ends = Ends()
    stream = ends.open()
    await ends.over()
    for act in (ends.session.ping(), ends.session.send(stream, b"x"), ends.session.end(stream)):
        with pytest.raises(ConnectionError):
            await act


async def test_the_end_is_told_and_waits_for_the_client_only_so_long() -> None:
    ends = Ends()
    ends.serving.cancel()
    await asyncio.gather(ends.serving, return_exceptions=True)
    await ends.session.close(0.01)
    assert ends.received() == [GoAway(0)]
    assert ends.bytes.aborted


@pytest.mark.parametrize("is_complete", [False, True])
async def test_permits_come_back_whenever_a_client_goes(is_complete: bool) -> None:
    """Before the task of a pair has begun, too."""

    async def serve(_: PortPair) -> None:
        await asyncio.Event().wait()

    ends, permits = Ends(), Permits(1)
    pairs = PortPairs(ends.session, serve, permits)
    for number, kind in enumerate(("error", "data")[: 1 + is_complete]):
        opened = SynStream(2 * number + 1, (("streamtype", kind), ("port", "80"), ("requestid", "0")))
        assert pairs.accept(opened) is not None
        pairs.replied(opened)
    assert not permits.take()
    await pairs.close()
    assert permits.take()
    assert not permits.take()
    await ends.over()
