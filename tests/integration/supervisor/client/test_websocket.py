"""The client's end of a WebSocket, beside a server that sends what it likes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from ipc.link.wire.stream_channels import MAX_MESSAGE_BYTES, V5, ChannelSocket, Message
from supervisor.client.errors import AgentUnreachable, ConnectionLost, RequestFailed
from supervisor.client.websocket import StreamClient

DEADLINE_S = 10.0
STATUS = b'{"kind":"Status","code":404,"reason":"NotFound","message":"pods \\"web\\" not found"}'


class Peer:
    """The server's end, as sans-I/O as the client's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.state = WSConnection(ConnectionType.SERVER)
        self.received: list[Event] = []

    async def send(self, *events: Event) -> None:
        self.writer.write(b"".join(self.state.send(event) for event in events))
        await self.writer.drain()

    async def next(self) -> Event:
        while not self.received:
            data = await self.reader.read(65536)
            assert data, "the client has gone"
            self.state.receive_data(data)
            self.received += self.state.events()
        return self.received.pop(0)


Serve = Callable[[Peer], Awaitable[None]]


@contextlib.asynccontextmanager
async def server(path: Path, serve: Serve) -> AsyncIterator[StreamClient]:
    """Serves one connection; a failure of ``serve`` is the test's."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(Peer(reader, writer))
            ended.set_result(None)
        except BaseException as error:
            ended.set_exception(error)
        finally:
            writer.close()

    async with asyncio.timeout(DEADLINE_S), await asyncio.start_unix_server(connected, path):
        yield StreamClient(path)
        await ended


def opened(client: StreamClient) -> contextlib.AbstractAsyncContextManager[ChannelSocket]:
    return client.opened("/exec", [("command", "a b")])


async def accepted(peer: Peer) -> None:
    request = await peer.next()
    assert isinstance(request, Request)
    assert (request.target, list(request.subprotocols)) == ("/exec?command=a+b", [V5])
    await peer.send(AcceptConnection(subprotocol=V5))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sock"


async def test_a_message_in_pieces_is_one(path: Path) -> None:
    async def serve(peer: Peer) -> None:
        await accepted(peer)
        for piece in (b"\x01a", b"b", b"c"):
            await peer.send(BytesMessage(data=piece, message_finished=piece == b"c"))
        await peer.send(TextMessage(data="\x02d"))

    async with server(path, serve) as client, opened(client) as channels:
        assert await channels.receive() == Message(1, b"abc")
        assert await channels.receive() == Message(2, b"d")
        assert await channels.receive() is None


async def test_a_ping_is_answered_and_none_of_the_output(path: Path) -> None:
    async def serve(peer: Peer) -> None:
        await accepted(peer)
        await peer.send(Ping(payload=b"here?"), BytesMessage(data=b"\x01a"))
        assert await peer.next() == Pong(payload=b"here?")

    async with server(path, serve) as client, opened(client) as channels:
        assert await channels.receive() == Message(1, b"a")


async def test_the_agents_refusal_is_told(path: Path) -> None:
    async def serve(peer: Peer) -> None:
        await peer.next()
        headers = [(b"content-length", str(len(STATUS)).encode())]
        await peer.send(RejectConnection(status_code=404, headers=headers, has_body=True))
        await peer.send(RejectData(data=STATUS[:9], body_finished=False), RejectData(data=STATUS[9:]))

    with pytest.raises(RequestFailed, match='pods "web" not found'):
        async with server(path, serve) as client, opened(client):
            raise AssertionError("it was refused")


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
async def test_what_is_no_answer_ends_it(path: Path, answer: bytes) -> None:
    async def serve(peer: Peer) -> None:
        await peer.next()
        peer.writer.write(answer)

    with pytest.raises(ConnectionLost, match="ended before it had answered"):
        async with server(path, serve) as client, opened(client):
            raise AssertionError("nobody opened a stream")


async def test_nobody_listens(path: Path) -> None:
    with pytest.raises(AgentUnreachable):
        async with opened(StreamClient(path)):
            raise AssertionError("nobody is there")


@pytest.mark.parametrize(
    "data",
    [
        b"\x82\x7f\x00\x00\x00\x00\x00\x04\x00\x01\x01" + bytes(MAX_MESSAGE_BYTES),  # a byte more than is taken
        b"\xff\x00",  # reserved bits
        b"\x81\x01\xff",  # text that is none
        b"\x88\x00",  # it has closed
    ],
    ids=["too large", "no frame", "no text", "a close"],
)
async def test_a_peer_that_ends_or_keeps_to_no_protocol_ends_it(path: Path, data: bytes) -> None:
    async def serve(peer: Peer) -> None:
        await accepted(peer)
        peer.writer.write(data)
        await peer.writer.drain()

    async with server(path, serve) as client, opened(client) as channels:
        assert await channels.receive() is None


async def test_nothing_is_sent_to_a_peer_that_has_closed(path: Path) -> None:
    async def serve(peer: Peer) -> None:
        await accepted(peer)
        await peer.send(CloseConnection(code=1000))
        assert isinstance(await peer.next(), CloseConnection)

    async with server(path, serve) as client, opened(client) as channels:
        assert await channels.receive() is None
        with pytest.raises(ConnectionError):
            await channels.send(0, b"more")


async def test_our_end_is_said(path: Path) -> None:
    async def serve(peer: Peer) -> None:
        await accepted(peer)
        assert await peer.next() == BytesMessage(data=b"\x00last")
        assert isinstance(await peer.next(), CloseConnection)

    async with server(path, serve) as client, opened(client) as channels:
        await channels.send(0, b"last")


async def test_a_peer_that_does_not_read_delays_no_end(path: Path) -> None:
    ended = asyncio.Event()

    async def serve(peer: Peer) -> None:
        await accepted(peer)
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await ended.wait()

    async def flood(channels: ChannelSocket) -> None:
        while True:
            await channels.send(0, bytes(65536))

    async with server(path, serve) as client:
        async with opened(client) as channels:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await flood(channels)
        ended.set()
