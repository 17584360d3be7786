"""Podman for the API server: exec and attach with all their streams, and what is asked now and then.

A start of an exec session and an attach are HTTP requests that take their connection over (101, pkg/api/handlers/
compat exec.go and containers_attach.go): from then on it carries the process's input one way, and its output the
other; without a terminal in frames of both output streams. Measured on 4.3.1: a half-closed connection ends the input
of a process without a terminal; its end comes when all output was sent, and the exit code is known then; neither side
is read ahead of a slow other one. A client that goes does not end the process, but
`workers.api_server.streams.remote_command` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
import orjson

from ipc.host.libpod import endpoints
from ipc.host.libpod.answers import ExecSession
from ipc.host.libpod.endpoints import DEADLINE_S, Endpoint
from ipc.host.libpod.go_json import decode_value
from ipc.link.wire.duplex import Duplex
from ipc.link.wire.http_answer import SWITCHING_PROTOCOLS, TooLargeError
from ipc.link.wire.stream_channels import CHUNK_BYTES, Channel, TerminalSize
from workers.kubecontainer.runtime import ErrorKind, InspectedContainer, RuntimeCallError
from workers.libpod import decode, decode_images, failures
from workers.libpod.client import Request, message, transport_error
from workers.libpod.connection import Connection
from workers.libpod.image_list import MAX_LIST_BYTES, tried_while_things_go
from workers.nodestatus.images import StoredImage

CALL_TIMEOUT_S: Final = 30.0
"""Longest wait for an answer, and for a process to be started, in seconds."""
MAX_CALLS: Final = 8
"""Calls of these under way at once, starts of commands among them; more of them wait."""
MAX_ANSWER_BYTES: Final = 1024 * 1024
"""Largest answer to one of these calls but the list of images."""

_SWITCHED: Final = frozenset((SWITCHING_PROTOCOLS, 200))
_UPGRADE: Final = {"Connection": "Upgrade", "Upgrade": "tcp"}
"""With it Podman answers 101, without it 200."""
_CHUNKED: Final = {"Connection": "close", "Transfer-Encoding": "chunked"}
"""For a body of unknown length."""
PATH_STAT: Final = "x-docker-container-path-stat"
"""Header with what a path is."""
_NO_REUSE: Final = {"Connection": "close"}
"""A connection for each call: one that is kept may belong to a service that has gone since."""
_WORDS: Final = b"Error: "
_BROKEN_OFF: Final = (b"Error: read unixpacket ", b"Error: write unixpacket ")
_BROKEN_OFF_BY: Final = (b": connection reset by peer\n", b": broken pipe\n")
"""Last words of Podman's about a process that has ended with input unread, or that was never there: nothing of the
process's, which has ended as its exit code says (libpod oci_conmon_attach_common.go, hijackWriteErrorAndClose)."""
MAX_WORDS_BYTES: Final = 400
"""Longest such words."""
_FRAME: Final = struct.Struct(">BxxxI")
_STDERR: Final = 2

T = TypeVar("T")


class Piece(msgspec.Struct, frozen=True):
    """A piece of a process's output."""

    channel: Channel
    """STDOUT or STDERR; with a terminal always STDOUT."""
    data: bytes


