"""Calls of the libpod API: how many at a time, until when, and what their failures mean.

Everything runs on the event loop. A caller that is cancelled closes its call's connection, as does a deadline: Podman
may or may not carry out what it has begun, so the effect is unknown then.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import math
from collections.abc import AsyncIterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from ipc.shm.breaker_state import BreakerState
from ipc.wire.http_answer import TooLargeError
from workers.kubecontainer.runtime import CallCounts, ErrorKind, RuntimeCallError
from workers.libpod import failures
from workers.libpod.connection import Connection, NothingSentError
from workers.libpod.connection_pool import ConnectionPool
from workers.libpod.health import Listener, ServiceWatch

API_VERSION: Final = "4.0.0"
"""Every server from 4.3 to 5.8 answers it in the shapes that `workers.libpod.decode` knows."""
MAX_EXEC_CALLS: Final = 4
"""Calls in flight that make exec sessions."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Largest answer about one thing that is read. An inspect repeats much of a manifest, of at most 1.5 MiB."""
MAX_LIST_BYTES: Final = 256 * 1024 * 1024
"""Largest list that is read; a container in it has about 1 KiB."""


class Kind(enum.StrEnum):
    """Kinds of call. The last two are streams, which have the deadlines of their callers."""

    PING = "ping"
    LIST = "list"
    INSPECT = "inspect"
    CREATE = "create"
    START = "start"
    KILL = "kill"
    UPDATE = "update"
    REMOVE = "remove"
    EXEC = "exec"
    """Making an exec session and asking about it, not the command."""
    EXEC_OUTPUT = "exec-output"
    EVENTS = "events"


DEADLINE_S: Final[Mapping[Kind, float]] = {
    Kind.PING: 3.0,  # takes no lock, 0.4 ms
    Kind.LIST: 75.0,  # waits for the lock of every container, also of strangers, 0.5 ms each: for 100,000 of them
    Kind.INSPECT: 15.0,  # waits for one container's lock, which a create, start or remove of it holds
    Kind.CREATE: math.inf,  # the storage driver vfs copies the whole image
    Kind.START: math.inf,
    Kind.KILL: 30.0,  # a signal, once it has the container's lock
    Kind.REMOVE: math.inf,  # kills, unmounts, deletes what may be gigabytes
    Kind.UPDATE: 30.0,  # a few files of a cgroup, written by the OCI runtime under the container's lock
    Kind.EXEC: 30.0,
}
"""How long the whole of an answer may take, in seconds; runtimeRequestTimeout when that is less. An answer that comes
byte by byte gets no more."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the libpod API."""

    call: str
    """For people: "create container"."""
    method: str
    path: str
    """Below ``/v4.0.0/libpod/``."""
    kind: Kind
    params: dict[str, str] = {}
    body: bytes = b""
    """JSON."""
    accept: frozenset[int] = frozenset()
    """Statuses of 400 and more that are a success."""


