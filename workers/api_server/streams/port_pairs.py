"""Forwarded connections of one SPDY client (cri-streaming pkg/streaming/portforward, httpstream.go).

For each the client opens two streams, ``error`` and ``data``, which say by a common request id that they belong
together. On the first the server may write why the connection failed; kubectl gives all of them up then. A pair that is
refused (a stream that is reset before it was accepted) is only the end of that one connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from ipc.k8s.network.ports import MAX_PORT
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.wire.stream_channels import Message, PortChannel, StreamStatus
from workers.api_server.core.spdy_session import Inbox, Route, SpdySession
from workers.api_server.core.stream_sockets import Ended
from workers.spdy.frames import SynStream

CREATION_TIMEOUT_S: Final = 30.0
"""How long the second stream of a pair may come after the first (cri-streaming pkg/streaming, DefaultConfig
StreamCreationTimeout)."""
STREAM_TYPE: Final = "streamtype"
PORT: Final = "port"
REQUEST_ID: Final = "requestid"
MAX_ID_CHARS: Final = 64
"""Longest request id."""

_BY_TYPE: Final[Mapping[str, PortChannel]] = {"data": PortChannel.DATA, "error": PortChannel.ERROR}
_MAX_DIGITS: Final = 5


class Permits:
    """Permits for connections, of all clients together."""

    def __init__(self, most: int) -> None:
        self._free = most

    def take(self) -> bool:
        """False when there is none."""
        if not self._free:
            return False
        self._free -= 1
        return True

    def give_back(self) -> None:
        self._free += 1


class PortPair:
    """`Channels` of one connection."""

    half_closes: Final = True

    def __init__(self, session: SpdySession, port: int) -> None:
        self.response = session.response
        self.port = port
        self.ids: dict[int, int] = {}
        """The stream of each channel."""
        self.inbox = Inbox()
        self._session = session

    @property
    def is_complete(self) -> bool:
        return len(self.ids) == len(PortChannel)

    async def ready(self) -> bool:
        return self.is_complete

    async def send(self, channel: int, data: bytes) -> None:
        await self._session.send(self.ids[channel], data)

    async def end(self, channel: int) -> None:
        await self._session.end(self.ids[channel])

    async def receive(self) -> Message | None:
        """A data stream that is reset is a client that is gone."""
        while (item := await self.inbox.get()) is not None:
            if item.channel == PortChannel.DATA:
                return item if isinstance(item, Message) else None
        return None

    async def ping(self) -> None:
        """The session is looked after as a whole."""

    async def say(self, status: StreamStatus) -> None:
        await self.send(PortChannel.ERROR, status.message.encode())

    def going_away(self) -> None:
        """Nothing to do: the session is told as a whole."""

    async def finish(self) -> None:
        """The end of its streams. Raises ConnectionError."""
        self.inbox.close()
        for stream in self.ids.values():
            await self._session.finish(stream)


class PortPairs:
    """`Acceptor` of one client's streams. A complete pair is served by a task of its own."""

    def __init__(self, session: SpdySession, serve: Callable[[PortPair], Awaitable[None]], permits: Permits) -> None:
        self._session = session
        self._serve = serve
        self._permits = permits
        self._begun: dict[str, PortPair] = {}
        """Pairs with a stream that is missing, or not accepted yet, by request id."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks = BackgroundTasks()

    def accept(self, opened: SynStream) -> Route | None:
        id, port, channel = _request_id(opened), _port(opened), _BY_TYPE.get(opened.header(STREAM_TYPE))
        if len(id) > MAX_ID_CHARS or port is None or channel is None:
            return None
        pair = self._begun.get(id) or self._begin(id, port)
        if pair is None or pair.port != port or channel in pair.ids:
            return None
        pair.ids[channel] = opened.stream
        return Route(pair.inbox, channel)

    def _begin(self, id: str, port: int) -> PortPair | None:
        if not self._permits.take():
            return None
        pair = self._begun[id] = PortPair(self._session, port)
        loop = asyncio.get_running_loop()
        self._timers[id] = loop.call_later(CREATION_TIMEOUT_S, self._give_up, id)
        return pair

    def replied(self, opened: SynStream) -> None:
        id = _request_id(opened)
        pair = self._begun.get(id)
        if pair is not None and pair.is_complete:
            self._spawn(self._served, self._taken(id))

    async def _served(self, pair: PortPair) -> None:
        try:
            await self._serve(pair)
        finally:
            await pair.finish()

    def _give_up(self, id: str) -> None:
        self._spawn(PortPair.finish, self._taken(id))

    def _taken(self, id: str) -> PortPair:
        self._timers.pop(id).cancel()
        return self._begun.pop(id)

    def _spawn(self, act: Callable[[PortPair], Awaitable[None]], pair: PortPair) -> None:
        """The permit is given back at the end, also when the task was cancelled before it began."""
        task = self._tasks.spawn(_quietly(act, pair), name=f"forwarding of port {pair.port}")
        task.add_done_callback(lambda _: self._permits.give_back())

    async def until_gone(self) -> Ended:
        """Read the client's frames until it is gone."""
        await self._session.serve(self)
        return Ended.CLIENT_GONE

    async def until_done(self, timeout_s: float) -> None:
        """Give the connections that time to end by themselves."""
        if tasks := tuple(self._tasks):
            await asyncio.wait(tasks, timeout=timeout_s)

    async def close(self) -> None:
        """End them all."""
        for id in tuple(self._begun):
            self._taken(id)
            self._permits.give_back()
        await self._tasks.close()


async def _quietly(act: Callable[[PortPair], Awaitable[None]], pair: PortPair) -> None:
    with contextlib.suppress(ConnectionError):  # The client is gone: nobody is left to be told.
        await act(pair)


def _request_id(opened: SynStream) -> str:
    """Old clients have none: they open the error stream first, the data stream next (requestID, httpstream.go)."""
    first = opened.stream - 2 if opened.header(STREAM_TYPE) == "data" else opened.stream
    return opened.header(REQUEST_ID) or str(first)


def _port(opened: SynStream) -> int | None:
    text = opened.header(PORT)
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if is_number and 0 < int(text) <= MAX_PORT else None