class ProcessStreams:
    """A connection that carries the streams of one process. Whoever has it must close it."""

    def __init__(self, connection: Duplex, ahead: bytes, *, tty: bool) -> None:
        """``ahead``: what of its output was read already."""
        self._connection = connection
        self._tty = tty
        self._ahead = ahead
        """The bytes of the last read, after what was left of the reads before."""
        self._at = 0
        """The place up to which they were asked for. They are not cut off each time: frames may have a byte each."""

    async def write(self, data: bytes) -> None:
        """Write to the command's input; waits while it is not read. Raises OSError when its reader is gone."""
        await self._connection.write(data)

    def end_input(self) -> None:
        """End the process's input; its output goes on. Raises OSError like ``write``."""
        self._connection.end()

    async def output(self) -> AsyncIterator[Piece]:
        """Output in pieces of at most CHUNK_BYTES, to its end. Raises ConnectionError when it breaks off in a frame.

        Elsewhere that is an end as any other: Podman closes the connection so when an input has come that nobody read.
        What it then says of its own is left out, where it is the last that comes.
        """
        held: Piece | None = None
        async for piece in self._pieces():
            if held is not None:
                yield held
                held = None
            begin = self._last_words(piece.data)
            if begin:
                yield Piece(piece.channel, piece.data[:begin])
            if begin < len(piece.data):
                held = Piece(piece.channel, piece.data[begin:])

    def _last_words(self, data: bytes) -> int:
        """Where Podman's own words begin in a piece that may be the last; its length for none. They are a frame of
        their own where there are frames."""
        begin = data.rfind(_WORDS, max(0, len(data) - MAX_WORDS_BYTES)) if self._tty else 0
        words = data[begin:] if begin >= 0 else b""
        is_podmans = words.startswith(_BROKEN_OFF) and words.endswith(_BROKEN_OFF_BY) and words.count(b"\n") == 1
        return begin if is_podmans else len(data)

    async def _pieces(self) -> AsyncIterator[Piece]:
        """All that comes; a short frame, which may have Podman's own words, is one piece. Raises ConnectionError."""
        while (header := await self._header()) is not None:
            channel, left = header
            short = b""
            while left:
                data = await self._read(min(left, CHUNK_BYTES))
                if not data:
                    if short:
                        yield Piece(channel, short)
                    raise ConnectionResetError("the output broke off")
                left -= len(data)
                if left and len(short) + len(data) + left <= MAX_WORDS_BYTES:
                    short += data
                else:
                    yield Piece(channel, short + data)
                    short = b""

    async def _header(self) -> tuple[Channel, int] | None:
        """Stream and length of what comes next; None after the last. Without frames: what is there."""
        size = 1 if self._tty else _FRAME.size
        while self._left() < size:
            try:
                data = await self._connection.read()
            except ConnectionResetError:
                data = b""
            if not data and self._left():
                raise ConnectionResetError("the output broke off")
            if not data:
                return None
            self._ahead, self._at = self._ahead[self._at :] + data, 0
        if self._tty:
            return Channel.STDOUT, self._left()
        stream, length = _FRAME.unpack_from(self._ahead, self._at)
        self._at += _FRAME.size
        return Channel.STDERR if stream == _STDERR else Channel.STDOUT, length

    async def _read(self, max_bytes: int) -> bytes:
        if not self._left():
            self._ahead, self._at = await self._connection.read(), 0
        data = self._ahead[self._at : self._at + max_bytes]
        self._at += len(data)
        return data

    def _left(self) -> int:
        """Bytes that were read, and not asked for yet."""
        return len(self._ahead) - self._at

    def close(self) -> None:
        self._connection.close()


