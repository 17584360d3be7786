"""exec and attach over SPDY: streams, versions of the protocol, terminals, bounds, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Iterable
from typing import Final

import msgspec
import pytest

from ipc.link.messages.base import Shutdown
from ipc.link.wire.stream_channels import StreamStatus, decode_status
from tests.integration.workers.api_server.test_exec_streams import (
    BOUND_BYTES,
    EXEC,
    LARGE_BYTES,
    POD,
    deaf,
    echo,
    endless,
    patient,
    web,
)
from tests.support.api_server import Master, eventually
from tests.support.podman_streams import PodmanEnd, Process
from tests.support.spdy_client import SpdyClient, handshake, spdy_client
from tests.support.until import until_still
from workers.api_server.core.stream_sockets import STOPPING_WORDS
from workers.api_server.core.upgrades import COMMAND_V1, COMMAND_V2, COMMAND_V3, COMMAND_V4
from workers.spdy.frames import GoAway

KUBECTL: Final = ("v5.channel.k8s.io", COMMAND_V4, COMMAND_V3, COMMAND_V2, COMMAND_V1)
"""Versions that kubectl offers, in its order."""
TERMINAL: Final = (*EXEC[:3], ("tty", "true"))
CHUNK: Final = bytes(32 * 1024)


class Command:
    """A client with its streams by their types."""

    def __init__(self, client: SpdyClient, ids: dict[str, int]) -> None:
        self.client = client
        self.ids = ids

    async def type(self, data: bytes, *, fin: bool = False) -> None:
        await self.client.send(self.ids["stdin"], data, fin=fin)

    async def output(self, kind: str = "stdout") -> bytes:
        return await self.client.rest(self.ids[kind])

    async def status(self) -> StreamStatus:
        return decode_status(await self.output("error"))


@contextlib.asynccontextmanager
async def command(
    master: Master,
    query: Iterable[tuple[str, str]] = EXEC,
    protocols: Iterable[str] = KUBECTL,
    types: Iterable[str] = ("error", "stdin", "stdout", "stderr"),
    path: str = "exec",
    method: str = "POST",
) -> AsyncIterator[Command]:
    async with spdy_client(master, f"{POD}/{path}", query, protocols, method) as client:
        yield Command(client, {kind: await client.open(streamtype=kind) for kind in types})


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_streams_and_exit_code(master: Master, podman: PodmanEnd, method: str) -> None:
    podman.program = echo
    master.ready(web())
    async with command(master, method=method) as told:
        assert "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" in told.client.head
        assert "Upgrade: SPDY/3.1\r\n" in told.client.head
        await told.type(b"hello")
        assert await told.client.data(told.ids["stdout"], 5) == b"hello"
        await told.type(b"", fin=True)
        assert await told.output() == b""
        assert await told.output("stderr") == b"end"
        assert (await told.status()).exit_code() == 3
        await told.client.first(GoAway, stream=0)


async def test_success_is_a_status_as_the_kubelets(master: Master, podman: PodmanEnd) -> None:
    master.ready(web())
    async with command(master) as told:
        assert msgspec.json.decode(await told.output("error")) == {"metadata": {}, "status": "Success"}


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (COMMAND_V3, b"command terminated with non-zero exit code: 3"),
        (COMMAND_V2, b"command terminated with non-zero exit code: 3"),
        (COMMAND_V1, b"command terminated with non-zero exit code: 3"),
    ],
)
async def test_older_versions_tell_a_failure_as_text(
    master: Master, podman: PodmanEnd, protocol: str, words: bytes
) -> None:
    podman.program = echo
    master.ready(web())
    async with command(master, protocols=(protocol,)) as told:
        await told.type(b"x", fin=True)
        assert await told.output() == b"x"
        assert await told.output("error") == words


async def test_older_versions_tell_nothing_of_success(master: Master, podman: PodmanEnd) -> None:
    master.ready(web())
    async with command(master, protocols=(COMMAND_V3,)) as told:
        assert await told.output("error") == b""


@pytest.mark.parametrize("protocol", [COMMAND_V4, COMMAND_V3])
async def test_a_terminal_has_a_stream_of_sizes(master: Master, podman: PodmanEnd, protocol: str) -> None:
    async def until_told(process: Process) -> int:
        await process.say_raw(await process.input.readexactly(1))
        return 0

    podman.program = until_told
    master.ready(web())
    types = ("error", "stdin", "stdout", "resize")
    async with command(master, TERMINAL, (protocol,), types) as told:
        for piece in (b'{"Width":9', b'7,"Height":31}\n', b'{"Width":1,"Height":2}\n{"Width":5,"Height":6}\n'):
            await told.client.send(told.ids["resize"], piece)
        await eventually(lambda: podman.resized[-1:] == ["w=5&h=6"], "it was resized")
        await told.type(b"x")
        assert await told.output() == b"x"
    assert podman.started == [{"Detach": False, "Tty": True, "w": 97, "h": 31}]


async def test_a_terminal_of_the_second_version_has_none(master: Master, podman: PodmanEnd) -> None:
    async def ready(process: Process) -> int:
        await process.say_raw(b"ready")
        return 0

    podman.program = ready
    master.ready(web())
    async with command(master, TERMINAL, (COMMAND_V2,), ("error", "stdin", "stdout")) as told:
        with pytest.raises(ConnectionRefusedError):
            await told.client.open(streamtype="resize")
        assert await told.output() == b"ready"


async def test_attach_has_the_containers_own_streams(master: Master, podman: PodmanEnd) -> None:
    async def talk(process: Process) -> int:
        await process.say(b"out")
        await process.say(b"err", stream=2)
        return 9

    podman.program = talk
    master.ready(web())
    types = ("error", "stdout", "stderr")
    async with command(master, (("stdout", "true"), ("stderr", "true")), types=types, path="attach") as told:
        assert await told.output() == b"out"
        assert await told.output("stderr") == b"err"
        assert (await told.status()).exit_code() == 0


async def test_large_transfers_are_exact(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    data = os.urandom(LARGE_BYTES)
    async with command(master) as told:

        async def give() -> None:
            for start in range(0, len(data), len(CHUNK)):
                await told.type(data[start : start + len(CHUNK)])
            await told.type(b"", fin=True)

        _, shown = await asyncio.gather(give(), told.output())
        assert (await told.status()).exit_code() == 3
    assert hashlib.sha256(shown).digest() == hashlib.sha256(data).digest()


async def test_all_that_was_said_arrives_at_a_slow_client(master: Master, podman: PodmanEnd) -> None:
    """The command has ended long before its client reads."""

    async def much(process: Process) -> int:
        for _ in range(64):
            await process.say(CHUNK)
        return 7

    podman.program = much
    master.ready(web())
    async with command(master) as told:
        await eventually(lambda: podman.exit_code == 7 or podman.running == 1, "it runs")
        assert await told.output() == 64 * CHUNK
        assert (await told.status()).exit_code() == 7


async def test_a_client_that_reads_nothing_stops_the_output(master: Master, podman: PodmanEnd) -> None:
    said = 0

    async def count(process: Process) -> int:
        nonlocal said
        while True:
            await process.say(CHUNK)
            said += len(CHUNK)

    podman.program = count
    master.ready(web())
    async with command(master):
        await until_still(lambda: said)
        assert 0 < said < BOUND_BYTES
    await eventually(lambda: podman.running == 0, "its connection was closed")


async def test_a_process_that_reads_nothing_stops_the_client(master: Master, podman: PodmanEnd) -> None:
    podman.program = deaf
    master.ready(web())
    async with command(master) as told:
        sent = 0

        async def give() -> None:
            nonlocal sent
            while True:
                await told.type(CHUNK)
                sent += len(CHUNK)

        giving = asyncio.create_task(give())
        await until_still(lambda: sent)
        giving.cancel()
        await asyncio.gather(giving, return_exceptions=True)
        assert 0 < sent < BOUND_BYTES


async def test_a_client_that_goes_ends_its_command(master: Master, podman: PodmanEnd) -> None:
    podman.program = endless
    master.ready(web())
    async with command(master):
        await eventually(lambda: podman.running == 1, "it runs")
    await eventually(lambda: podman.running == 0, "its connection was closed")


async def test_a_client_that_says_that_it_goes(master: Master, podman: PodmanEnd) -> None:
    podman.program = patient
    master.ready(web())
    async with command(master) as told:
        await eventually(lambda: podman.running == 1, "it runs")
        await told.client.write(told.client.connection.leave())
        await eventually(lambda: podman.running == 0, "its connection was closed")


async def test_an_input_that_is_reset_has_ended(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    async with command(master) as told:
        await told.type(b"x")
        await told.client.reset(told.ids["stdin"])
        assert await told.output() == b"x"
        assert (await told.status()).exit_code() == 3


async def test_an_output_that_is_reset_stops_nothing(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    async with command(master) as told:
        await told.client.reset(told.ids["stdout"])
        await told.type(b"x", fin=True)
        assert await told.output("stderr") == b"end"
        assert (await told.status()).exit_code() == 3


async def test_pings_are_answered(master: Master, podman: PodmanEnd) -> None:
    podman.program = patient
    master.ready(web())
    async with command(master) as told:
        ping = told.client.connection.ping()
        await told.client.write(ping)
        async with asyncio.timeout(10):
            assert await told.client._reader.readexactly(len(ping)) == ping


async def test_the_end_of_the_api_server_is_told(master: Master, podman: PodmanEnd) -> None:
    podman.program = deaf
    master.ready(web())
    async with command(master) as told:
        await eventually(lambda: podman.running == 1, "it runs")
        master.feed(Shutdown())
        assert (await told.status()).message == STOPPING_WORDS
        await told.client.first(GoAway, stream=0)


# --- what is refused -----------------------------------------------------------------------------------------------


async def refusal(master: Master, query: Iterable[tuple[str, str]], protocols: Iterable[str]) -> tuple[str, str]:
    """The answer's head and body."""
    reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
    writer.write(handshake(f"{POD}/exec", query, protocols).replace(b"Upgrade\r\n", b"Upgrade, close\r\n"))
    async with asyncio.timeout(10):
        answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return head, body


async def test_a_protocol_that_is_not_spoken(master: Master, podman: PodmanEnd) -> None:
    master.ready(web())
    head, body = await refusal(master, EXEC, ("v9.channel.k8s.io",))
    assert head.startswith("HTTP/1.1 403 ")
    for each in (COMMAND_V4, COMMAND_V3, COMMAND_V2, COMMAND_V1):
        assert f"X-Accepted-Stream-Protocol-Versions: {each}" in head
    assert "unable to upgrade: unable to negotiate protocol: client supports" in body
    assert podman.started == []


async def test_no_protocol_at_all(master: Master) -> None:
    master.ready(web())
    head, body = await refusal(master, EXEC, ())
    assert head.startswith("HTTP/1.1 400 ")
    assert "unable to upgrade: X-Stream-Protocol-Version is required" in body


async def test_bytes_before_the_answer_are_refused(master: Master, podman: PodmanEnd) -> None:
    master.ready(web())
    reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
    writer.write(handshake(f"{POD}/exec", EXEC, KUBECTL) + b"\x80\x03")
    async with asyncio.timeout(10):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    writer.close()
    assert podman.started == []
