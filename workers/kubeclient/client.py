"""The client: requests with a deadline, their repetitions, and watches."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from ipc.host.clock import Clock
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.kubeconfig.types import ClusterAccess
from ipc.link.eventloop.loop_clock import loop_time
from ipc.link.wire.http_answer import TooLargeError
from workers.kubeclient.connection import Address, Connection
from workers.kubeclient.connection_pool import ConnectionPool
from workers.kubeclient.credentials import CredentialsError, CredentialSource, Identity
from workers.kubeclient.errors import Unreachable, api_error
from workers.kubeclient.protocol import DEFAULT_DEADLINE_S, JSON, NO_QUERY, Verb, WatchEvent
from workers.kubeclient.rate_limit import RateLimit
from workers.kubeclient.retry import pause_after_answer, pause_after_break
from workers.kubeclient.watch_frames import WatchFormatError, WatchFrames

USER_AGENT: Final = "rootlet"
MAX_ANSWER_BYTES: Final = 64 << 20
"""Largest answer that is read: a list of 500 objects of more than 100 KiB each."""
MAX_ERROR_BYTES: Final = 1 << 20
"""Largest answer of 400 and more that is read."""
MAX_WATCH_SILENCE_S: Final = 150.0
"""A watch on which nothing has come for so long is begun anew: most servers send a bookmark about once a minute, and a
connection that a kernel alone keeps up is no server. To resume costs a server little, also one whose etcd tells no
progress and which is silent for as long as nothing changes."""
WATCH_HEAD_DEADLINE_S: Final = 30.0
"""How long a server may take to accept a watch, in seconds."""
_ACCEPT: Final = "application/json, */*"


class _Answer(msgspec.Struct, frozen=True):
    """An object of any kind, as the API answers with one to every request."""

    kind: str


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class Observer(Protocol):
    """Receiver of what the metrics want to know of each exchange."""

    def answered(self, verb: str, code: str, seconds: float, sent_bytes: int, received_bytes: int) -> None:
        """``code`` is the answer's, or ``<error>``."""
        ...

    def repeated(self, verb: str, code: str) -> None:
        """A request is sent again after that answer."""
        ...

    def throttled(self, verb: str, seconds: float) -> None:
        """A request has waited for the rate limit."""
        ...


