"""One connection to Podman, and the pool, against services that say anything, at any time."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from ipc.link.wire.http_answer import TooLargeError
from tests.support.servers.local_servers import Handler, handling
from workers.libpod.connection import MAX_HEAD_BYTES, Connection, NothingSentError
from workers.libpod.connection_pool import MAX_KEPT, STARTING_POLL_S, ConnectionPool

pytestmark = pytest.mark.timeout(60)

REQUEST = b"GET / HTTP/1.1\r\nHost: d\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MAX_BYTES = 100_000
DEADLINE_S = 30.0

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Any:
    """The test twice: on the workers' loop and on asyncio's own."""

    @functools.wraps(test)
    def run(loop: str, **arguments: object) -> None:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(asyncio.wait_for(test(**arguments), DEADLINE_S))

    signature = inspect.signature(test)
    loop = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    shown: Any = pytest.mark.parametrize("loop", LOOPS)(run)
    shown.__signature__ = signature.replace(parameters=[loop, *signature.parameters.values()])
    return shown


class Service:
    """Says the same after each request."""

    def __init__(self, path: str, said: bytes, stays: bool) -> None:
        self.path = path
        self.said = said
        self.stays = stays
        self.requests = 0
        self.connections = 0
        self.open = 0
        self.changed = asyncio.Condition()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._count(connections=1, open=1)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await self._count(requests=1)
                writer.write(self.said)
                await writer.drain()
                if not self.stays:
                    return
        finally:
            await self._count(open=-1)

    async def _count(self, **more: int) -> None:
        async with self.changed:
            for name, number in more.items():
                setattr(self, name, getattr(self, name) + number)
            self.changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self.changed:
            await self.changed.wait_for(condition)


@contextlib.asynccontextmanager
async def service(directory: Path, said: bytes = OK, *, stays: bool = True) -> AsyncIterator[Service]:
    made = Service(str(directory / "s"), said, stays)
    async with listening(directory, made.handle):
        yield made


@contextlib.asynccontextmanager
async def listening(directory: Path, handle: Handler) -> AsyncIterator[None]:
    with bound(directory) as listener:
        async with handling(handle, sock=listener):
            yield


@contextlib.contextmanager
def bound(directory: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "s"))
        listener.listen()
        yield listener
    (directory / "s").unlink()


@contextlib.contextmanager
def pool_of(directory: Path) -> Iterator[ConnectionPool]:
    with contextlib.closing(ConnectionPool(str(directory / "s"))) as pool:
        yield pool


async def ask(pool: ConnectionPool, request: bytes = REQUEST, max_bytes: int = MAX_BYTES) -> tuple[int, bytes]:
    connection = await pool.begin(request)
    try:
        return await connection.head(), await connection.body(max_bytes)
    finally:
        pool.end(connection)


WHOLE = {
    "a length": (OK, 200, b"OK"),
    "chunks": (CHUNKED + b"2\r\nOK\r\n1;x=y\r\n!\r\n0\r\n\r\n", 200, b"OK!"),
    "chunks and a trailer": (CHUNKED + b"2\r\nOK\r\n0\r\nA: b\r\n\r\n", 200, b"OK"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, b""),
    "announced": (b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + OK, 200, b"OK"),
    "an error": (b"HTTP/1.1 500 E\r\nContent-Length: 3\r\n\r\nbad", 500, b"bad"),
    "nothing": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b""),
}
CLOSING = {
    "to the close": (b"HTTP/1.1 200 OK\r\n\r\nto the end", 200, b"to the end"),
    "to the close, empty": (b"HTTP/1.1 200 OK\r\n\r\n", 200, b""),
    "a farewell": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nOK", 200, b"OK"),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nOK", 200, b"OK"),
}
BROKEN = {
    "nothing at all": b"",
    "half a head": b"HTTP/1.1 200 O",
    "half a body": OK[:-1],
    "half a chunk": CHUNKED + b"5\r\nOK",
    "no last chunk": CHUNKED + b"2\r\nOK\r\n",
    "a chunk of no length": CHUNKED + b"zz\r\nOK\r\n0\r\n\r\n",
    "garbage": b"\x00\x01garbage\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "only an announcement": b"HTTP/1.1 100 Continue\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nOK",
    "a length and chunks": CHUNKED[:-2] + b"Content-Length: 2\r\n\r\n2\r\nOK\r\n0\r\n\r\n",
    "a length of 5000 digits": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nOK",
    "a folded head": b"HTTP/1.1 200 OK\r\n folded\r\n\r\n",
    "a giant head": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * MAX_HEAD_BYTES + b"\r\n",
    "a giant header": b"HTTP/1.1 200 OK\r\nA: " + b"b" * 10 * MAX_HEAD_BYTES + b"\r\n\r\n",
    "announcements for ever": b"HTTP/1.1 100 Continue\r\n\r\n" * MAX_HEAD_BYTES,
}


@pytest.mark.parametrize(("said", "status", "body"), WHOLE.values(), ids=WHOLE)
@on_both_loops
async def test_a_whole_answer_keeps_its_connection(tmp_path: Path, said: bytes, status: int, body: bytes) -> None:
    async with service(tmp_path, said) as podman:
        with pool_of(tmp_path) as pool:
            assert [await ask(pool) for _ in range(3)] == [(status, body)] * 3
            assert (podman.connections, podman.requests) == (1, 3)


@pytest.mark.parametrize(("said", "status", "body"), CLOSING.values(), ids=CLOSING)
@on_both_loops
async def test_an_answer_that_ends_the_connection(tmp_path: Path, said: bytes, status: int, body: bytes) -> None:
    async with service(tmp_path, said, stays=False) as podman:
        with pool_of(tmp_path) as pool:
            assert [await ask(pool) for _ in range(2)] == [(status, body)] * 2
        assert podman.connections == 2


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
@on_both_loops
async def test_an_answer_that_is_none_breaks_the_exchange(tmp_path: Path, said: bytes) -> None:
    async with service(tmp_path, said, stays=False):
        with pool_of(tmp_path) as pool, pytest.raises(ConnectionError) as failed:
            await ask(pool)
    assert not isinstance(failed.value, NothingSentError)
    assert len(str(failed.value)) < 200


@pytest.mark.parametrize("surplus", [b"x", b"\x00", OK, CHUNKED, b"HTTP/1.1 200 O", b"\r\n\r\n"])
@on_both_loops
async def test_surplus_bytes_never_become_the_next_answer(tmp_path: Path, surplus: bytes) -> None:
    async with service(tmp_path, OK + surplus):
        with pool_of(tmp_path) as pool:
            assert [await ask(pool) for _ in range(3)] == [(200, b"OK")] * 3


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000,
        CHUNKED + b"30000\r\n" + b"x" * 0x30000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000,
    ],
    ids=["a length", "chunks", "to the close"],
)
@on_both_loops
async def test_a_body_is_bounded(tmp_path: Path, said: bytes) -> None:
    async with service(tmp_path, said) as podman:
        with pool_of(tmp_path) as pool, pytest.raises(TooLargeError):
            await ask(pool, max_bytes=10_000)
        await podman.until(lambda: podman.open == 0)


@on_both_loops
async def test_bytes_one_by_one_are_the_same_answer(tmp_path: Path) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for byte in WHOLE["announced"][0]:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read(1)

    async with listening(tmp_path, drip):
        with pool_of(tmp_path) as pool:
            assert await ask(pool) == (200, b"OK")


@on_both_loops
async def test_a_kept_connection_that_its_service_has_left_is_not_used(tmp_path: Path) -> None:
    with pool_of(tmp_path) as pool:
        for _ in range(2):
            async with service(tmp_path, stays=False):
                assert await ask(pool, POST) == (200, b"OK")
        with pytest.raises(NothingSentError):
            await ask(pool)


@on_both_loops
async def test_a_connection_that_ends_between_the_look_and_the_request_has_taken_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the service had closed it in that moment: EPIPE says that no byte was sent, so the request is sent anew."""
    with bound(tmp_path) as listener, pool_of(tmp_path) as pool:
        loop = asyncio.get_running_loop()
        first = loop.create_task(ask(pool))
        with await accepted(listener) as peer:
            peer.sendall(OK)
            assert await first == (200, b"OK")
        monkeypatch.setattr(Connection, "is_open", True)
        second = loop.create_task(ask(pool, POST))
        with await accepted(listener) as peer:
            assert await asyncio.to_thread(peer.recv, 999) == POST
            peer.sendall(OK)
            assert await second == (200, b"OK")


