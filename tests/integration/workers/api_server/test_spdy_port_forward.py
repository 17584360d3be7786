"""Forwarded connections over SPDY, alone and in a WebSocket: pairs of streams, ends, bounds, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from ipc.link.messages.base import Shutdown
from tests.integration.workers.api_server.test_port_forward import (
    LARGE_BYTES,
    MANY,
    PATH,
    LocalDialer,
    PodEnd,
    listening,
    received,
    send,
    web,
)
from tests.support.api_server import DEADLINE_S, Master, api_server, eventually
from tests.support.open_files import open_files, open_files_before
from tests.support.spdy_client import SpdyClient, spdy_client
from tests.support.until import until_still
from workers.api_server.core.upgrades import PORT_FORWARD, TUNNEL
from workers.api_server.streams.port_forward import MAX_CONNECTIONS
from workers.spdy.connection import Connection
from workers.spdy.frames import RstStream, SynReply

CHUNK: Final = bytes(32 * 1024)


@pytest.fixture
def pod_end() -> Any:
    with listening(socket.AF_INET, "127.0.0.1") as end:
        yield end


@pytest.fixture
async def master(tmp_path: Path) -> AsyncIterator[Master]:
    async with api_server(tmp_path, dialer=LocalDialer()) as started:
        started.ready(web())
        yield started


class MessageEnds:
    """A WebSocket for a `SpdyClient` that knows of none: its bytes go in messages of a few bytes, and of many."""

    def __init__(self, found: aiohttp.ClientWebSocketResponse) -> None:
        self._found = found
        self._held = bytearray()

    def write(self, data: bytes) -> None:
        self._held += data

    async def drain(self) -> None:
        while self._held:
            size = 1 if len(self._held) < 16 else 20_000
            piece = bytes(self._held[:size])
            del self._held[:size]
            await self._found.send_bytes(piece)

    async def read(self, _: int) -> bytes:
        await self.drain()
        message = await self._found.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            return b""
        assert message.data, "a message of nothing"
        return bytes(message.data)


@contextlib.asynccontextmanager
async def in_websocket(master: Master) -> AsyncIterator[SpdyClient]:
    connector = aiohttp.UnixConnector(str(master.socket_path))
    async with (
        aiohttp.ClientSession("http://rootlet", connector=connector) as session,
        session.ws_connect(PATH, protocols=(TUNNEL,)) as found,
    ):
        assert found.protocol == TUNNEL
        ends: Any = MessageEnds(found)
        yield SpdyClient(ends, ends, "")


def alone(master: Master) -> contextlib.AbstractAsyncContextManager[SpdyClient]:
    return spdy_client(master, PATH, (), (PORT_FORWARD,))


Opened = Any
both = pytest.mark.parametrize("opened", [alone, in_websocket])


class Pair:
    def __init__(self, client: SpdyClient, error: int, data: int) -> None:
        self.client = client
        self.error = error
        self.data = data

    async def send(self, data: bytes, *, fin: bool = False) -> None:
        await self.client.send(self.data, data, fin=fin)


async def connected(client: SpdyClient, port: int, id: int = 0) -> Pair:
    """As kubectl does it."""
    named = {"port": str(port), "requestid": str(id)}
    error = await client.open(streamtype="error", **named)
    await client.send(error, b"", fin=True)
    return Pair(client, error, await client.open(streamtype="data", **named))


@both
async def test_data_both_ways_and_each_way_ends_alone(master: Master, pod_end: PodEnd, opened: Opened) -> None:
    async with opened(master) as client:
        pair = await connected(client, pod_end.port)
        with await pod_end.accept() as pod:
            await pair.send(b"question")
            assert await received(pod) == b"question"
            await pair.send(b"", fin=True)
            assert await received(pod) == b""
            await send(pod, b"answer")
            assert await client.data(pair.data, 6) == b"answer"
        assert await client.rest(pair.data) == b""
        assert await client.rest(pair.error) == b""


@both
async def test_the_pod_may_end_first(master: Master, pod_end: PodEnd, opened: Opened) -> None:
    async with opened(master) as client:
        pair = await connected(client, pod_end.port)
        with await pod_end.accept() as pod:
            pod.shutdown(socket.SHUT_WR)
            assert await client.rest(pair.data) == b""
            await pair.send(b"still")
            assert await received(pod) == b"still"
            await pair.send(b"", fin=True)
            assert await received(pod) == b""
        assert await client.rest(pair.error) == b""


@both
async def test_connections_come_and_go_beside_each_other(master: Master, pod_end: PodEnd, opened: Opened) -> None:
    before = open_files_before()
    async with opened(master) as client:
        pairs = [await connected(client, pod_end.port, id) for id in range(MANY)]
        pods = [await pod_end.accept() for _ in pairs]
        for number, pair in enumerate(pairs):
            await pair.send(b"%d" % number, fin=True)
        for pod in pods:
            with pod:
                await send(pod, b"to " + await received(pod))
        assert {await client.rest(pair.data) for pair in pairs} == {b"to %d" % number for number in range(MANY)}
        for pair in pairs:
            assert await client.rest(pair.error) == b""
        assert client.connection.open_streams == 0
    await eventually(lambda: open_files() <= before, "no descriptors are left")


@both
async def test_large_transfers_are_exact(master: Master, pod_end: PodEnd, opened: Opened) -> None:
    data = os.urandom(LARGE_BYTES)
    async with opened(master) as client:
        pair = await connected(client, pod_end.port)
        with await pod_end.accept() as pod:

            async def echo() -> None:
                while piece := await received(pod):
                    await send(pod, piece)
                pod.shutdown(socket.SHUT_WR)

            async def give() -> None:
                for start in range(0, len(data), len(CHUNK)):
                    await pair.send(data[start : start + len(CHUNK)])
                await pair.send(b"", fin=True)

            *_, shown = await asyncio.gather(echo(), give(), client.rest(pair.data))
    assert hashlib.sha256(shown).digest() == hashlib.sha256(data).digest()


@both
async def test_nobody_listens(master: Master, pod_end: PodEnd, opened: Opened) -> None:
    """The error is that pair's; the next one goes on."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    async with opened(master) as client:
        pair = await connected(client, port)
        words = f"error forwarding port {port} to pod web: Connection refused"
        assert await client.rest(pair.error) == words.encode()
        other = await connected(client, pod_end.port, 1)
        with await pod_end.accept() as pod:
            await send(pod, b"hello")
            assert await client.data(other.data, 5) == b"hello"


