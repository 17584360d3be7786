"""The connections to forwarded ports: each is one stream to the agent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Final

import click
import msgspec

from ipc.link.eventloop.tasks import first_error, first_of
from ipc.link.wire.duplex import Duplex
from ipc.link.wire.stream_channels import CHUNK_BYTES, ChannelSocket, PortChannel
from supervisor.cli.streams.forwarded_ports import ForwardedPort
from supervisor.client.errors import AgentError
from supervisor.client.websocket import StreamClient

MAX_CONNECTIONS: Final = 200
"""Most at once; the next ones wait. The agent has as many for everybody."""
PORT_BYTES: Final = 2
"""Each channel begins with the port's number."""


class Listener(msgspec.Struct, frozen=True):
    """A socket that listens, and what it stands for."""

    sock: socket.socket
    port: ForwardedPort
    """With the port that was really taken."""


class Forwarding:
    """All connections of one command."""

    def __init__(self, socket_path: Path, path: str, listeners: list[Listener]) -> None:
        self._socket_path = socket_path
        self._path = path
        self._listeners = listeners
        self._turns = asyncio.Semaphore(MAX_CONNECTIONS)

    async def run(self) -> None:
        """Forward connections for ever. Raises OSError when nothing can be accepted or told any more."""
        try:
            client = StreamClient(self._socket_path)
            async with asyncio.TaskGroup() as tasks:
                for listener in self._listeners:
                    tasks.create_task(self._accept(listener, client, tasks))
        except* OSError as group:
            raise first_error(group) from None

    async def _accept(self, listener: Listener, client: StreamClient, tasks: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        while True:
            sock, _ = await loop.sock_accept(listener.sock)
            await self._turns.acquire()
            tasks.create_task(self._serve(sock, listener.port, client))

    async def _serve(self, sock: socket.socket, port: ForwardedPort, client: StreamClient) -> None:
        try:
            with contextlib.closing(sock):
                click.echo(f"Handling connection for {port.local}")
                problem = await self._forward(sock, port, client)
                if problem:
                    click.echo(
                        f"error: an error occurred forwarding {port.local} -> {port.remote}: {problem}", err=True
                    )
        finally:
            self._turns.release()

    async def _forward(self, sock: socket.socket, port: ForwardedPort, client: StreamClient) -> str:
        """Forward one connection; the problem, for people. With a problem the connection is reset, as if the pod had
        done so."""
        connection = Duplex(sock)
        try:
            async with client.opened(self._path, [("ports", str(port.remote))]) as channels:
                problem = await _copy(channels, connection)
        except AgentError as error:
            problem = str(error)
        if problem:
            connection.reset()
        return problem


async def _copy(channels: ChannelSocket, connection: Duplex) -> str:
    """Copy both ways until one ends; the problem, for people."""
    return await first_of(_from_pod(channels, connection), _to_pod(channels, connection))


async def _to_pod(channels: ChannelSocket, connection: Duplex) -> str:
    """Copy the client's data and its end to the pod; returns, with no problem to tell, only when the connection broke
    off."""
    try:
        while data := await connection.read(CHUNK_BYTES):
            await channels.send(PortChannel.DATA, data)
        await channels.end(PortChannel.DATA)
    except OSError:
        return ""
    await asyncio.Event().wait()
    raise AssertionError("for ever")


async def _from_pod(channels: ChannelSocket, connection: Duplex) -> str:
    """Copy the pod's data to the client, to the end of both ways; the problem that the agent tells."""
    headers = {int(channel): PORT_BYTES for channel in PortChannel}
    ended = False
    while (message := await channels.receive()) is not None:
        data = message.data[headers.get(message.channel, 0) :]
        headers[message.channel] = max(0, headers.get(message.channel, 0) - len(message.data))
        if message.channel == PortChannel.ERROR and data:
            return data.decode(errors="replace")
        if message.channel == PortChannel.DATA:
            ended = ended or message.ends
            try:
                await _pass_on(connection, data, ends=message.ends)
            except OSError:
                return ""  # whoever connected has gone
    return "" if ended else "lost connection to the agent's API server"


async def _pass_on(connection: Duplex, data: bytes, *, ends: bool) -> None:
    if ends:
        connection.end()
    elif data:
        await connection.write(data)
