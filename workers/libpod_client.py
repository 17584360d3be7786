"""HTTP exchanges with the Podman service: blocking calls in sized thread pools, each with a deadline.

podman-py is given in as a transport (its ``PodmanClient.api``, a requests session on the Unix socket) and not imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec
import requests
import urllib3.exceptions

from workers import libpod
from workers.runtime import CallCounts, ErrorKind, RuntimeCallError

CONNECT_TIMEOUT_S: Final = 5.0
"""For the service to accept a connection, in seconds."""
PING_TIMEOUT_S: Final = 5.0
LIST_TIMEOUT_S: Final = 30.0
INSPECT_TIMEOUT_S: Final = 15.0
MAX_CAUSES: Final = 16
"""How many wrapped causes of a transport error are looked at."""

_JSON: Final = {"Content-Type": "application/json"}
"""Always: with a form's content type the server would take the body for parameters."""


class Kind(enum.StrEnum):
    """Kinds of call: each has a deadline and, but for the streams (pull, stream), a thread pool."""

    PING = "ping"
    LIST = "list"
    INSPECT = "inspect"
    MUTATE = "mutate"
    PULL = "pull"
    STREAM = "stream"


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
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class LibpodClient:
    """Calls of one process. Threads share the session: plain calls without cookies or redirects are safe there."""

    def __init__(
        self,
        api: Any,
        *,
        max_mutations: int,
        max_reads: int,
        request_timeout_s: float,
        pull_timeout_s: float,
    ) -> None:
        """``api`` is podman-py's APIClient, made in this process. The maxima are calls in flight, by kind."""
        self._send_by_method = {"GET": api.get, "POST": api.post, "DELETE": api.delete}
        self._deadlines = _deadlines(request_timeout_s, pull_timeout_s)
        reads = ThreadPoolExecutor(max_reads, "podman-read")
        self._pools = {
            Kind.PING: reads,
            Kind.LIST: reads,
            Kind.INSPECT: reads,
            Kind.MUTATE: ThreadPoolExecutor(max_mutations, "podman-mutate"),
        }
        self.counts = CallCounts()

    async def call(self, request: Request) -> Answer:
        """Raises RuntimeCallError. Cancelling it lets the exchange run to its end: its effect is then unknown."""
        self._count(calls=1)
        try:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._pools[request.kind], self._exchange, request)
            if answer.status >= 400 and answer.status not in request.accept:
                raise libpod.call_error(request.call, answer.status, answer.body)
        except RuntimeCallError as error:
            self._count(errors=int(error.kind is not ErrorKind.NOT_FOUND))
            raise
        return answer

    def open_stream(self, request: Request) -> Any:
        """The answer as a requests Response, its body not yet read. Blocks: for a thread of the stream's own."""
        response = self._send(request, stream=True)
        if response.status_code >= 400:
            with contextlib.closing(response):
                raise libpod.call_error(request.call, response.status_code, response.content)
        return response

    def close(self) -> None:
        """Calls that wait for a thread are cancelled, those under way end by their own deadline."""
        for pool in set(self._pools.values()):
            pool.shutdown(wait=False, cancel_futures=True)

    def _count(self, *, calls: int = 0, errors: int = 0) -> None:
        old = self.counts
        self.counts = msgspec.structs.replace(old, calls=old.calls + calls, errors=old.errors + errors)

    # --- in a thread ---

    def _exchange(self, request: Request) -> Answer:
        try:
            response = self._send(request)
            return Answer(response.status_code, response.content, response.headers)
        except requests.RequestException as error:
            failure = transport_error(request, error, self._deadlines[request.kind][1])
        # Outside of the handler: chained, the error would keep the frames alive, and in one of them podman-py's socket
        # that could not connect.
        raise failure

    def _send(self, request: Request, *, stream: bool = False) -> Any:
        """A GET whose pooled connection turns out to be dead is sent once more: it changes nothing."""
        try:
            return self._send_once(request, stream)
        except requests.RequestException as error:
            if request.method != "GET" or _failure_of(error) is not _Failure.LOST:
                raise
        return self._send_once(request, stream)

    def _send_once(self, request: Request, stream: bool) -> Any:
        options: dict[str, Any] = {"data": request.body} if request.body else {}
        return self._send_by_method[request.method](
            request.path,
            params=request.params,
            headers={**_JSON, **request.headers},
            timeout=self._deadlines[request.kind],
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


def _deadlines(request_timeout_s: float, pull_timeout_s: float) -> Mapping[Kind, tuple[float, float | None]]:
    """(connect, read) in seconds. Nothing but a stream sends a byte before it is done: read is the whole of it."""
    reads_s = {Kind.PING: PING_TIMEOUT_S, Kind.LIST: LIST_TIMEOUT_S, Kind.INSPECT: INSPECT_TIMEOUT_S}
    return {
        **{kind: (CONNECT_TIMEOUT_S, min(read_s, request_timeout_s)) for kind, read_s in reads_s.items()},
        Kind.MUTATE: (CONNECT_TIMEOUT_S, request_timeout_s),
        Kind.PULL: (CONNECT_TIMEOUT_S, pull_timeout_s),
        Kind.STREAM: (CONNECT_TIMEOUT_S, None),
    }
