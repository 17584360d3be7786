"""HTTP clients for Podman's socket side by side: CPU of one call, and the memory that a process has from them.

    python -m tests.bench.http_clients [--calls 2000] [--rounds 5]

A server in a process of its own answers every request with the same inspect, in chunks, as Podman does. ``httptools``
is what is used (`workers.libpod.connection_pool`); ``h11`` is such a connection with the other parser, ``aiohttp`` its
client with a kept connection, ``podman-py`` its ``PodmanClient.api`` in a thread, as it was once used for every call.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import platform
import resource
import socket
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import orjson
import psutil
import uvloop

import workers.main
from ipc.libpod.endpoints import API_VERSION, INSPECT_CONTAINER, ROOT
from tests.bench.apart import apart
from workers.libpod import decode
from workers.libpod.client import Request, message
from workers.libpod.connection_pool import ConnectionPool

KIB: Final = 1024
MAX_BYTES: Final = 1024 * KIB
READ_BYTES: Final = 64 * KIB
PATH: Final = INSPECT_CONTAINER.at("x")
TARGET: Final = f"{ROOT}{PATH}"
REQUEST: Final = Request(endpoint=INSPECT_CONTAINER, name="x")

Call = Callable[[], Awaitable[bytes]]
Client = Callable[[str], contextlib.AbstractAsyncContextManager[Call]]


# Clients


@contextlib.asynccontextmanager
async def by_httptools(path: str) -> AsyncIterator[Call]:
    async def call() -> bytes:
        async with asyncio.timeout(30.0):
            connection = await pool.begin(message(REQUEST))
            try:
                assert await connection.head() == 200
                return await connection.body(MAX_BYTES)
            finally:
                pool.end(connection)

    with contextlib.closing(ConnectionPool(path)) as pool:
        yield call


@contextlib.asynccontextmanager
async def by_h11(path: str) -> AsyncIterator[Call]:
    import h11

    loop = asyncio.get_running_loop()
    asked = h11.Request(method="GET", target=TARGET, headers=[("Host", "d"), ("Content-Type", "application/json")])
    spoken = h11.Connection(h11.CLIENT)

    async def next_event() -> object:
        while (event := spoken.next_event()) is h11.NEED_DATA:
            spoken.receive_data(await loop.sock_recv(sock, READ_BYTES))
        return event

    async def call() -> bytes:
        async with asyncio.timeout(30.0):
            await loop.sock_sendall(sock, spoken.send(asked) or b"")
            spoken.send(h11.EndOfMessage())
            assert isinstance(await next_event(), h11.Response)
            kept = []
            while isinstance(event := await next_event(), h11.Data):
                kept.append(event.data)
            spoken.start_next_cycle()
            return b"".join(kept)

    with socket.socket(socket.AF_UNIX) as sock:
        sock.setblocking(False)
        sock.connect(path)
        yield call


@contextlib.asynccontextmanager
async def by_aiohttp(path: str) -> AsyncIterator[Call]:
    import aiohttp

    async def call() -> bytes:
        async with session.get(f"http://d{TARGET}") as answer:
            assert answer.status == 200
            return await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session:
        yield call


@contextlib.asynccontextmanager
async def by_podman_py(path: str) -> AsyncIterator[Call]:
    from podman import PodmanClient

    loop = asyncio.get_running_loop()

    def block() -> bytes:
        answer = podman.api.get(PATH, timeout=(5.0, 30.0))
        assert answer.status_code == 200
        return bytes(answer.content)

    async def call() -> bytes:
        return await loop.run_in_executor(threads, block)

    podman = PodmanClient(base_url=f"unix://{path}", version=API_VERSION)
    with ThreadPoolExecutor(4) as threads, contextlib.closing(podman.api):
        yield call


CLIENTS: Final[Mapping[str, Client]] = {
    "httptools": by_httptools,
    "h11": by_h11,
    "aiohttp": by_aiohttp,
    "podman-py": by_podman_py,
}


# Figures


def cpu_us(client: Client, path: str, calls: int) -> float:
    """CPU time of a call and of decoding its answer, in a process of its own."""

    async def run() -> float:
        async with client(path) as call:
            for _ in range(calls // 10):
                await call()
            began = _cpu_s()
            for _ in range(calls):
                decode.decode_container(await call())
            return 1e6 * (_cpu_s() - began) / calls

    return _in_a_child(run)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)  # every thread of the process
    return used.ru_utime + used.ru_stime


def pss_kib(client: Client | None, path: str) -> float:
    """Memory of a process forked from one that has imported what every worker has, after twenty calls (or none)."""

    async def run() -> float:
        if client is not None:
            async with client(path) as call:
                for _ in range(20):
                    decode.decode_container(await call())
                return _pss_kib()
        return _pss_kib()

    return _in_a_child(run)


def _pss_kib() -> float:
    return float(psutil.Process().memory_full_info().pss / KIB)


# Processes


def _in_a_child(run: Callable[[], Coroutine[None, None, float]]) -> float:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, str(uvloop.run(run())).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    os.waitpid(pid, 0)
    return float(text)


class _Server(asyncio.Protocol):
    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's is none of asyncio's classes

    def data_received(self, data: bytes) -> None:
        """Requests without bodies."""
        *asked, self._asked = (self._asked + data).split(b"\r\n\r\n")
        self._transport.write(self._answer * len(asked))


@contextlib.contextmanager
def podman(body: bytes) -> Iterator[str]:
    """Path of a socket on which every request is answered so."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: Libpod/4.3.1 (linux)\r\n"
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        made = await loop.create_unix_server(
            lambda: _Server(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks), sock=listening
        )
        await made.serve_forever()

    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{directory}/s")
        listening.listen()
        with apart(serve):
            yield f"{directory}/s"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.http_clients", description=__doc__)
    parser.add_argument("--calls", type=int, default=2000, help="calls of each client in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--answer", type=Path, help="a JSON file, instead of a recorded inspect")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {workers.main.__name__} imported before the forks")
    with podman(options.answer.read_bytes() if options.answer else recorded_inspect()) as path:
        bare = statistics.median(pss_kib(None, path) for _ in range(options.rounds))
        turns = [
            {name: (cpu_us(client, path, options.calls), pss_kib(client, path) - bare) for name, client in turn}
            for turn in [CLIENTS.items()] * options.rounds
        ]
    for name in CLIENTS:
        cpu, pss = zip(*(turn[name] for turn in turns), strict=True)
        print(f"{name:10} CPU of a call {_spread(cpu)} µs; memory {_spread(pss)} KiB PSS")


def recorded_inspect() -> bytes:
    """As Podman 4.3.1 answers for one of our containers."""
    templates = orjson.loads((Path(__file__).parents[1] / "fakes" / "libpod_answers.json").read_bytes())
    return orjson.dumps(templates["inspect"])


def _spread(figures: Sequence[float]) -> str:
    return f"{statistics.median(figures):.0f} ({min(figures):.0f} to {max(figures):.0f})"


if __name__ == "__main__":
    main()
