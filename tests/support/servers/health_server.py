"""A gRPC health server on h2, and what it may do instead of answering."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import h2.config
import h2.connection
import h2.events

from tests.support.servers.local_servers import Handler

NOT_FOUND: Final = "5"
UNKNOWN, SERVING, NOT_SERVING, SERVICE_UNKNOWN = range(4)
GRPC_HEAD: Final = ((":status", "200"), ("content-type", "application/grpc"))

Server = h2.connection.H2Connection
Reply = Callable[[Server, int, bytes], None]
"""Answers the request with that message on that stream."""


class Heard:
    """The last request."""

    headers: Mapping[str, str]
    message: bytes


def health(statuses: Mapping[str, int], heard: Heard | None = None) -> Handler:
    """Answers as grpc-go's health server does."""

    def reply(server: Server, stream: int, message: bytes) -> None:
        service = message[2:].decode()  # a tag and a length before it
        if service in statuses:
            answer(bytes([8, statuses[service]]))(server, stream, message)
        else:
            failing(NOT_FOUND, "unknown service")(server, stream, message)

    return speaking(reply, heard)


def answer(message: bytes, flag: int = 0, status: str = "0") -> Reply:
    def reply(server: Server, stream: int, _message: bytes) -> None:
        server.send_headers(stream, GRPC_HEAD)
        data = bytes([flag]) + len(message).to_bytes(4, "big") + message
        while data:
            part = data[: min(server.local_flow_control_window(stream), server.max_outbound_frame_size)]
            data = data[len(part) :]
            server.send_data(stream, part)
            if not server.local_flow_control_window(stream):
                return
        server.send_headers(stream, [("grpc-status", status)], end_stream=True)

    return reply


def failing(status: str, message: str | bytes, head: Sequence[tuple[str, str]] = GRPC_HEAD) -> Reply:
    """Only trailers."""

    def reply(server: Server, stream: int, _message: bytes) -> None:
        server.send_headers(stream, [*head, ("grpc-status", status), ("grpc-message", message)], end_stream=True)

    return reply


def plain(status: str, kind: str | bytes = "text/html") -> Reply:
    """A web server that knows HTTP/2 and no gRPC."""

    def reply(server: Server, stream: int, _message: bytes) -> None:
        server.send_headers(stream, [(":status", status), ("content-type", kind)])
        server.send_data(stream, b"<html>", end_stream=True)

    return reply


def speaking(reply: Reply, heard: Heard | None = None, more: Callable[[Server], None] = lambda server: None) -> Handler:
    """HTTP/2, and this reply to every request; ``more`` is called after whatever the client has sent."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = Server(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        server.initiate_connection()
        message = b""
        writer.write(server.data_to_send())
        while data := await reader.read(65536):
            for event in server.receive_data(data):
                if isinstance(event, h2.events.RequestReceived) and heard is not None:
                    heard.headers = {str(name): str(value) for name, value in event.headers}
                if isinstance(event, h2.events.DataReceived):
                    message += event.data or b""
                if isinstance(event, h2.events.StreamEnded):
                    if heard is not None:
                        heard.message = message
                    reply(server, event.stream_id or 0, message[5:])
            more(server)
            writer.write(server.data_to_send())
            await writer.drain()

    return handler