async def test_a_reset_is_the_end_of_the_connection(master: Master, pod_end: PodEnd) -> None:
    async with alone(master) as client:
        pair = await connected(client, pod_end.port)
        with await pod_end.accept() as pod:
            await client.reset(pair.data)
            assert await received(pod) == b""
        assert await client.rest(pair.error) == b""


@both
async def test_a_client_that_goes_is_an_end_for_the_pod(master: Master, pod_end: PodEnd, opened: Opened) -> None:
    async with opened(master) as client:
        pairs = [await connected(client, pod_end.port, id) for id in range(3)]
        pods = [await pod_end.accept() for _ in pairs]
    for pod in pods:
        with pod:
            assert await received(pod) == b""


async def test_clients_without_request_ids(master: Master, pod_end: PodEnd) -> None:
    """Clients of Kubernetes before 1.2: the error stream comes first, the data stream next."""
    async with alone(master) as client:
        await client.open(streamtype="error", port=str(pod_end.port))
        data = await client.open(streamtype="data", port=str(pod_end.port))
        with await pod_end.accept() as pod:
            await send(pod, b"hello")
            assert await client.data(data, 5) == b"hello"


@pytest.mark.parametrize(
    "headers",
    [
        {"streamtype": "data"},
        {"streamtype": "data", "port": "0"},
        {"streamtype": "data", "port": "65536"},
        {"streamtype": "data", "port": "http"},
        {"streamtype": "data", "port": "²"},
        {"port": "80"},
        {"streamtype": "stdin", "port": "80"},
        {"streamtype": "data", "port": "80", "requestid": "x" * 65},
    ],
)
async def test_streams_that_are_refused(master: Master, pod_end: PodEnd, headers: dict[str, str]) -> None:
    async with alone(master) as client:
        with pytest.raises(ConnectionRefusedError):
            await client.open(**headers)
        await connected(client, pod_end.port)
        (await pod_end.accept()).close()


