"""A service on a real socket that answers as a test wants, and the transport that asks it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from workers.kubecontainer.runtime import RuntimeCallError
from workers.libpod.client import CallLimits
from workers.podman import PodmanRuntime

OK = b"HTTP/1.1 200 OK\r\nLibpod-API-Version: 4.3.1\r\nContent-Length: 2\r\n\r\nOK"
Answer = Callable[[socket.socket, int], bool]
"""Gets a connection with a request read, and the number of that request; False closes the connection."""


@contextlib.contextmanager
def service(path: Path, answer: Answer, heads: list[str] | None = None) -> Iterator[list[str]]:
    """A service that answers every request by ``answer``; yields the request lines it got, keeps the whole heads."""
    requests: list[str] = []
    kept = heads if heads is not None else []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve(connection: socket.socket) -> None:
        with connection:
            while head := read_request(connection):
                kept.append(head)
                requests.append(head.split(" HTTP")[0])
                if not answer(connection, len(requests)):
                    return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        os.unlink(path)


def read_request(connection: socket.socket) -> str:
    """Head and body; empty at the end."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return ""
            data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    while len(body) < sum(lengths):
        body += connection.recv(65536)
    return head.decode()


@contextlib.asynccontextmanager
async def client(path: Path, request_timeout_s: float = 5.0) -> AsyncIterator[PodmanRuntime]:
    runtime = PodmanRuntime(str(path), "one", limits=CallLimits(request_timeout_s=request_timeout_s))
    try:
        yield runtime
    finally:
        await runtime.close()


def always_ok(connection: socket.socket, number: int) -> bool:
    connection.sendall(OK)
    return True


async def failure(call: Callable[[], Awaitable[object]]) -> RuntimeCallError:
    with pytest.raises(RuntimeCallError) as caught:
        await call()
    return caught.value
