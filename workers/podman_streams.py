"""Exec and attach with all their streams: connections to Podman that the event loop itself reads and writes.

A start of an exec session and an attach are HTTP requests that take their connection over (101, pkg/api/handlers/
compat exec.go and containers_attach.go): from then on it carries the process's input one way, and its output the
other; without a terminal in frames of both output streams. Measured on 4.3.1: a half-closed connection ends the input
of a process without a terminal; its end comes when all output was sent, and the exit code is known then; neither side
is read ahead of a slow other one. A client that goes does not end the process.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import msgspec

from ipc.stream_channels import CHUNK_BYTES, Channel, TerminalSize
from workers import libpod
from workers.runtime import ErrorKind, InspectedContainer, RuntimeCallError

BASE_URL: Final = "http://d/v4.0.0/libpod/"
CONNECT_TIMEOUT_S: Final = 5.0
CALL_TIMEOUT_S: Final = 30.0
"""For one answer, and for a process to be started, in seconds."""
MAX_ANSWER_BYTES: Final = 1024 * 1024
"""Largest answer to one of these calls."""
READ_AHEAD_BYTES: Final = 64 * 1024
"""Half of what is read of an output before somebody wants it; also the largest head of an answer."""

_FRAME: Final = struct.Struct(">BxxxI")
_STDERR: Final = 2
_SWITCHED: Final = frozenset((101, 200))
"""Without an Upgrade header Podman says 200."""


class ExecState(msgspec.Struct, frozen=True, rename="pascal"):
    """GET exec/{id}/json."""

    running: bool = False
    exit_code: int = 0


class Piece(msgspec.Struct, frozen=True):
    """A piece of a process's output."""

    channel: Channel
    """STDOUT or STDERR; with a terminal always STDOUT."""
    data: bytes


