"""Forwarded connections: a WebSocket at one end, at the other a socket of a test's own instead of a pod's."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from ipc.k8s.kubecontainer.pod_status import SandboxState, SandboxStatus
from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.base import Shutdown
from ipc.link.wire.stream_channels import V4, V5, Message, PortChannel
from tests.support.api_server import DEADLINE_S, Master, api_server, eventually, pod_changed
from tests.support.open_files import open_files, open_files_before
from tests.support.stream_client import StreamClient
from tests.support.until import until_still
from workers.podhttp.pod_network import LOOPBACK, DialError, PodNetwork

PATH: Final = "/api/v1/namespaces/default/pods/web/portforward"
BOUND_BYTES: Final = 8 * 1024 * 1024
"""More than all buffers on the way, kernel's and ours, can hold together."""
LARGE_BYTES: Final = 20 * 1024 * 1024
MANY: Final = 50


class LocalDialer:
    """Sockets of this host's own network, for pods that are in it."""

    def __init__(self) -> None:
        self.problem = ""

    async def socket(self, network: PodNetwork, family: socket.AddressFamily) -> socket.socket:
        assert network == PodNetwork(ip=LOOPBACK)
        if self.problem:
            raise DialError(self.problem)
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setblocking(False)
        return made


class PodEnd:
    """Somebody who listens in the pod. Tests speak with the connections as they come."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.port: int = listening.getsockname()[1]

    async def accept(self) -> socket.socket:
        async with asyncio.timeout(DEADLINE_S):
            connection, _ = await asyncio.get_running_loop().sock_accept(self._listening)
        connection.setblocking(False)
        return connection


async def received(connection: socket.socket, most: int = 65536) -> bytes:
    async with asyncio.timeout(DEADLINE_S):
        return await asyncio.get_running_loop().sock_recv(connection, most)


async def send(connection: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, data)


@contextlib.contextmanager
def listening(family: socket.AddressFamily, host: str) -> Any:
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.bind((host, 0))
        listening.listen(MANY)
        listening.setblocking(False)
        yield PodEnd(listening)


@pytest.fixture
def pod_end() -> Any:
    with listening(socket.AF_INET, "127.0.0.1") as end:
        yield end


@pytest.fixture
def dialer() -> LocalDialer:
    return LocalDialer()


@pytest.fixture
async def master(tmp_path: Path, dialer: LocalDialer) -> AsyncIterator[Master]:
    async with api_server(tmp_path, dialer=dialer) as started:
        started.ready(web())
        yield started


def web(state: SandboxState = SandboxState.READY) -> PodChanged:
    sandbox = SandboxStatus(id="s", name="s", infra_id="infra", attempt=0, state=state, host_network=True)
    return pod_changed(1, "web", sandbox=sandbox)


class Client(StreamClient):
    """The far end of a forwarded connection, its two headers read."""

    async def send(self, data: bytes) -> None:
        await self.channels.send(PortChannel.DATA, data)

    async def end(self) -> None:
        await self.channels.end(PortChannel.DATA)


@contextlib.asynccontextmanager
async def opened(master: Master, port: int, protocol: str = V5) -> AsyncIterator[Client]:
    connector = aiohttp.UnixConnector(str(master.socket_path))
    async with (
        aiohttp.ClientSession("http://rootlet", connector=connector) as session,
        session.ws_connect(PATH, params={"ports": str(port)}, protocols=(protocol,)) as found,
    ):
        client = Client(found)
        for channel in PortChannel:
            assert await client.next() == Message(channel, port.to_bytes(2, "little"))
        yield client


ENDED: Final = Message(PortChannel.DATA, ends=True)


async def test_data_both_ways_and_each_way_ends_alone(master: Master, pod_end: PodEnd) -> None:
    async with opened(master, pod_end.port) as client:
        with await pod_end.accept() as pod:
            await client.send(b"question")
            assert await received(pod) == b"question"
            await client.end()
            assert await received(pod) == b""
            await send(pod, b"answer")
            assert await client.next() == Message(PortChannel.DATA, b"answer")
        assert await client.next() == ENDED
        assert await client.next() is None
        assert client.socket.close_code == aiohttp.WSCloseCode.OK


async def test_the_pod_may_end_first(master: Master, pod_end: PodEnd) -> None:
    async with opened(master, pod_end.port) as client:
        with await pod_end.accept() as pod:
            pod.shutdown(socket.SHUT_WR)
            assert await client.next() == ENDED
            await client.send(b"still")
            assert await received(pod) == b"still"
            await client.end()
            assert await received(pod) == b""
        assert await client.next() is None


async def test_without_half_closing_the_pods_end_is_the_end(master: Master, pod_end: PodEnd) -> None:
    async with opened(master, pod_end.port, V4) as client:
        with await pod_end.accept() as pod:
            await send(pod, b"bye")
        assert await client.next() == Message(PortChannel.DATA, b"bye")
        assert await client.next() is None


async def test_a_client_that_goes_is_an_end_for_the_pod(master: Master, pod_end: PodEnd) -> None:
    async with opened(master, pod_end.port) as client:
        pod = await pod_end.accept()
        await client.send(b"x")
        assert await received(pod) == b"x"
    with pod:
        assert await received(pod) == b""


async def test_large_transfers_are_exact(master: Master, pod_end: PodEnd) -> None:
    data = os.urandom(LARGE_BYTES)
    async with opened(master, pod_end.port) as client:
        with await pod_end.accept() as pod:

            async def echo() -> None:
                while piece := await received(pod):
                    await send(pod, piece)
                pod.shutdown(socket.SHUT_WR)

            async def give() -> None:
                for start in range(0, len(data), 32 * 1024):
                    await client.send(data[start : start + 32 * 1024])
                await client.end()

            async def take() -> bytes:
                digest = hashlib.sha256()
                while (message := await client.next()) is not None:
                    digest.update(message.data)
                return digest.digest()

            *_, digest = await asyncio.gather(echo(), give(), take())
    assert digest == hashlib.sha256(data).digest()


async def test_a_client_that_reads_nothing_stops_the_pod(master: Master, pod_end: PodEnd) -> None:
    async with opened(master, pod_end.port):
        with await pod_end.accept() as pod:
            sent = 0

            async def give() -> None:
                nonlocal sent
                while True:
                    await send(pod, bytes(64 * 1024))
                    sent += 64 * 1024

            giving = asyncio.create_task(give())
            await until_still(lambda: sent)
            giving.cancel()
            await asyncio.gather(giving, return_exceptions=True)
            assert 0 < sent < BOUND_BYTES


async def test_a_pod_that_reads_nothing_stops_the_client(master: Master, pod_end: PodEnd) -> None:
    async with opened(master, pod_end.port) as client:
        with await pod_end.accept():
            sent = 0

            async def give() -> None:
                nonlocal sent
                while True:
                    await client.send(bytes(64 * 1024))
                    sent += 64 * 1024

            giving = asyncio.create_task(give())
            await until_still(lambda: sent)
            giving.cancel()
            await asyncio.gather(giving, return_exceptions=True)
            assert 0 < sent < BOUND_BYTES


async def test_many_at_once_leave_nothing(master: Master, pod_end: PodEnd) -> None:
    async def answer(pod: socket.socket) -> None:
        with pod:
            await send(pod, await received(pod))
            pod.shutdown(socket.SHUT_WR)
            assert await received(pod) == b""

    async def serve(count: int) -> None:
        async with asyncio.TaskGroup() as answers:
            for _ in range(count):
                answers.create_task(answer(await pod_end.accept()))

    async def ask(number: int) -> None:
        async with opened(master, pod_end.port) as client:
            await client.send(b"%d" % number)
            assert await client.next() == Message(PortChannel.DATA, b"%d" % number)
            await client.end()
            assert await client.next() == ENDED
            assert await client.next() is None

    await asyncio.gather(serve(1), ask(0))
    tasks, descriptors = len(asyncio.all_tasks()), open_files_before()
    await asyncio.gather(serve(MANY), *(ask(number) for number in range(MANY)))
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks, "no tasks are left")
    await eventually(lambda: open_files() <= descriptors, "no descriptors are left")


async def test_an_address_of_the_other_kind(master: Master) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("needs IPv6")
    with listening(socket.AF_INET6, "::1") as end:
        async with opened(master, end.port) as client:
            with await end.accept() as pod:
                await send(pod, b"six")
                assert await client.next() == Message(PortChannel.DATA, b"six")


async def test_nobody_listens(master: Master, pod_end: PodEnd) -> None:
    port = pod_end.port
    pod_end._listening.close()
    async with opened(master, port) as client:
        message = await client.next()
        assert message is not None
        assert message.channel == PortChannel.ERROR
        assert message.data.decode() == f"error forwarding port {port} to pod web: Connection refused"
        assert await client.next() is None


async def test_nobody_can_reach_the_pod(master: Master, dialer: LocalDialer) -> None:
    dialer.problem = "the pod has gone"
    async with opened(master, 80) as client:
        message = await client.next()
        assert message is not None
        assert message.data.decode() == "error forwarding port 80 to pod web: the pod has gone"


async def test_a_connection_that_the_pod_resets(master: Master, pod_end: PodEnd) -> None:
    async with opened(master, pod_end.port) as client:
        with await pod_end.accept() as pod:
            pod.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        message = await client.next()
        assert message is not None
        assert message.data.decode().endswith("Connection reset by peer")


async def test_what_was_sent_before_an_end_arrives(master: Master, pod_end: PodEnd) -> None:
    """The pod ends first and reads slowly: what its side has not taken yet is not lost with the stream."""
    async with opened(master, pod_end.port) as client:
        with await pod_end.accept() as pod:
            pod.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            pod.shutdown(socket.SHUT_WR)
            assert await client.next() == ENDED

            async def give() -> None:
                for _ in range(16):
                    await client.send(bytes(16 * 1024))
                await client.end()

            giving = asyncio.create_task(give())
            taken = 0
            while piece := await received(pod, 4096):
                taken += len(piece)
            await giving
    assert taken == 16 * 16 * 1024


async def test_the_end_of_the_api_server_is_told(master: Master, pod_end: PodEnd) -> None:
    async with opened(master, pod_end.port) as client:
        with await pod_end.accept() as pod:
            master.feed(Shutdown())
            message = await client.next()
            assert message is not None
            assert message.data.decode().endswith("the agent's API server stops")
            assert await received(pod) == b""


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ([], "query parameter ports must be given once: a connection for each port; got 0"),
        (
            [("ports", "1"), ("ports", "2")],
            "query parameter ports must be given once: a connection for each port; got 2",
        ),
        ([("ports", "0")], "ports: 0 is not within 1..65535"),
        ([("ports", "65536")], "ports: 65536 is not within 1..65535"),
        ([("ports", "http")], "ports: 'http' is not a whole number"),
        ([("ports", "")], 'query parameter "ports" is required'),
    ],
)
async def test_what_is_asked_wrongly(master: Master, query: list[tuple[str, str]], words: str) -> None:
    assert await refusal(master, query) == (400, words)


async def test_a_sandbox_that_is_not_ready(tmp_path: Path) -> None:
    async with api_server(tmp_path) as master:
        master.ready(web(SandboxState.NOT_READY))
        assert await refusal(master, [("ports", "80")]) == (500, "sandbox container infra is not running")


async def refusal(master: Master, query: list[tuple[str, str]]) -> tuple[int, str]:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol": V5,
    }
    async with master.http.get(PATH, params=query, headers=headers) as response:
        return response.status, (await response.json())["message"]