async def test_two_streams_of_one_kind(master: Master, pod_end: PodEnd) -> None:
    async with alone(master) as client:
        named = {"port": str(pod_end.port), "requestid": "0"}
        await client.open(streamtype="error", **named)
        with pytest.raises(ConnectionRefusedError):
            await client.open(streamtype="error", **named)
        with pytest.raises(ConnectionRefusedError):
            await client.open(streamtype="data", **named | {"port": "1"})


async def test_a_stream_whose_other_does_not_come(
    master: Master, pod_end: PodEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.api_server.streams.port_pairs.CREATION_TIMEOUT_S", 0.05)
    async with alone(master) as client:
        error = await client.open(streamtype="error", port="80", requestid="0")
        assert await client.rest(error) == b""
        assert client.connection.open_streams == 0


async def test_more_connections_than_there_are_permits(
    tmp_path: Path, pod_end: PodEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more is refused, and the client can go on with the others; one that ends makes room."""
    monkeypatch.setattr("workers.api_server.streams.port_forward.MAX_CONNECTIONS", 2)
    async with api_server(tmp_path, dialer=LocalDialer()) as limited:
        limited.ready(web())
        async with alone(limited) as client:
            pairs = [await connected(client, pod_end.port, id) for id in range(2)]
            pods = [await pod_end.accept() for _ in pairs]
            with pytest.raises(ConnectionRefusedError):
                await connected(client, pod_end.port, 2)
            await client.reset(pairs[0].data)
            assert await client.rest(pairs[0].error) == b""
            await connected(client, pod_end.port, 3)
            for pod in (*pods, await pod_end.accept()):
                pod.close()


@both
async def test_the_end_of_the_api_server_is_told(master: Master, pod_end: PodEnd, opened: Opened) -> None:
    async with opened(master) as client:
        pair = await connected(client, pod_end.port)
        with await pod_end.accept() as pod:
            master.feed(Shutdown())
            assert (await client.rest(pair.error)).decode().endswith("the agent's API server stops")
            assert await received(pod) == b""


async def test_a_pod_that_reads_nothing_stops_the_client(master: Master, pod_end: PodEnd) -> None:
    async with alone(master) as client:
        pair = await connected(client, pod_end.port)
        with await pod_end.accept() as pod:
            sent = 0

            async def give() -> None:
                nonlocal sent
                while True:
                    await pair.send(CHUNK)
                    sent += len(CHUNK)

            giving = asyncio.create_task(give())
            await until_still(lambda: sent)
            giving.cancel()
            await asyncio.gather(giving, return_exceptions=True)
            assert sent < 8 * 1024 * 1024
            pod.close()


# --- hostile clients -----------------------------------------------------------------------------------------------


async def test_streams_that_are_opened_and_reset_leave_nothing(master: Master, pod_end: PodEnd) -> None:
    """Thousands of them, as fast as they can be sent; another client is served meanwhile."""
    before = open_files_before()
    async with alone(master) as client, alone(master) as other:
        frames = bytearray()
        for id in range(3000):
            named = (("port", str(pod_end.port)), ("requestid", str(id)))
            for kind in ("error", "data"):
                stream, frame = client.connection.open((("streamtype", kind), *named))
                frames += frame
            frames += client.connection.reset(stream)

        async def storm() -> None:
            await client.write(bytes(frames))

        async def drained() -> None:
            while client.connection.open_streams:
                if not await client.read():
                    return
                client.events.clear()

        async def accept() -> None:
            while True:
                (await pod_end.accept()).close()

        accepting = asyncio.create_task(accept())
        reading = asyncio.create_task(drained())
        await storm()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        client.writer.close()
        accepting.cancel()
        await asyncio.gather(accepting, return_exceptions=True)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            listener.setblocking(False)
            served = PodEnd(listener)

            async def is_served() -> Pair:
                while True:
                    with contextlib.suppress(ConnectionRefusedError):
                        return await connected(other, served.port, other.connection._next_stream)

            pair = await asyncio.wait_for(is_served(), DEADLINE_S)
            with await served.accept() as pod:
                await send(pod, b"hello")
                assert await other.data(pair.data, 5) == b"hello"
    await eventually(lambda: open_files() <= before, "no descriptors are left")


async def test_more_streams_than_a_client_may_have(master: Master) -> None:
    """Error streams alone, which wait for their other."""
    async with alone(master) as client:
        opened = [await client.request(streamtype="error", port="80", requestid=str(id)) for id in range(300)]
        answers = [await client.first(SynReply, RstStream, stream=stream) for stream in opened]
        assert [type(answer) for answer in answers] == [SynReply] * MAX_CONNECTIONS + [RstStream] * 100


BROKEN: Final = {
    "a version": b"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01",
    "an endless control frame": b"\x80\x03\x00\x01\x00\xff\xff\xff",
    "a header block that is none": b"\x80\x03\x00\x01\x00\x00\x00\x0e" + bytes(3) + b"\x01" + bytes(10),
    "a stream of even number": Connection().open((("streamtype", "error"),))[1],
    "data of stream 0": b"\x00\x00\x00\x00\x00\x00\x00\x01x",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
async def test_what_is_no_spdy_ends_the_connection(master: Master, data: bytes) -> None:
    async with alone(master) as client:
        await client.write(data)
        client.writer.write_eof()
        async with asyncio.timeout(DEADLINE_S):
            answer = await client._reader.read()
        assert answer[:4] == b"\x80\x03\x00\x07"  # GOAWAY


HARMLESS: Final = {
    "data of an unknown stream": b"\x00\x00\x00\x63\x01\x00\x00\x01x",
    "reset of an unknown stream": b"\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x63\x00\x00\x00\x05",
    "a window of 0": b"\x80\x03\x00\x04\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x07\x00\x00\x00\x00",
    "a window that grows by 0": b"\x80\x03\x00\x09\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00",
    "a frame of an unknown type": b"\x80\x03\x00\x63\x00\x00\x00\x02ab",
}


@pytest.mark.parametrize("data", HARMLESS.values(), ids=HARMLESS.keys())
async def test_what_is_passed_over(master: Master, pod_end: PodEnd, data: bytes) -> None:
    async with alone(master) as client:
        pair = await connected(client, pod_end.port)
        await client.write(data)
        with await pod_end.accept() as pod:
            await pair.send(CHUNK * 4)
            left = 4 * len(CHUNK)
            while left:
                left -= len(await received(pod))
            await send(pod, CHUNK * 4)
            assert len(await client.data(pair.data, 4 * len(CHUNK))) == 4 * len(CHUNK)


async def test_half_a_frame_holds_nobody_up(master: Master, pod_end: PodEnd) -> None:
    async with alone(master) as stuck, alone(master) as client:
        await stuck.write(b"\x80\x03\x00\x01\x00\x00")
        await connected(client, pod_end.port)
        (await pod_end.accept()).close()


async def test_answers_that_nobody_reads_stop_the_reading(master: Master) -> None:
    """Pings without end, of which no answer is read."""
    async with alone(master) as client:
        ping = client.connection.ping() * 4096
        sent = 0

        async def storm() -> None:
            nonlocal sent
            while True:
                client.writer.write(ping)
                await client.writer.drain()
                sent += len(ping)

        storming = asyncio.create_task(storm())
        await until_still(lambda: sent)
        storming.cancel()
        await asyncio.gather(storming, return_exceptions=True)
        assert sent < 8 * 1024 * 1024


async def test_many_clients_that_do_nothing(master: Master, pod_end: PodEnd) -> None:
    before = open_files_before()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(100):
            await stack.enter_async_context(alone(master))
        async with alone(master) as client:
            await connected(client, pod_end.port)
            (await pod_end.accept()).close()
    await eventually(lambda: open_files() <= before, "no descriptors are left")
    await eventually(lambda: master.server is not None and not master.server.done(), "it goes on")