class ApiClient:
    """`workers.kubeclient.protocol.Client` of one kubeconfig. For one event loop."""

    def __init__(
        self,
        access: ClusterAccess,
        clock: Clock,
        *,
        user_agent: str,
        limit: RateLimit,
        observer: Observer | None = None,
        max_watch_silence_s: float = MAX_WATCH_SILENCE_S,
    ) -> None:
        """Connects to nothing yet. ``limit`` may be shared by clients, as events have one of their own."""
        url = urlsplit(access.server)
        port = url.port or (443 if access.is_tls else 80)
        self._pool = ConnectionPool(Address(url.hostname or "", port, access.tls_server_name))
        self._credentials = CredentialSource(access, clock)
        self._limit = limit
        self._observer = observer
        self._base_path = url.path
        self._max_watch_silence_s = max_watch_silence_s
        self._fixed_head = f"Host: {url.netloc}\r\nUser-Agent: {user_agent}\r\nAccept: {_ACCEPT}\r\n"

    async def request(
        self,
        verb: Verb,
        path: str,
        *,
        query: Mapping[str, str] = NO_QUERY,
        body: bytes | None = None,
        content_type: str = JSON,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> bytes:
        """See `Client.request`."""
        until = loop_time() + deadline_s
        try:
            async with asyncio.timeout_at(until):
                return await self._repeated(verb, self._target(path, query), body, content_type, until)
        except TimeoutError as error:
            words = str(error) or f"no answer within {deadline_s:g} s"
            raise Unreachable(f"{verb} {path}: {words}") from None
        except (OSError, CredentialsError, TooLargeError) as error:
            raise Unreachable(f"{verb} {path}: {_words(error)}") from None

    async def watch(self, path: str, *, query: Mapping[str, str] = NO_QUERY) -> AsyncGenerator[WatchEvent, None]:
        """See `Client.watch`. No rate limit, as in client-go."""
        target = self._target(path, query)
        began_at = loop_time()
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(WATCH_HEAD_DEADLINE_S):
                    connection, status = await self._begin_watch(target, stack)
                self._answered("GET", str(status), began_at, 0, connection.received_bytes)
                frames = WatchFrames()
                parts = await stack.enter_async_context(contextlib.aclosing(connection.parts()))
                while (part := await self._next_part(parts)) is not None:
                    for event in frames.feed(part):
                        yield event
        except TimeoutError:
            raise Unreachable(f"watch {path}: no answer within {WATCH_HEAD_DEADLINE_S:g} s") from None
        except (OSError, CredentialsError, TooLargeError, WatchFormatError) as error:
            raise Unreachable(f"watch {path}: {_words(error)}") from None

    async def _next_part(self, parts: AsyncIterator[bytes]) -> bytes | None:
        """None at the end of the watch, and after a silence: the next request finds out whether the server lives."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._max_watch_silence_s):
                return await anext(parts, None)
        return None

    def close_connections(self) -> None:
        """Close all connections, those of watches too: the next requests make new ones (the kubelet's closeAllConns,
        after repeated failures of the node's heartbeat)."""
        self._pool.close()

    def close(self) -> None:
        """End everything that is under way."""
        self._pool.close()
        self._credentials.close()

    # --------------------------------------------------------------------------------------------------------------

    def _target(self, path: str, query: Mapping[str, str]) -> str:
        return f"{self._base_path}{path}" + (f"?{urlencode(query)}" if query else "")

    async def _repeated(self, verb: Verb, target: str, body: bytes | None, content_type: str, until: float) -> bytes:
        retries = 0
        fresh = False
        while True:
            waited_s = await self._limit.wait(until)
            if self._observer is not None:
                self._observer.throttled(verb, waited_s)
            try:
                status, answer, retry_after = await self._once(verb, target, body, content_type, fresh)
            except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError):
                pause_s = pause_after_break(retries, verb)
                if pause_s is None:
                    raise
                retries, fresh = retries + 1, True
                await asyncio.sleep(pause_s)
                continue
            if status < 400:
                return _checked(verb, target, answer)
            pause_s = pause_after_answer(retries, status, retry_after)
            error = api_error(status, answer, None if not retry_after else pause_s)
            if pause_s is None or loop_time() + pause_s >= until:
                raise error
            if self._observer is not None:
                self._observer.repeated(verb, str(status))
            retries += 1
            await asyncio.sleep(pause_s)

    async def _once(
        self, verb: str, target: str, body: bytes | None, content_type: str, fresh: bool
    ) -> tuple[int, bytes, str]:
        """Status, body and Retry-After of one exchange."""
        request = self._message(await self._identity(), verb, target, body, content_type)
        began_at = loop_time()
        try:
            async with self._pool.exchange(request, fresh=fresh) as connection:
                status = await connection.head()
                answer = await connection.body(MAX_ANSWER_BYTES if status < 400 else MAX_ERROR_BYTES)
                retry_after = connection.headers.get("retry-after", "")
                self._answered(verb, str(status), began_at, len(request), connection.received_bytes)
        except (OSError, TooLargeError):
            self._answered(verb, "<error>", began_at, len(request), 0)
            raise
        if status == 401:
            self._credentials.refused()
        return status, answer, retry_after

    async def _begin_watch(self, target: str, stack: contextlib.AsyncExitStack) -> tuple[Connection, int]:
        """A connection whose answer has begun. Raises ApiError, OSError."""
        request = self._message(await self._identity(), "GET", target, None, JSON)
        connection = await stack.enter_async_context(self._pool.exchange(request))
        status = await connection.head()
        if status >= 400:
            answer = await connection.body(MAX_ERROR_BYTES)
            if status == 401:
                self._credentials.refused()
            raise api_error(status, answer, pause_after_answer(0, status, connection.headers.get("retry-after", "")))
        return connection, status

    async def _identity(self) -> Identity:
        identity = await self._credentials.identity()
        self._pool.use(identity.context)
        return identity

    def _message(self, identity: Identity, verb: str, target: str, body: bytes | None, content_type: str) -> bytes:
        head = f"{verb} {target} HTTP/1.1\r\n{self._fixed_head}"
        if identity.authorization:
            head += f"Authorization: {identity.authorization}\r\n"
        if body is not None:
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        elif verb != "GET":
            head += "Content-Length: 0\r\n"
        return head.encode("ascii") + b"\r\n" + (body or b"")

    def _answered(self, verb: str, code: str, began_at: float, sent: int, received: int) -> None:
        if self._observer is not None:
            self._observer.answered(verb, code, loop_time() - began_at, sent, received)


def _checked(verb: str, target: str, answer: bytes) -> bytes:
    """The answer, which is an object of some kind. Raises Unreachable: whether the server has acted is unknown."""
    try:
        _ANSWER.decode(answer)
    except UNDECODABLE as error:
        raise Unreachable(f"{verb} {target}: the answer is no object: {error}") from None
    return answer


def _words(error: Exception) -> str:
    """The cause, as the system says it."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