class Answer(msgspec.Struct, frozen=True):
    """Answer of the service."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    """Names in small letters."""


_PATH_CHARACTERS: Final = "/:@%"

PING: Final = Request(call="ping", method="GET", path="_ping", kind=Kind.PING)


class LibpodClient:
    """Calls of one process. For one event loop."""

    def __init__(
        self,
        socket_path: str,
        *,
        max_mutations: int,
        max_reads: int,
        request_timeout_s: float,
        listener: Listener,
        starting_s: float = 0.0,
    ) -> None:
        """Connects to nothing yet. The maxima are calls in flight, by kind. ``starting_s``: how long the service may
        take until it listens, from the first call on."""
        self._socket_path = socket_path
        self._connections = ConnectionPool(socket_path, starting_s)
        self._streams: set[Connection] = set()
        self._timeouts_s = {kind: min(limit_s, request_timeout_s) for kind, limit_s in DEADLINE_S.items()}
        self._turns = _turns(max_mutations, max_reads)
        self._watch = ServiceWatch(self._ping, self._connections.break_off, listener)
        self.counts = CallCounts()

    async def call(self, request: Request) -> Answer:
        """Raises RuntimeCallError."""
        self._count(calls=1)
        try:
            async with self._turns[request.kind], self._watch.call(request.call):
                answer = await self._answer(request)
                if answer.status >= 400 and answer.status not in request.accept:
                    raise failures.call_error(request.call, answer.status, answer.body)
        except RuntimeCallError as error:
            self._count(errors=int(error.kind is not ErrorKind.NOT_FOUND))
            raise
        return answer

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """The parts of an answer without an end of its own, on a connection that closes with the block.

        Raises RuntimeCallError; inside of the block OSError becomes one.
        """
        self.admit_stream(request.call)
        connection: Connection | None = None
        try:
            connection = Connection(self._socket_path)
            self._streams.add(connection)
            await connection.send(message(request))
            status = await connection.head()
            if status >= 400:
                raise failures.call_error(request.call, status, await connection.body(MAX_ANSWER_BYTES))
            yield connection.parts()
        except (OSError, TooLargeError) as error:
            raise transport_error(request, error) from None
        finally:
            if connection is not None:
                self._streams.discard(connection)
                connection.close()

    def timeout_s(self, kind: Kind) -> float:
        """Deadline of the whole answer to a call of that kind, in seconds."""
        return self._timeouts_s[kind]

    def admit_stream(self, call: str) -> None:
        """Raises UNAVAILABLE while the breaker is open."""
        if self._watch.state is BreakerState.OPEN:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, call, "Podman does not answer")

    async def close(self) -> None:
        """Streams end; calls under way end by their own deadlines."""
        await self._watch.close()
        for stream in tuple(self._streams):
            stream.abandon()
        self._connections.close()

    async def _ping(self) -> None:
        """Whether the service answers at all, past those who wait and past the breaker."""
        await self._answer(PING)

    def _count(self, *, calls: int = 0, errors: int = 0) -> None:
        old = self.counts
        self.counts = msgspec.structs.replace(old, calls=old.calls + calls, errors=old.errors + errors)

    async def _answer(self, request: Request) -> Answer:
        timeout_s = self._timeouts_s[request.kind]
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(request)
        except TimeoutError:
            raise RuntimeCallError(ErrorKind.TIMEOUT, request.call, f"no answer within {timeout_s} s") from None
        except (OSError, TooLargeError) as error:
            raise transport_error(request, error) from None

    async def _exchange(self, request: Request) -> Answer:
        """A GET whose connection breaks is sent once more: it changes nothing."""
        try:
            return await self._exchange_once(request)
        except NothingSentError:
            raise
        except OSError:
            if request.method != "GET" or self._watch.state is BreakerState.OPEN:
                raise
        return await self._exchange_once(request)

    async def _exchange_once(self, request: Request) -> Answer:
        max_bytes = MAX_LIST_BYTES if request.kind is Kind.LIST else MAX_ANSWER_BYTES
        async with self._connections.exchange(message(request)) as connection:
            status = await connection.head()
            return Answer(status, await connection.body(max_bytes), connection.headers)


def message(request: Request, headers: Mapping[str, str] | None = None) -> bytes:
    """The request as it is sent. Names in its path are quoted here at the latest, whoever has thought of them."""
    query = f"?{urlencode(request.params)}" if request.params else ""
    lines = (
        f"{request.method} /v{API_VERSION}/libpod/{quote(request.path, safe=_PATH_CHARACTERS)}{query} HTTP/1.1",
        "Host: d",
        # Always: with a form's content type the server would take the body for parameters.
        "Content-Type: application/json",
        *(() if "Transfer-Encoding" in (headers or {}) else (f"Content-Length: {len(request.body)}",)),
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    )
    return "\r\n".join((*lines, "", "")).encode() + request.body


def transport_error(request: Request, error: OSError | TooLargeError) -> RuntimeCallError:
    """A connection that breaks leaves the effect of a mutation as unknown as a timeout does, and gets its kind."""
    if isinstance(error, TooLargeError):
        return RuntimeCallError(ErrorKind.INTERNAL, request.call, str(error))
    if isinstance(error, NothingSentError):
        return RuntimeCallError(ErrorKind.UNAVAILABLE, request.call, f"nothing was sent: {error}")
    kind = ErrorKind.UNAVAILABLE if request.method == "GET" else ErrorKind.TIMEOUT
    return RuntimeCallError(kind, request.call, f"the connection broke after the request was sent: {error}")


def _turns(max_mutations: int, max_reads: int) -> Mapping[Kind, asyncio.Semaphore]:
    """Pings wait for nothing else."""
    pings, execs = asyncio.Semaphore(1), asyncio.Semaphore(MAX_EXEC_CALLS)
    reads, changes = asyncio.Semaphore(max_reads), asyncio.Semaphore(max_mutations)
    return {
        Kind.PING: pings,
        Kind.EXEC: execs,
        **dict.fromkeys((Kind.LIST, Kind.INSPECT), reads),
        **dict.fromkeys((Kind.CREATE, Kind.START, Kind.KILL, Kind.UPDATE, Kind.REMOVE), changes),
    }