class PodmanStreams:
    """Podman's side of exec and attach. Belongs to the loop in which it was made. Raises RuntimeCallError."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._turns = asyncio.Semaphore(MAX_CALLS)

    async def create_exec(self, id: str, command: Sequence[str], *, stdin: bool, tty: bool) -> str:
        """A command in a running container, not started yet: its session's id. WRONG_STATE when it does not run."""
        body = {
            "Cmd": list(command),
            "AttachStdin": stdin,
            "AttachStdout": True,
            "AttachStderr": True,
            "Tty": tty,
            # As CRI runtimes do for a terminal.
            "Env": ["TERM=xterm"] if tty else [],
            "DetachKeys": "",
        }
        return decode.decode_created_id(await self._call(_json(endpoints.CREATE_EXEC, id, body)))

    async def start_exec(self, session: str, *, tty: bool, size: TerminalSize | None) -> ProcessStreams:
        """Start it, in a terminal of that size."""
        body: dict[str, bool | int] = {"Detach": False, "Tty": tty}
        if tty and size is not None:
            body |= {"w": size.width, "h": size.height}
        return await self._take_over(_json(endpoints.START_EXEC, session, body), tty=tty)

    async def exec_state(self, session: str) -> ExecSession:
        body = await self._call(Request(endpoint=endpoints.INSPECT_EXEC, name=session))
        return decode_value(endpoints.INSPECT_EXEC.answer, body)

    async def resize_exec(self, session: str, size: TerminalSize) -> None:
        await self._call(_resize(endpoints.RESIZE_EXEC, session, size))

    async def attach(self, id: str, *, stdin: bool, tty: bool) -> ProcessStreams:
        """Podman prepares a container that has ended to start again: the caller has seen it running just now."""
        query = {"stream": "true", "stdin": str(stdin).lower(), "stdout": "true", "stderr": "true", "detachKeys": ""}
        return await self._take_over(Request(endpoint=endpoints.ATTACH, name=id, params=query), tty=tty)

    async def resize_container(self, id: str, size: TerminalSize) -> None:
        await self._call(_resize(endpoints.RESIZE_CONTAINER, id, size))

    async def inspect(self, id: str) -> InspectedContainer:
        return decode.decode_container(await self._call(Request(endpoint=endpoints.INSPECT_CONTAINER, name=id)))

    async def working_directory(self, id: str) -> str:
        """Absolute path of the directory in which the container's processes begin."""
        body = await self._call(Request(endpoint=endpoints.INSPECT_WORKING_DIRECTORY, name=id))
        return decode_value(endpoints.INSPECT_WORKING_DIRECTORY.answer, body).config.working_dir or "/"

    async def path_stat(self, id: str, path: str) -> str:
        """Kind of a path of a container, in Podman's own words: base64 of JSON."""
        request = Request(endpoint=endpoints.STAT_PATH, name=id, params={"path": path})

        async def stat(connection: Connection) -> str:
            status = await connection.head()
            found = connection.headers.get(PATH_STAT, "")
            connection.close()
            if status >= 400:
                raise failures.call_error(request.call, status, b"")
            return found

        return await self._asked(request, _NO_REUSE, stat)

    @contextlib.asynccontextmanager
    async def archive(self, id: str, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Tar of a path of a container, as it comes. Raises OSError when it breaks off."""
        request = Request(endpoint=endpoints.READ_ARCHIVE, name=id, params={"path": path})

        async def begun(connection: Connection) -> Connection:
            status = await connection.head()
            if status >= 400:
                raise failures.call_error(request.call, status, await _refusal(connection))
            return connection

        connection = await self._asked(request, _NO_REUSE, begun)
        try:
            yield connection.parts()
        finally:
            connection.close()

    async def extract(self, id: str, path: str, pieces: AsyncIterator[bytes]) -> None:
        """Unpack a tar below a directory of a container. It may take as long as its bytes come."""
        request = Request(endpoint=endpoints.WRITE_ARCHIVE, name=id, params={"path": path})
        connection = await self._asked(request, _CHUNKED, _returned)
        try:
            async for piece in pieces:
                await connection.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await connection.write(b"0\r\n\r\n")
        except OSError as error:
            if not await _has_answered(connection):  # a refusal ends the body early, and says why
                connection.close()
                raise _failure(request, error) from None
        except BaseException:
            connection.close()
            raise
        await self._answered(request, connection)

    async def _answered(self, request: Request, connection: Connection) -> None:
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                status = await connection.head()
                if status >= 400:
                    raise failures.call_error(request.call, status, await _refusal(connection))
        except BaseException as error:
            raise _failure(request, error) from None
        finally:
            connection.close()

    async def images(self) -> tuple[StoredImage, ...]:
        """All images in Podman's storage that have a size. Takes Podman a millisecond for each."""
        request = Request(endpoint=endpoints.LIST_IMAGES)
        body = await tried_while_things_go(lambda: self._call(request, MAX_LIST_BYTES))
        return decode_images.decode_stored_images(body)

    async def _call(self, request: Request, max_bytes: int = MAX_ANSWER_BYTES) -> bytes:
        async def whole(connection: Connection) -> bytes:
            status = await connection.head()
            body = await connection.body(max_bytes)
            connection.close()
            if status >= 400:
                raise failures.call_error(request.call, status, body)
            return body

        return await self._asked(request, _NO_REUSE, whole)

    async def _take_over(self, request: Request, *, tty: bool) -> ProcessStreams:
        async def taken_over(connection: Connection) -> ProcessStreams:
            status = await connection.head()
            if status not in _SWITCHED:
                raise failures.call_error(request.call, status, await _refusal(connection))
            streams, ahead = connection.take_over()
            return ProcessStreams(streams, ahead, tty=tty)

        return await self._asked(request, _UPGRADE, taken_over)

    async def _asked(
        self, request: Request, headers: Mapping[str, str], answer: Callable[[Connection], Awaitable[T]]
    ) -> T:
        """Ask, and return what ``answer`` makes of the answer. Unless that succeeds the connection is closed; the wait
        for a turn counts for the deadline."""
        connection: Connection | None = None
        try:
            async with asyncio.timeout(_deadline_s(request)), self._turns:
                connection = Connection(self._socket_path)
                await connection.send(message(request, headers))
                return await answer(connection)
        except BaseException as error:
            if connection is not None:
                connection.close()
            raise _failure(request, error) from None


def _deadline_s(request: Request) -> float:
    """Streams have none in the table: so long may pass until they have begun."""
    return min(CALL_TIMEOUT_S, DEADLINE_S[request.endpoint.kind])


def _failure(request: Request, error: BaseException) -> BaseException:
    match error:
        case TimeoutError():
            return RuntimeCallError(ErrorKind.TIMEOUT, request.call, f"no answer within {_deadline_s(request):g} s")
        case OSError():
            return RuntimeCallError(ErrorKind.UNAVAILABLE, request.call, str(error))
        case TooLargeError():
            return transport_error(request, error)
    return error


async def _refusal(connection: Connection) -> bytes:
    """The beginning of the answer's body; of one that breaks off, as much as has come."""
    kept = bytearray()
    try:
        async for part in connection.parts():
            kept += part
            if len(kept) >= MAX_ANSWER_BYTES:
                break
    except OSError:
        return bytes(kept)
    return bytes(kept[:MAX_ANSWER_BYTES])


async def _returned(connection: Connection) -> Connection:
    """Nothing is answered before the body has been sent."""
    return connection


async def _has_answered(connection: Connection) -> bool:
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await connection.head() >= 400
    except (OSError, TimeoutError):
        return False


def _json(endpoint: Endpoint[object], name: str, body: object) -> Request:
    return Request(endpoint=endpoint, name=name, body=orjson.dumps(body))


def _resize(endpoint: Endpoint[object], name: str, size: TerminalSize) -> Request:
    return Request(endpoint=endpoint, name=name, params={"w": str(size.width), "h": str(size.height)})
