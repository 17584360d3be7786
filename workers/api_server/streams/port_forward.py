""".../pods/{name}/portforward: TCP connections into a pod, many on a SPDY connection, or one for each WebSocket.

The channels of a WebSocket are those of the kubelet's own protocol for one port (pkg/kubelet, cri-streaming
pkg/streaming/portforward websocket.go): data and error, of which each begins with the port's number in two bytes. What
is ours is that either side can end its data while the other goes on, with the close messages of v5. SPDY, alone or in a
WebSocket, has a pair of streams for each connection (`streams.port_pairs`). The address is the pod's own loopback,
IPv4 before IPv6, as CRI runtimes connect.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from typing import Final

import msgspec
from aiohttp import web

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState, SandboxStatus
from ipc.link.eventloop.loop_clock import loop_time
from ipc.link.messages.api_server import PodChanged
from ipc.link.wire.duplex import Duplex
from ipc.link.wire.stream_channels import CHUNK_BYTES, PortChannel
from workers.api_server.core.status_errors import ApiError
from workers.api_server.core.stream_sockets import STOPPING_WORDS, Channels, Ended
from workers.api_server.core.upgrades import PORTS, Carrier, Upgrade, negotiated
from workers.api_server.store.site import AppState
from workers.api_server.streams.port_pairs import Permits, PortPairs
from workers.api_server.streams.stream_target import forwarded_port
from workers.podhttp.endpoints import Endpoint, connect
from workers.podhttp.pod_network import DialError, PodNetwork, pod_network

CONNECT_TIMEOUT_S: Final = 10.0
"""For a socket in the pod's network and somebody there to accept its connection, in seconds."""

STOPPING_TIMEOUT_S: Final = 0.5
"""How long the connections of a SPDY client may take to tell it that the API server stops."""
MAX_CONNECTIONS: Final = 200
"""Most connections of all SPDY clients at once; each has a descriptor, of the usual 1024."""
MAX_STREAMS: Final = 2 * MAX_CONNECTIONS + 64
"""Most streams of one SPDY client at once: two for each connection, and some that are about to be opened."""

_LOOPBACK: Final = ("127.0.0.1", "::1")


class Forwarded(msgspec.Struct, frozen=True):
    """A pod whose ports are forwarded."""

    pod: str
    sandbox: SandboxStatus


class PortForward:
    """The handler."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._sockets = site.sockets
        self._dialer = site.dialer
        self._permits = Permits(MAX_CONNECTIONS)

    async def open(self, request: web.Request) -> web.StreamResponse:
        pod = (await self._site.pod(request)).message
        return await self.forward(request, pod, request.query.getall("ports", []))

    async def forward(self, request: web.Request, pod: PodChanged, ports: list[str]) -> web.StreamResponse:
        """Forward connections into the pod; ``ports`` are for a WebSocket, which has one. Raises ApiError."""
        upgrade = negotiated(request, PORTS)
        forwarded = Forwarded(pod.pod.metadata.name, ready_sandbox(pod))
        if upgrade.carrier is Carrier.WEBSOCKET:
            return await self._one(request, upgrade, forwarded, forwarded_port(ports))
        return await self._many(request, upgrade, forwarded)

    async def _one(self, request: web.Request, upgrade: Upgrade, forwarded: Forwarded, port: int) -> web.StreamResponse:
        async with self._sockets.websocket(request, upgrade.protocol) as client:
            for channel in PortChannel:
                await client.send(channel, port.to_bytes(2, "little"))
            await self._served(client, forwarded, port)
        return client.response

    async def _many(self, request: web.Request, upgrade: Upgrade, forwarded: Forwarded) -> web.StreamResponse:
        async with self._sockets.spdy(request, upgrade, MAX_STREAMS) as session:
            pairs = PortPairs(session, lambda pair: self._served(pair, forwarded, pair.port), self._permits)
            try:
                ended = await self._sockets.first_end(session, pairs.until_gone())
                if ended is Ended.STOPPING:
                    await pairs.until_done(STOPPING_TIMEOUT_S)
            finally:
                await pairs.close()
        return session.response

    async def _served(self, client: Channels, forwarded: Forwarded, port: int) -> None:
        problem = await self._forward(client, forwarded.sandbox, port)
        if problem:
            words = f"error forwarding port {port} to pod {forwarded.pod}: {problem}"
            await client.send(PortChannel.ERROR, words.encode())

    async def _forward(self, client: Channels, sandbox: SandboxStatus, port: int) -> str:
        """Forward until one side ends. Returns the error for people; empty when there was none."""
        try:
            connection = await self._connect(pod_network(RuntimePodStatus(uid="", sandboxes=(sandbox,))), port)
        except (DialError, OSError) as error:
            return _words(error)
        try:
            copy = _Copy(client, connection)
            ended = await self._sockets.first_end(client, copy.from_pod(), copy.to_pod())
        except OSError as error:
            return _words(error)
        finally:
            connection.close()
        return STOPPING_WORDS if ended is Ended.STOPPING else ""

    async def _connect(self, network: PodNetwork, port: int) -> Duplex:
        """Raises DialError and OSError, the one of the first address."""
        problem: OSError | None = None
        for host in _LOOPBACK:
            deadline = loop_time() + CONNECT_TIMEOUT_S
            try:
                return Duplex(await connect(self._dialer, Endpoint(network=network, host=host, port=port), deadline))
            except TimeoutError:
                raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
            except OSError as error:
                problem = problem or error
        assert problem is not None
        raise problem


class _Copy:
    """Both ways between one client and one connection into a pod."""

    def __init__(self, client: Channels, connection: Duplex) -> None:
        self._client = client
        self._connection = connection
        self._client_done = asyncio.Event()
        """The client sends nothing more."""

    async def from_pod(self) -> Ended:
        """Carry data from the pod until both sides have said that they are done. Raises ConnectionError when the pod's
        side broke off."""
        while data := await self._connection.read(CHUNK_BYTES):
            if not await self._sent(data):
                return Ended.CLIENT_GONE
        with contextlib.suppress(ConnectionError):  # it is gone
            await self._client.end(PortChannel.DATA)
        if self._client.half_closes:
            await self._client_done.wait()
        return Ended.FINISHED

    async def _sent(self, data: bytes) -> bool:
        try:
            await self._client.send(PortChannel.DATA, data)
        except ConnectionError:
            return False
        return True

    async def to_pod(self) -> Ended:
        """Pass on the client's bytes until it goes. Bytes that the pod does not take any more are dropped: `from_pod`
        hears of it when all that it has sent was read."""
        while (message := await self._client.receive()) is not None:
            if message.channel != PortChannel.DATA or self._client_done.is_set():
                continue
            try:
                if message.ends:
                    self._connection.end()
                    self._client_done.set()
                elif message.data:
                    await self._connection.write(message.data)
            except OSError:
                self._client_done.set()
        return Ended.CLIENT_GONE


def ready_sandbox(pod: PodChanged) -> SandboxStatus:
    """Raises ApiError 500 in the words of kubelet and CRI runtimes."""
    sandbox = pod.sandbox
    if sandbox is None:
        raise ApiError(500, f'pod not found ("{pod.pod.metadata.name}_{pod.pod.metadata.namespace}")')
    if sandbox.state is not SandboxState.READY:
        raise ApiError(500, f"sandbox container {sandbox.infra_id} is not running")
    return sandbox


def _words(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
