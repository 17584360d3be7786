"""HTTP exchanges with the Podman service: blocking calls in sized thread pools, each with a deadline.

podman-py is given in as a transport (its ``PodmanClient.api``, a requests session on the Unix socket) and not imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import math
import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec
import requests
import urllib3.exceptions

from ipc.shm.breaker_state import BreakerState
from workers.kubecontainer.runtime import CallCounts, ErrorKind, RuntimeCallError
from workers.libpod import decode
from workers.libpod.deadline_socket import DeadlineSockets
from workers.libpod.health import Listener, ServiceWatch

CONNECT_TIMEOUT_S: Final = 5.0
"""For the service to accept a connection and take the request, in seconds."""
MAX_EXEC_CALLS: Final = 4
"""Calls in flight that make exec sessions."""
MAX_CAUSES: Final = 16
"""Most wrapped causes of a transport error that are examined."""

_JSON: Final = {"Content-Type": "application/json"}
"""Always: with a form's content type the server would take the body for parameters."""


class Kind(enum.StrEnum):
    """Kinds of call. The last three are streams, which have a thread of their own each."""

    PING = "ping"
    LIST = "list"
    INSPECT = "inspect"
    CREATE = "create"
    START = "start"
    KILL = "kill"
    REMOVE = "remove"
    EXEC = "exec"
    """Making an exec session and asking about it, not the command."""
    EXEC_OUTPUT = "exec-output"
    PULL = "pull"
    EVENTS = "events"


DEADLINE_S: Final[Mapping[Kind, float]] = {
    Kind.PING: 3.0,  # takes no lock, 0.4 ms
    Kind.LIST: 75.0,  # waits for the lock of every container, also of strangers, 0.5 ms each: for 100,000 of them
    Kind.INSPECT: 15.0,  # waits for one container's lock, which a create, start or remove of it holds
    Kind.CREATE: math.inf,  # the storage driver vfs copies the whole image
    Kind.START: math.inf,
    Kind.KILL: 30.0,  # a signal, once it has the container's lock
    Kind.REMOVE: math.inf,  # kills, unmounts, deletes what may be gigabytes
    Kind.EXEC: 30.0,
}
"""How long the whole of an answer may take, in seconds; runtimeRequestTimeout when that is less. An answer that comes
byte by byte gets no more. Streams have the deadlines of their callers: a pull imagePullTimeout, a command its own."""


class Pool(msgspec.Struct, frozen=True):
    """So many calls at a time, each in one of as many threads."""

    turns: asyncio.Semaphore
    threads: ThreadPoolExecutor


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
    headers: dict[str, str] = {}
    """Besides the content type. May hold secrets: never to be shown."""
    accept: frozenset[int] = frozenset()
    """Statuses of 400 and more that are a success."""


class Answer(msgspec.Struct, frozen=True):
    """Answer of the service."""

    status: int
    body: bytes
    headers: Mapping[str, str]


PING: Final = Request(call="ping", method="GET", path="_ping", kind=Kind.PING)


class LibpodClient:
    """Calls of one process. Threads share the session: plain calls without cookies or redirects are safe there."""

    def __init__(
        self,
        api: Any,
        sockets: DeadlineSockets,
        *,
        max_mutations: int,
        max_reads: int,
        request_timeout_s: float,
        pull_timeout_s: float,
        listener: Listener,
    ) -> None:
        """``api`` is podman-py's APIClient, made in this process. The maxima are calls in flight, by kind."""
        self._send_by_method = {"GET": api.get, "POST": api.post, "DELETE": api.delete}
        self._sockets = sockets
        self._timeouts = _timeouts(request_timeout_s, pull_timeout_s)
        self._pools = _pools(max_mutations, max_reads)
        self._calling: set[int] = set()
        """Threads of the calls in flight."""
        self._watch = ServiceWatch(self._ping, self._break_off_calls, listener)
        self.counts = CallCounts()

    async def call(self, request: Request) -> Answer:
        """Raises RuntimeCallError. Cancelling it lets the exchange run to its end: its effect is then unknown."""
        self._count(calls=1)
        try:
            async with self._pools[request.kind].turns, self._watch.call(request.call):
                answer = await self._in_thread(request)
                if answer.status >= 400 and answer.status not in request.accept:
                    raise decode.call_error(request.call, answer.status, answer.body)
        except RuntimeCallError as error:
            self._count(errors=int(error.kind is not ErrorKind.NOT_FOUND))
            raise
        return answer

    def open_stream(self, request: Request) -> Any:
        """The answer as a requests Response, its body not yet read. Blocks: for a thread of the stream's own."""
        if self._watch.state is BreakerState.OPEN:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, request.call, "Podman does not answer")
        response = self._send(request, stream=True)
        if response.status_code >= 400:
            with contextlib.closing(response):
                raise decode.call_error(request.call, response.status_code, response.content)
        return response

    def break_off(self, threads: Collection[int]) -> None:
        """End the exchanges of these threads, from any thread."""
        self._sockets.break_off(threads)

    async def close(self) -> None:
        """Calls that wait for a thread are cancelled, those under way end by their own deadline."""
        await self._watch.close()
        for pool in self._pools.values():
            pool.threads.shutdown(wait=False, cancel_futures=True)

    async def _ping(self) -> None:
        """Whether the service answers at all, past those who wait and past the breaker."""
        await self._in_thread(PING)

    async def _in_thread(self, request: Request) -> Answer:
        threads = self._pools[request.kind].threads
        return await asyncio.get_running_loop().run_in_executor(threads, self._exchange, request)

    def _break_off_calls(self) -> None:
        self._sockets.break_off(frozenset(self._calling))

    def _count(self, *, calls: int = 0, errors: int = 0) -> None:
        old = self.counts
        self.counts = msgspec.structs.replace(old, calls=old.calls + calls, errors=old.errors + errors)

    # --- in a thread ---

    def _exchange(self, request: Request) -> Answer:
        thread = threading.get_ident()
        self._calling.add(thread)
        try:
            response = self._send(request)
            return Answer(response.status_code, response.content, response.headers)
        except requests.RequestException as error:
            failure = transport_error(request, error, self._timeouts[request.kind][1])
        finally:
            self._calling.discard(thread)
        # Outside of the handler: chained, the error would keep the frames alive, and in one of them podman-py's socket
        # that could not connect.
        raise failure

    def _send(self, request: Request, *, stream: bool = False) -> Any:
        """A GET whose pooled connection turns out to be dead is sent once more: it changes nothing."""
        try:
            return self._send_once(request, stream)
        except requests.RequestException as error:
            is_broken_off = stream or self._watch.state is BreakerState.OPEN
            if request.method != "GET" or is_broken_off or _failure_of(error) is not _Failure.LOST:
                raise
        return self._send_once(request, stream)

    def _send_once(self, request: Request, stream: bool) -> Any:
        options: dict[str, Any] = {"data": request.body} if request.body else {}
        return self._send_by_method[request.method](
            request.path,
            params=request.params,
            headers={**_JSON, **request.headers},
            timeout=self._timeouts[request.kind],
            stream=stream,
            **options,
        )