@on_both_loops
async def test_so_many_connections_are_kept_and_no_more(tmp_path: Path) -> None:
    async with service(tmp_path) as podman:
        with pool_of(tmp_path) as pool:
            await asyncio.gather(*(ask(pool) for _ in range(3 * MAX_KEPT)))
            assert podman.connections == 3 * MAX_KEPT
            await podman.until(lambda: podman.open == MAX_KEPT)
            await asyncio.gather(*(ask(pool) for _ in range(MAX_KEPT)))
            assert podman.connections == 3 * MAX_KEPT
        await podman.until(lambda: podman.open == 0)


@on_both_loops
async def test_breaking_off_ends_every_exchange_under_way(tmp_path: Path) -> None:
    async with service(tmp_path, OK[:-1]) as podman:
        with pool_of(tmp_path) as pool:
            calls = [asyncio.create_task(ask(pool)) for _ in range(3)]
            await podman.until(lambda: podman.requests == 3)
            pool.break_off()
            results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [ConnectionResetError] * 3


@on_both_loops
async def test_a_request_that_is_not_read_waits_and_can_be_cancelled(tmp_path: Path) -> None:
    with bound(tmp_path) as listener, pool_of(tmp_path) as pool:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await ask(pool, b"x" * 10_000_000)
        with await accepted(listener) as peer:
            while await asyncio.to_thread(peer.recv, 1_000_000):
                pass