class ProcessStreams:
    """A connection that carries the streams of one process. Whoever has it must close it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, tty: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._tty = tty

    async def write(self, data: bytes) -> None:
        """Its input; waits while it is not read. Raises ConnectionError when nobody will read it any more."""
        self._writer.write(data)
        await self._writer.drain()

    def end_input(self) -> None:
        """Its input has ended; its output goes on."""
        if not self._writer.is_closing():
            self._writer.write_eof()

    async def output(self) -> AsyncIterator[Piece]:
        """All of it, in pieces of at most CHUNK_BYTES. Raises ConnectionError when it breaks off."""
        if self._tty:
            while data := await self._reader.read(CHUNK_BYTES):
                yield Piece(Channel.STDOUT, data)
            return
        while (header := await self._header()) is not None:
            stream, left = header
            channel = Channel.STDERR if stream == _STDERR else Channel.STDOUT
            while left:
                data = await self._reader.read(min(left, CHUNK_BYTES))
                if not data:
                    raise ConnectionResetError("the output broke off")
                left -= len(data)
                yield Piece(channel, data)

    async def _header(self) -> tuple[int, int] | None:
        """Stream and length of the next frame; None after the last one."""
        try:
            stream, length = _FRAME.unpack(await self._reader.readexactly(_FRAME.size))
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise ConnectionResetError("the output broke off") from None
            return None
        return stream, length

    def close(self) -> None:
        """At once, whatever was not sent yet."""
        self._writer.transport.abort()


class PodmanStreams:
    """Podman's side of exec and attach. Belongs to the loop in which it was made. Raises RuntimeCallError."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._session: aiohttp.ClientSession | None = None

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
        return libpod.decode_created_id(await self._call("create exec", "POST", f"containers/{id}/exec", body))

    async def start_exec(self, session: str, *, tty: bool, size: TerminalSize | None) -> ProcessStreams:
        """Start it, in a terminal of that size."""
        body: dict[str, bool | int] = {"Detach": False, "Tty": tty}
        if tty and size is not None:
            body |= {"w": size.width, "h": size.height}
        return await self._take_over("start exec", f"exec/{session}/start", body, tty=tty)

    async def exec_state(self, session: str) -> ExecState:
        return msgspec.json.decode(await self._call("inspect exec", "GET", f"exec/{session}/json"), type=ExecState)

    async def resize_exec(self, session: str, size: TerminalSize) -> None:
        await self._call("resize exec", "POST", f"exec/{session}/resize?{_size_query(size)}")

    async def attach(self, id: str, *, stdin: bool, tty: bool) -> ProcessStreams:
        """Podman prepares a container that has ended to start again: the caller has seen it running just now."""
        query = {"stream": "true", "stdin": str(stdin).lower(), "stdout": "true", "stderr": "true", "detachKeys": ""}
        return await self._take_over("attach", f"containers/{id}/attach?{urlencode(query)}", None, tty=tty)

    async def resize_container(self, id: str, size: TerminalSize) -> None:
        await self._call("resize container", "POST", f"containers/{id}/resize?{_size_query(size)}")

    async def inspect(self, id: str) -> InspectedContainer:
        return libpod.decode_container(await self._call("inspect container", "GET", f"containers/{id}/json"))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _call(self, call: str, method: str, path: str, body: Any = None) -> bytes:
        try:
            async with self._http.request(method, BASE_URL + path, json=body) as response:
                answer, status = await _content(call, response), response.status
        except TimeoutError:
            raise RuntimeCallError(ErrorKind.TIMEOUT, call, f"no answer within {CALL_TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, call, str(error)) from None
        if status >= 400:
            raise libpod.call_error(call, status, answer)
        return answer

    @property
    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            # A connection for each call: one that is kept may belong to a service that has gone since.
            connector = aiohttp.UnixConnector(self._socket_path, force_close=True, limit=0)
            timeout = aiohttp.ClientTimeout(total=CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False)
        return self._session

    async def _take_over(self, call: str, path: str, body: Any, *, tty: bool) -> ProcessStreams:
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                return await self._taken_over(call, path, body, tty=tty)
        except TimeoutError:
            raise RuntimeCallError(ErrorKind.TIMEOUT, call, f"no answer within {CALL_TIMEOUT_S:g} s") from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, call, str(error)) from None

    async def _taken_over(self, call: str, path: str, body: Any, *, tty: bool) -> ProcessStreams:
        content = b"" if body is None else msgspec.json.encode(body)
        reader, writer = await asyncio.open_unix_connection(self._socket_path, limit=READ_AHEAD_BYTES)
        try:
            writer.write(_request_head(path, len(content)) + content)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            status = int(head.split(None, 2)[1])
            if status not in _SWITCHED:
                raise libpod.call_error(call, status, await _refusal(reader, head))
        except BaseException:
            writer.transport.abort()
            raise
        return ProcessStreams(reader, writer, tty=tty)


async def _content(call: str, response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for part in response.content.iter_any():
        content += part
        if len(content) > MAX_ANSWER_BYTES:
            raise RuntimeCallError(ErrorKind.INTERNAL, call, f"an answer of more than {MAX_ANSWER_BYTES} bytes")
    return bytes(content)


def _request_head(path: str, content_bytes: int) -> bytes:
    lines = (
        f"POST /v4.0.0/libpod/{path} HTTP/1.1",
        "Host: d",
        "Connection: Upgrade",
        "Upgrade: tcp",
        "Content-Type: application/json",
        f"Content-Length: {content_bytes}",
    )
    return "\r\n".join((*lines, "", "")).encode()


async def _refusal(reader: asyncio.StreamReader, head: str) -> bytes:
    """The body of an answer that says no."""
    lengths = (line.partition(":")[2] for line in head.split("\r\n") if line.startswith("content-length:"))
    length = next(lengths, "").strip()
    return await reader.readexactly(min(int(length), MAX_ANSWER_BYTES)) if length.isdigit() else b""


def _size_query(size: TerminalSize) -> str:
    return urlencode({"w": size.width, "h": size.height})
