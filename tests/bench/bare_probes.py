"""The same exchanges as probes make, by the same libraries and the same loop, with nothing else around them."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, cast

import h2.config
import h2.connection
import h2.events
import h11

from ipc.host.clock import monotonic

READ_BYTES: Final = 16 * 1024
HTTP_ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
GRPC_HEAD: Final = ((":status", "200"), ("content-type", "application/grpc"))
GRPC_ANSWER: Final = b"\0\0\0\0\2\x08\x01"
GRPC_REQUEST: Final = b"\0\0\0\0\0"

Address = tuple[str, int]


async def http_get(address: Address) -> None:
    reader, writer = await asyncio.open_connection(sock=await _connected(address))
    connection = h11.Connection(h11.CLIENT)
    host = f"{address[0]}:{address[1]}"
    headers = [("Host", host), ("User-Agent", "bare"), ("Accept", "*/*"), ("Connection", "close")]
    writer.write(connection.send(h11.Request(method="GET", target="/", headers=headers)) or b"")
    connection.send(h11.EndOfMessage())
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_BYTES))
        elif isinstance(event, h11.Response):
            assert event.status_code == 200
    writer.close()


async def tcp_connect(address: Address) -> None:
    (await _connected(address)).close()


async def grpc_check(address: Address) -> None:
    loop = asyncio.get_running_loop()
    with await _connected(address) as connected:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        connection.initiate_connection()
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/grpc.health.v1.Health/Check"),
            (":authority", f"{address[0]}:{address[1]}"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
        connection.send_headers(1, headers)
        connection.send_data(1, GRPC_REQUEST, end_stream=True)
        await loop.sock_sendall(connected, connection.data_to_send())
        answered = False
        while not answered:
            events = connection.receive_data(await loop.sock_recv(connected, READ_BYTES))
            answered = any(isinstance(event, h2.events.StreamEnded) for event in events)
            await loop.sock_sendall(connected, connection.data_to_send())


BARE: Final[Mapping[str, Callable[[Address], Awaitable[None]]]] = {
    "http": http_get,
    "tcp": tcp_connect,
    "grpc": grpc_check,
}


async def _connected(address: Address) -> socket.socket:
    made = socket.socket()
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, address)
    return made


# Servers, in a process of their own


class HttpServer(asyncio.Protocol):
    """Answers whatever comes, and notes when."""

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own type
        self._note()

    def data_received(self, data: bytes) -> None:
        self._transport.write(HTTP_ANSWER)
        self._transport.close()


class GrpcServer(asyncio.Protocol):
    """SERVING, whatever is asked."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own type
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self._h2.initiate_connection()
        self._transport.write(self._h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            if isinstance(event, h2.events.StreamEnded):
                stream = event.stream_id or 0
                self._h2.send_headers(stream, GRPC_HEAD)
                self._h2.send_data(stream, GRPC_ANSWER)
                self._h2.send_headers(stream, [("grpc-status", "0")], end_stream=True)
        self._transport.write(self._h2.data_to_send())


async def serve(http: Sequence[socket.socket], grpc: Sequence[socket.socket]) -> None:
    """Answer on these listening sockets, for ever."""
    loop = asyncio.get_running_loop()
    for listening in http:
        await loop.create_server(lambda: HttpServer(lambda: None), sock=listening)
    for listening in grpc:
        await loop.create_server(GrpcServer, sock=listening)
    await asyncio.Event().wait()


class Arrivals:
    """When each of many servers was asked, in this process."""

    def __init__(self) -> None:
        self.times: dict[int, list[float]] = {}
        self._servers: list[asyncio.Server] = []

    def close(self) -> None:
        """uvloop waits for servers when it is closed."""
        for server in self._servers:
            server.close()

    async def listen(self, number: int, listening: socket.socket) -> None:
        """Serve there; its probes are noted under that number."""
        times = self.times.setdefault(number, [])
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: HttpServer(lambda: times.append(monotonic())), sock=listening)
        self._servers.append(server)

    def count(self, begin: float, end: float) -> int:
        """Number of all probes between the two moments."""
        return sum(begin <= time <= end for times in self.times.values() for time in times)

    def lateness(self, period_s: float, begin: float, end: float) -> list[float]:
        """By how much each probe between the two moments came later than a period after the one before, in seconds."""
        late: list[float] = []
        for times in self.times.values():
            inside = [time for time in times if begin <= time <= end]
            late += [max(0.0, after - before - period_s) for before, after in itertools.pairwise(inside)]
        return late