@pytest.mark.parametrize("loop", LOOPS)
@given(said=st.sampled_from([said for said, _, _ in (*WHOLE.values(), *CLOSING.values())]), cut=st.integers(0, 120))
def test_a_call_cancelled_at_any_moment_closes_its_connection(
    tmp_path_factory: pytest.TempPathFactory, loop: str, said: bytes, cut: int
) -> None:
    """An answer may have come in part: the service sees the end, and the next call gets the answer to its own."""
    begun = said[: min(cut, len(said) - 1)]
    directory = tmp_path_factory.mktemp("cancelled")

    async def scenario() -> None:
        numbers, sent, left = itertools.count(), asyncio.Event(), asyncio.Event()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            is_first = next(numbers) == 0
            await reader.readuntil(b"\r\n\r\n")
            writer.write(begun if is_first else OK)
            await writer.drain()
            if is_first:
                sent.set()
                with contextlib.suppress(ConnectionResetError):  # of what was not read
                    assert not await reader.read(1)
                left.set()

        async with listening(directory, handle):
            with pool_of(directory) as pool:
                call = asyncio.create_task(ask(pool))
                await sent.wait()
                for _ in range(cut % 5):
                    await asyncio.sleep(0)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                await left.wait()
                assert await ask(pool) == (200, b"OK")

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(asyncio.wait_for(scenario(), DEADLINE_S))


@given(data=st.data(), name=st.sampled_from(sorted(WHOLE)))
def test_an_answer_in_any_pieces_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    said, status, body = WHOLE[name]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(said)), max_size=6)))
    directory = tmp_path_factory.mktemp("pieces")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for begin, end in zip([0, *cuts], [*cuts, len(said)], strict=True):
            writer.write(said[begin:end])
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read(1)

    async def scenario() -> None:
        async with listening(directory, handle):
            with pool_of(directory) as pool:
                assert await ask(pool) == (status, body)

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))


async def accepted(listener: socket.socket) -> socket.socket:
    listener.settimeout(DEADLINE_S)
    peer, _ = await asyncio.to_thread(listener.accept)
    peer.settimeout(DEADLINE_S)
    return peer


@on_both_loops
async def test_a_service_that_has_just_been_started_is_waited_for(tmp_path: Path) -> None:
    with contextlib.closing(ConnectionPool(str(tmp_path / "s"), starting_s=DEADLINE_S)) as pool:
        asked = asyncio.create_task(ask(pool))
        await asyncio.sleep(3 * STARTING_POLL_S)
        assert not asked.done()
        async with service(tmp_path):
            assert await asked == (200, b"OK")


@on_both_loops
async def test_a_service_that_does_not_come_is_waited_for_once(tmp_path: Path) -> None:
    loop, starting_s = asyncio.get_running_loop(), 3 * STARTING_POLL_S
    with contextlib.closing(ConnectionPool(str(tmp_path / "s"), starting_s)) as pool:
        for waits in (True, False):
            began = loop.time()
            with pytest.raises(NothingSentError):
                await ask(pool)
            assert (loop.time() - began >= starting_s) is waits
