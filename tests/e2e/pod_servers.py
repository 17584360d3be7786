"""Servers in an agent's pods that run in the test: a loop of their own in a thread, sockets from the agent's dialer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from tests.e2e.agent import Agent
from tests.e2e.status_observer import INFRA
from tests.support.pod_server import listen_in_pod, network_of
from tests.support.servers.health_server import NOT_SERVING, health
from tests.support.servers.local_servers import Handler, handling, request_of, response, server_context
from workers.dialer.client import DialerClient
from workers.podhttp.pod_network import PodNetwork

DEADLINE_S: Final = 20.0
LOOPBACK: Final = "127.0.0.1"

T = TypeVar("T")


class Web:
    """An HTTP server whose answers a test decides, and what it was asked."""

    def __init__(self, status: str = "200 OK", delay_s: float = 0.0) -> None:
        self.status = status
        self.headers: tuple[str, ...] = ()
        self.delay_s = delay_s
        self.heads: list[str] = []
        self.times: list[float] = []
        """In the loop's time: CLOCK_MONOTONIC seconds."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.times.append(asyncio.get_running_loop().time())
        self.heads.append((await request_of(reader)).decode())
        await asyncio.sleep(self.delay_s)
        writer.write(response(b"body", self.status, self.headers))


class Health:
    """A gRPC server whose answers a test decides."""

    def __init__(self, **statuses: int) -> None:
        self.statuses = {"": NOT_SERVING, **statuses}

    async def __call__(self, *streams: Any) -> None:
        await health(self.statuses)(*streams)


class Counted:
    """How many clients a server has had."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.clients = 0

    async def __call__(self, *streams: Any) -> None:
        self.clients += 1
        await self._handler(*streams)


def few(handler: Handler, clients: int, then: Handler) -> Handler:
    """The first clients are served so, those that come later otherwise."""
    arrivals = itertools.count()

    async def serve(*streams: Any) -> None:
        await (handler if next(arrivals) < clients else then)(*streams)

    return serve


class PodServers:
    """All servers of one agent's pods. They live as long as this, and as their pods' networks."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pod servers")
        self._thread.start()
        self._client = DialerClient(str(agent.socket.with_suffix(".dial.sock")))
        self._serving: dict[tuple[str, int], contextlib.AsyncExitStack] = {}
        """By pod and port."""
        self._networks: dict[str, PodNetwork] = {}
        """By pod. Another sandbox has another one, and in the old one's name nobody is dialled."""

    def serve(self, pod: str, port: int, handler: Handler, *, tls: bool = False, own_network: bool = True) -> None:
        """From now on, in that pod, which must run."""
        network = self._network(pod) if own_network else PodNetwork()
        stack = self._serving[pod, port] = contextlib.AsyncExitStack()
        self._run(self._serve(stack, network, port, handler, server_context() if tls else None))

    def connect_few(self, pod: str, port: int, clients: int) -> None:
        """Nobody serves there, but so many clients are connected; those that come later wait for it."""
        stack = self._serving[pod, port] = contextlib.AsyncExitStack()
        self._run(self._connect_few(stack, self._network(pod), port, clients))

    def stop(self, pod: str, port: int) -> None:
        """Stop the server that is there now; clients are refused from then on."""
        self._run(self._serving.pop((pod, port)).aclose())

    def close(self) -> None:
        for pod, port in tuple(self._serving):
            self.stop(pod, port)
        self._loop.call_soon_threadsafe(self._client.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.close()

    def _network(self, pod: str) -> PodNetwork:
        if pod not in self._networks:
            running = self._agent.eye.running()
            self._networks |= {name: network_of(seen.pid) for (name, kind), seen in running.items() if kind == INFRA}
        return self._networks[pod]

    async def _serve(
        self,
        stack: contextlib.AsyncExitStack,
        network: PodNetwork,
        port: int,
        handler: Handler,
        tls: ssl.SSLContext | None,
    ) -> None:
        listening = await listen_in_pod(self._client, network, port)
        await stack.enter_async_context(handling(handler, sock=listening, ssl=tls))

    async def _connect_few(
        self, stack: contextlib.AsyncExitStack, network: PodNetwork, port: int, clients: int
    ) -> None:
        """The kernel connects one client more than the backlog says, and nobody accepts; what comes later it drops."""
        ours = stack.enter_context(await self._client.socket(network, socket.AF_INET))
        stack.enter_context(await listen_in_pod(self._client, network, port, backlog=clients))
        ours.connect_ex((LOOPBACK, port))  # at once: a probe in between would be the client

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_S)