class _Failure(enum.Enum):
    """How an exchange fails below HTTP."""

    REFUSED = "nothing was sent"
    LATE = "no answer in time"
    LOST = "the connection broke after the request was sent"


def transport_error(
    request: Request, error: requests.RequestException, read_timeout_s: float | None
) -> RuntimeCallError:
    """A connection that breaks leaves the effect of a mutation as unknown as a timeout does, and gets its kind."""
    failure = _failure_of(error)
    if failure is _Failure.LATE:
        return RuntimeCallError(ErrorKind.TIMEOUT, request.call, f"no answer within {read_timeout_s} s")
    unknown = failure is _Failure.LOST and request.method != "GET"
    kind = ErrorKind.TIMEOUT if unknown else ErrorKind.UNAVAILABLE
    return RuntimeCallError(kind, request.call, f"{failure.value}: {list(_causes(error))[-1]}")


def _failure_of(error: requests.RequestException) -> _Failure:
    """podman-py wraps requests, which wraps urllib3, which wraps podman-py's own connect error around the socket's."""
    causes = list(_causes(error))
    if any(isinstance(cause, requests.HTTPError | urllib3.exceptions.NewConnectionError) for cause in causes[1:]):
        return _Failure.REFUSED
    if any(isinstance(cause, TimeoutError | requests.Timeout | urllib3.exceptions.TimeoutError) for cause in causes):
        return _Failure.LATE
    return _Failure.LOST


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps, as its cause or as an argument, outermost first."""
    waiting = [error]
    for _ in range(MAX_CAUSES):
        if not waiting:
            return
        found = waiting.pop(0)
        yield found
        waiting += [inner for inner in (found.__cause__, *found.args) if isinstance(inner, BaseException)]


def _timeouts(request_timeout_s: float, pull_timeout_s: float) -> Mapping[Kind, tuple[float, float | None]]:
    """(connect, answer) in seconds; None is for ever."""
    return {
        **{kind: (CONNECT_TIMEOUT_S, min(limit_s, request_timeout_s)) for kind, limit_s in DEADLINE_S.items()},
        Kind.EXEC_OUTPUT: (CONNECT_TIMEOUT_S, None),
        Kind.PULL: (CONNECT_TIMEOUT_S, pull_timeout_s),
        Kind.EVENTS: (CONNECT_TIMEOUT_S, None),
    }


def _pools(max_mutations: int, max_reads: int) -> Mapping[Kind, Pool]:
    """A ping has a thread of its own: it is to be answered when nothing else is."""
    pings, reads = _pool(1, "ping"), _pool(max_reads, "read")
    changes, execs = _pool(max_mutations, "change"), _pool(MAX_EXEC_CALLS, "exec")
    return {
        Kind.PING: pings,
        Kind.EXEC: execs,
        **dict.fromkeys((Kind.LIST, Kind.INSPECT), reads),
        **dict.fromkeys((Kind.CREATE, Kind.START, Kind.KILL, Kind.REMOVE), changes),
    }


def _pool(at_a_time: int, name: str) -> Pool:
    return Pool(asyncio.Semaphore(at_a_time), ThreadPoolExecutor(at_a_time, f"podman-{name}"))
