"""Calls of the libpod API: how many at a time, until when, and what their failures mean.

Everything runs on the event loop. A caller that is cancelled closes its call's connection, as does a deadline: Podman
may or may not carry out what it has begun, so the effect is unknown then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import urlencode

import msgspec

from ipc.host.libpod import endpoints
from ipc.host.libpod.endpoints import DEADLINE_S, ROOT, Endpoint, Kind
from ipc.host.text.json_types import UNDECODABLE
from ipc.link.shm.breaker_state import BreakerState
from ipc.link.wire.http_answer import TooLargeError, decoded_headers
from workers.kubecontainer.runtime import CallCounts, ErrorKind, RuntimeCallError
from workers.libpod import failures
from workers.libpod.connection import Connection, NothingSentError
from workers.libpod.connection_pool import ConnectionPool
from workers.libpod.health import Listener, ServiceWatch

MAX_EXEC_CALLS: Final = 4
"""Calls in flight that make exec sessions."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Largest answer about one thing that is read. An inspect repeats much of a manifest, of at most 1.5 MiB."""
MAX_LIST_BYTES: Final = 256 * 1024 * 1024
"""Largest list that is read; a container in it has about 1 KiB."""

T = TypeVar("T")


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls of one process are in flight, by kind, and how long each may take."""

    max_mutations: int = 4
    max_reads: int = 4
    request_timeout_s: float = 120.0
    """Longest deadline of a call; its kind may have a shorter one (`ipc.host.libpod.endpoints.DEADLINE_S`)."""


USUAL_LIMITS: Final = CallLimits()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the libpod API."""

    endpoint: Endpoint[object]
    name: str = ""
    """Id, name or reference in its path."""
    params: Mapping[str, str] = {}
    body: bytes = b""
    """JSON."""
    accept: frozenset[int] = frozenset()
    """Statuses of 400 and more that are a success."""

    @property
    def call(self) -> str:
        """For people."""
        return self.endpoint.call


class Answer(msgspec.Struct, frozen=True):
    """Answer of the service."""

    status: int
    body: bytes
    fields: Sequence[tuple[bytes, bytes]]
    """Headers as they have come."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in small letters."""
        return decoded_headers(self.fields)


PING: Final = Request(endpoint=endpoints.PING)
NO_HEADERS: Final[Mapping[str, str]] = {}


class LibpodClient:
    """Calls of one process. For one event loop."""

    def __init__(
        self,
        socket_path: str,
        limits: CallLimits,
        listener: Listener,
        *,
        starting_s: float = 0.0,
    ) -> None:
        """Connects to nothing yet. ``starting_s``: how long the service may take until it listens, from the first call
        on."""
        self._connections = ConnectionPool(socket_path, starting_s)
        self._streams: set[Connection] = set()
        self._timeouts_s = {kind: min(limit_s, limits.request_timeout_s) for kind, limit_s in DEADLINE_S.items()}
        self._turns = _turns(limits)
        self._watch = ServiceWatch(self._ping, self._connections.break_off, listener)
        self._calls = self._errors = 0

    @property
    def counts(self) -> CallCounts:
        """Calls so far."""
        return CallCounts(calls=self._calls, errors=self._errors)

    async def call(self, request: Request) -> Answer:
        """Raises RuntimeCallError."""
        self._calls += 1
        try:
            async with self._turns[request.endpoint.kind]:
                return await self._watch.watched(request.call, self._good_answer, request)
        except RuntimeCallError as error:
            self._errors += error.kind is not ErrorKind.NOT_FOUND
            raise

    async def ask(self, request: Request, decode: Callable[[bytes], T]) -> T:
        """The answer's body. Raises RuntimeCallError, of another shape too."""
        return decoded(request.call, (await self.call(request)).body, decode)

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Connection]:
        """An answer without an end of its own, whose parts come on a connection that closes with the block.

        Raises RuntimeCallError; inside of the block OSError becomes one.
        """
        self.admit_stream(request.call)
        connection: Connection | None = None
        try:
            connection = await self._connections.connect()
            self._streams.add(connection)
            await connection.send(message(request))
            status = await connection.head()
            if status >= 400:
                raise failures.call_error(request.call, status, await connection.body(MAX_ANSWER_BYTES))
            yield connection
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

    async def _good_answer(self, request: Request) -> Answer:
        """Raises RuntimeCallError, also of what the service says instead."""
        answer = await self._answer(request)
        if answer.status >= 400 and answer.status not in request.accept:
            raise failures.call_error(request.call, answer.status, answer.body)
        return answer

    async def _answer(self, request: Request) -> Answer:
        timeout_s = self._timeouts_s[request.endpoint.kind]
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
            if request.endpoint.method != "GET" or self._watch.state is BreakerState.OPEN:
                raise
        return await self._exchange_once(request)

    async def _exchange_once(self, request: Request) -> Answer:
        max_bytes = MAX_LIST_BYTES if request.endpoint.kind is Kind.LIST else MAX_ANSWER_BYTES
        connection = await self._connections.begin(message(request))
        try:
            return Answer(await connection.head(), await connection.body(max_bytes), connection.fields)
        finally:
            self._connections.end(connection)


def decoded(call: str, body: bytes, decode: Callable[[bytes], T]) -> T:
    """The body of an answer, decoded. Raises RuntimeCallError where it is of another shape."""
    try:
        return decode(body)
    except UNDECODABLE as error:
        raise RuntimeCallError(ErrorKind.INTERNAL, call, f"an answer of another shape: {error}") from error


def message(request: Request, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
    """The request as it is sent."""
    query = f"?{urlencode(request.params)}" if request.params else ""
    length = "" if "Transfer-Encoding" in headers else f"Content-Length: {len(request.body)}\r\n"
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = (
        f"{request.endpoint.method} {ROOT}{request.endpoint.at(request.name)}{query} HTTP/1.1\r\n"
        "Host: d\r\n"
        # Always: with a form's content type the server would take the body for parameters.
        "Content-Type: application/json\r\n"
        f"{length}{more}\r\n"
    )
    return head.encode() + request.body


def transport_error(request: Request, error: OSError | TooLargeError) -> RuntimeCallError:
    """A connection that breaks leaves the effect of a mutation as unknown as a timeout does, and gets its kind."""
    if isinstance(error, TooLargeError):
        return RuntimeCallError(ErrorKind.INTERNAL, request.call, str(error))
    if isinstance(error, NothingSentError):
        return RuntimeCallError(ErrorKind.UNAVAILABLE, request.call, f"nothing was sent: {error}")
    kind = ErrorKind.UNAVAILABLE if request.endpoint.method == "GET" else ErrorKind.TIMEOUT
    return RuntimeCallError(kind, request.call, f"the connection broke after the request was sent: {error}")


def _turns(limits: CallLimits) -> Mapping[Kind, asyncio.Semaphore]:
    """Pings wait for nothing else."""
    pings, execs = asyncio.Semaphore(1), asyncio.Semaphore(MAX_EXEC_CALLS)
    reads, changes = asyncio.Semaphore(limits.max_reads), asyncio.Semaphore(limits.max_mutations)
    return {
        Kind.PING: pings,
        Kind.EXEC: execs,
        **dict.fromkeys((Kind.LIST, Kind.INSPECT), reads),
        **dict.fromkeys((Kind.CREATE, Kind.START, Kind.KILL, Kind.UPDATE, Kind.REMOVE), changes),
    }
