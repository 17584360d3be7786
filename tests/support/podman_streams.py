"""Podman's end of exec and attach, for what the real one cannot be made to do: stop in the middle, or never begin.

Only these few calls, and only as far as streams need them; everything else about Podman is tested with Podman.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import orjson

Program = Callable[["Process"], Awaitable[int]]
"""Behaviour of a process; its exit code."""

NOBODY: Final = 2**22 + 1
"""A pid that no process can have (PID_MAX_LIMIT)."""


class Process:
    """A started command, as the one who plays it sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: dict[str, Any]) -> None:
        self.input = reader
        self.writer = writer
        self.options = options
        """The body of the create, or the query of the attach."""

    async def say(self, data: bytes, stream: int = 1) -> None:
        """One frame."""
        self.writer.write(struct.pack(">BxxxI", stream, len(data)) + data)
        await self.writer.drain()

    async def say_raw(self, data: bytes) -> None:
        """As in a terminal, or what is no frame at all."""
        self.writer.write(data)
        await self.writer.drain()


class PodmanEnd:
    """All exec sessions run one program."""

    def __init__(self) -> None:
        self.program: Program = _ends_at_once
        self.state = "running"
        """State of every container."""
        self.exit_code: int | None = None
        self.pid = NOBODY
        """Pid of every command that runs."""
        self.started: list[dict[str, Any]] = []
        """Bodies of exec starts."""
        self.resized: list[str] = []
        self.running = 0
        """Processes under way."""
        self._created: list[dict[str, Any]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the other side went first
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lengths = (line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:"))
        body = await reader.readexactly(int(next(lengths, "0")))
        path, _, query = head.split()[1].removeprefix("/v4.0.0/libpod/").partition("?")
        match path.split("/"):
            case ["containers", _, "exec"]:
                self._created.append(orjson.loads(body))
                await self._answer(writer, 201, {"Id": f"session-{len(self._created)}"})
            case ["exec", session, "start"]:
                self.started.append(orjson.loads(body))
                await self._run(Process(reader, writer, self._created[int(session.rpartition("-")[2]) - 1]))
            case ["exec", _, "json"]:
                code = self.exit_code
                state = {"Running": code is None, "CanRemove": code is not None, "Pid": self.pid if code is None else 0}
                await self._answer(writer, 200, state | {"ExitCode": code or 0})
            case [_, _, "resize"]:
                self.resized.append(query)
                await self._answer(writer, 201, {})
            case ["containers", id, "json"]:
                await self._answer(writer, 200, {"Id": id, "State": {"Status": self.state}})
            case ["containers", _, "attach"]:
                await self._run(Process(reader, writer, {"query": query}))
                self.state = "exited"
            case _:
                await self._answer(writer, 404, {"cause": "no such thing", "message": path})

    async def _run(self, process: Process) -> None:
        process.writer.write(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
        self.running += 1
        try:
            self.exit_code = await self.program(process)
        finally:
            self.running -= 1
        process.writer.close()
        await process.writer.wait_closed()

    async def _answer(self, writer: asyncio.StreamWriter, status: int, body: Any) -> None:
        content = orjson.dumps(body)
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        await writer.drain()


async def _ends_at_once(_: Process) -> int:
    return 0


@contextlib.asynccontextmanager
async def podman_end(path: Path) -> AsyncIterator[PodmanEnd]:
    """Listens there."""
    end = PodmanEnd()
    async with await asyncio.start_unix_server(end.serve, path):
        yield end
