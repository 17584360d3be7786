"""The real kubectl against our API server, with Podman's end played: what it makes of our streams."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import orjson
import pytest

from tests.e2e.terminal import SIZE, terminal
from tests.harness.api_server import Master, api_server
from tests.harness.podman_streams import PodmanEnd, Process
from tests.integration.workers.api_server.test_exec_streams import echo, web

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on PATH")

_PODS: Final = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]}
_DISCOVERY: Final = {
    b"/api": {"kind": "APIVersions", "versions": ["v1"]},
    b"/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    b"/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [_PODS]},
}
"""What kubectl asks before anything else, and our API server does not have."""
KUBECTL_DEADLINE_S: Final = 60.0


@pytest.fixture
async def kubectl(tmp_path: Path, podman: PodmanEnd) -> AsyncIterator[list[str]]:
    """The command with an address that leads to our socket."""
    async with api_server(tmp_path) as master:
        master.ready(web())

        serving: set[asyncio.Task[None] | None] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.add(asyncio.current_task())
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await _serve(master, reader, writer)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1") as server:
            port = server.sockets[0].getsockname()[1]
            yield ["env", f"HOME={tmp_path}", "kubectl", "--server", f"http://127.0.0.1:{port}"]
            await asyncio.wait([task for task in serving if task is not None], timeout=KUBECTL_DEADLINE_S)


async def _serve(master: Master, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    answer = _DISCOVERY.get(head.split()[1].partition(b"?")[0])
    if answer is not None:
        content = orjson.dumps(answer)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        return
    ours, our_writer = await asyncio.open_unix_connection(str(master.socket_path))
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


async def run(command: list[str], *arguments: str, data: bytes = b"") -> tuple[int | None, bytes, bytes]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(KUBECTL_DEADLINE_S):
        out, err = await process.communicate(data)
    return process.returncode, out, err


async def test_exec_with_an_input_that_ends_and_an_exit_code(kubectl: list[str], podman: PodmanEnd) -> None:
    podman.program = echo
    done = await run(kubectl, "exec", "-i", "web", "--", "cmd", data=b"hello\n")
    assert done == (3, b"hello\n", b"endcommand terminated with exit code 3\n")


async def test_exec_in_a_terminal(kubectl: list[str], podman: PodmanEnd) -> None:
    async def one_key(process: Process) -> int:
        await process.say_raw(b"ready")
        await process.say_raw(b"got " + await process.input.readexactly(1))
        return 5

    def drive() -> int:
        with terminal([*kubectl, "exec", "-it", "web", "--", "cmd"]) as screen:
            screen.until(b"ready")
            screen.type(b"\x03")
            screen.until(b"got \x03")
            return screen.wait()

    podman.program = one_key
    assert await asyncio.to_thread(drive) == 5
    assert podman.started == [{"Detach": False, "Tty": True, "w": SIZE[1], "h": SIZE[0]}]


async def test_attach(kubectl: list[str], podman: PodmanEnd) -> None:
    async def talk(process: Process) -> int:
        await process.say(b"out\n")
        return 0

    podman.program = talk
    code, out, _ = await run(kubectl, "attach", "web")
    assert (code, out) == (0, b"out\n")


async def test_what_is_refused_is_said(kubectl: list[str]) -> None:
    code, _, err = await run(kubectl, "exec", "web", "-c", "other", "--", "cmd")
    assert (code, err) == (1, b"Error from server (BadRequest): container other is not valid for pod web\n")
