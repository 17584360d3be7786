"""The way between the node and the API server in the simulation: connections with delays, losses and partitions.

The client is the real one, with its pool of connections, its deadlines and repetitions; only a connection is not one of
sockets (`workers.kubeclient.connection`).
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import errno
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import parse_qsl, unquote

import msgspec

from tests.sim.cluster.rules import ServerRules
from tests.sim.cluster.server import SimServer
from tests.sim.link import Mailbox
from tests.sim.loop import NOBODY
from tests.support.servers.kube_api.failures import Refusal
from tests.support.servers.kube_api.requests import Request
from tests.support.servers.kube_api.watching import Watch, line
from workers.kubeclient import connection_pool

LATENCY_S: Final = 0.01
SLOW_S: Final = 4.0
TOO_SLOW_S: Final = 20.0
"""Longer than the deadline of a request: its effect comes when nobody waits for it any more."""
LAG_S: Final = 5.0
"""How far a cache may be behind that serves a watch."""
UNANSWERED_S: Final = 45.0
"""After which a kernel gives a silent peer up (`workers.kubeclient.connection`)."""
ARRIVES_LATE: Final = 0.3
"""Part of the requests of a partition that arrive when it is over."""


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """How likely each misfortune of a request is."""

    lost: float = 0.0
    answer_lost: float = 0.0
    slow: float = 0.0
    too_slow: float = 0.0
    refused: float = 0.0
    conflicts: float = 0.0
    """Part of the requests that write what is there."""
    lags: float = 0.0
    """Part of the watches that a cache serves which is behind."""


CALM: Final = Weather()
STORM: Final = Weather(lost=0.03, answer_lost=0.03, slow=0.06, too_slow=0.02, refused=0.05, conflicts=0.05, lags=0.3)
REFUSALS: Final = (
    Refusal(429, "TooManyRequests", "too many", headers={"Retry-After": "1"}),
    Refusal(500, "InternalError", "etcdserver: leader changed"),
    Refusal(503, "ServiceUnavailable", "apiserver is shutting down", headers={"Retry-After": "2"}),
    Refusal(504, "Timeout", "request did not complete within the allotted timeout"),
)
CONFLICT: Final = Refusal(409, "Conflict", "the object has been modified")


class Reach(enum.Enum):
    """Whether the server is there."""

    FINE = "reachable"
    SILENT = "cut off"
    """Nothing arrives, nobody says so."""
    DEAD = "dead"
    """Connections end, new ones are refused."""


class SimNetwork:
    """Outlives agents and servers."""

    def __init__(self, rng: random.Random, server: SimServer, note: Callable[[str], None], rules: ServerRules) -> None:
        """``rules``: of what is asked by this way."""
        self.rules = rules
        self.weather = CALM
        self.rng = rng
        self.server = server
        self.note = note
        self.connections: dict[SimConnection, None] = {}
        self._reach = Reach.FINE
        self._reachable = asyncio.Event()
        self._reachable.set()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """In place of sockets."""
        with patch.object(connection_pool, "connect", self.connect):
            yield

    @property
    def reach(self) -> Reach:
        return self._reach

    def become(self, reach: Reach) -> None:
        """Connections do not outlive a server, nor a long partition."""
        if reach is self._reach:
            return
        self.note(f"the API server is {reach.value}")
        before, self._reach = self._reach, reach
        if reach is Reach.FINE:
            self._reachable.set()
        else:
            self._reachable.clear()
        if reach is Reach.DEAD:
            self.break_all()
        if before is Reach.SILENT and reach is Reach.FINE:
            for connection in tuple(self.connections):
                if self.rng.random() >= ARRIVES_LATE:
                    connection.fail(ConnectionResetError("reset by peer"))
        if reach is Reach.SILENT:
            for connection in tuple(self.connections):
                asyncio.get_running_loop().call_later(UNANSWERED_S, self._give_up, connection, context=NOBODY)

    def break_all(self) -> None:
        """Every connection ends, as with a server that is killed."""
        for connection in tuple(self.connections):
            connection.fail(ConnectionResetError("reset by peer"))

    def _give_up(self, connection: SimConnection) -> None:
        if self._reach is Reach.SILENT:
            connection.fail(OSError(errno.ETIMEDOUT, "timed out"))

    def watches_of(self, name: str) -> int:
        """How many watches of objects of that name are open."""
        return sum(connection.watches(name) for connection in self.connections)

    async def reachable(self) -> None:
        """Returns when packets arrive."""
        await self._reachable.wait()

    async def connect(self, *_: Any) -> SimConnection:
        """A connection, as `workers.kubeclient.connection.connect` makes them."""
        await asyncio.sleep(self.rng.uniform(0.0005, LATENCY_S))
        if self._reach is Reach.DEAD:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        await self._reachable.wait()
        connection = SimConnection(self)
        self.connections[connection] = None
        return connection

    def delay_s(self) -> float:
        """How long one way takes."""
        rng, weather = self.rng, self.weather
        if rng.random() < weather.too_slow:
            return rng.uniform(SLOW_S, TOO_SLOW_S)
        return rng.uniform(0.0005, SLOW_S if rng.random() < weather.slow else LATENCY_S)

    def lag_s(self) -> Callable[[], float]:
        """How long each event of a new watch takes."""
        most_s = LAG_S if self.rng.random() < self.weather.lags else LATENCY_S
        return lambda: self.rng.uniform(0.0005, most_s)


class SimConnection:
    """One connection of `workers.kubeclient.connection_pool`, as far as client and pool use it."""

    def __init__(self, network: SimNetwork) -> None:
        self.headers: Mapping[str, str] = {}
        self.received_bytes = 0
        self.used_at = asyncio.get_running_loop().time()
        self._network = network
        self._lost: OSError | None = None
        self._status = 0
        self._parts: list[bytes] = []
        self._is_whole = True
        self._news = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._request: Request | None = None

    def watches(self, name: str) -> bool:
        """Whether the exchange under way is a watch of one object, of that name."""
        request = self._request
        if request is None or not request.is_watch or self._is_whole:
            return False
        return request.query.get("fieldSelector") == f"metadata.name={name}"

    # --- the client's side ---

    @property
    def is_open(self) -> bool:
        return self._lost is None

    @property
    def is_reusable(self) -> bool:
        return self.is_open and self._is_whole and not self._parts

    def send(self, request: bytes) -> None:
        if self._lost is not None:
            raise self._lost
        self._status, self._parts, self._is_whole, self.headers = 0, [], False, {}
        self.used_at = asyncio.get_running_loop().time()
        self._request = parsed(request)
        self._network.rules.sent(self._request)
        self._serving = asyncio.get_running_loop().create_task(self._serve(self._request), context=NOBODY.copy())

    async def head(self) -> int:
        while not self._status:
            await self._more()
        return self._status

    async def body(self, max_bytes: int) -> bytes:
        return b"".join([part async for part in self.parts()])

    async def parts(self) -> AsyncGenerator[bytes, None]:
        while self._parts or not self._is_whole:
            taken, self._parts = self._parts, []
            for part in taken:
                yield part
            if not taken:
                await self._more()

    def close(self) -> None:
        self.fail(ConnectionAbortedError("closed here"))

    # --- the server's side ---

    def fail(self, error: OSError) -> None:
        """Both sides find it broken; what is under way may still arrive."""
        if self._lost is not None:
            return
        self._lost = error
        self._network.connections.pop(self, None)
        self._over()
        if self._serving is not None and self._request is not None and self._request.is_watch:
            self._serving.cancel()
        self._news.set()

    def _over(self) -> None:
        """The exchange has ended, as far as the client knows."""
        if self._request is not None and not self._is_whole:
            self._network.rules.over(self._request)
        self._is_whole = True

    async def _more(self) -> None:
        if self._lost is not None:
            raise self._lost
        self._news.clear()
        await self._news.wait()
        if self._lost is not None and not self._status:
            raise self._lost

    async def _serve(self, request: Request) -> None:
        network, rng, weather = self._network, self._network.rng, self._network.weather
        if rng.random() < weather.lost:
            return self.fail(ConnectionResetError("reset by peer"))
        await asyncio.sleep(network.delay_s())
        await network.reachable()
        try:
            if rng.random() < weather.refused:
                raise rng.choice(REFUSALS)
            if request.verb in ("PUT", "PATCH") and rng.random() < weather.conflicts:
                raise CONFLICT
            found: tuple[int, Any] | Watch | Refusal = network.server.answer(request, network.rules)
        except Refusal as refusal:
            found = refusal
        if isinstance(found, Watch):
            return await self._stream(found)
        if rng.random() < weather.answer_lost:
            return self.fail(ConnectionResetError("reset by peer"))
        await asyncio.sleep(network.delay_s())
        await network.reachable()
        self._answer(found)
        return None

    def _answer(self, found: tuple[int, Any] | Refusal) -> None:
        if self._lost is not None:
            return
        if isinstance(found, Refusal):
            self.headers = {name.lower(): value for name, value in found.headers.items()}
            found = found.code, found.status()
        self._over()
        self._status, body = found
        self._parts.append(msgspec.json.encode(body))
        self._news.set()

    async def _stream(self, watch: Watch) -> None:
        self._status = 200
        self._news.set()
        stream: Mailbox[bytes] = Mailbox(self._arrived, self._network.lag_s())
        async with contextlib.aclosing(watch.events()) as events:  # type: ignore[type-var]
            async for event in events:
                await self._network.reachable()
                stream.post(line(event))
        stream.post(b"")

    def _arrived(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
        else:
            self._over()
        self._news.set()


def parsed(message: bytes) -> Request:
    """The request of a message, which the client makes itself."""
    head, _, body = message.partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    verb, target, _ = first.split(" ")
    path, _, query = target.partition("?")
    headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in lines)}
    return Request(
        verb=verb,
        path=unquote(path),
        query=dict(parse_qsl(query)),
        content_type=headers.get("content-type", ""),
        body=body,
        user="",
        headers=headers,
        at=asyncio.get_running_loop().time(),
    )
