"""Channels for the tests of links: messages, pairs of ends, and a peer that is a bare socket."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import msgspec

from ipc.link.wire.channel import SEND_HIGH_WATER_BYTES, Channel
from ipc.link.wire.framing import HEADER_BYTES, MAX_FRAME_BYTES, encode_frame

DEADLINE_S = 30.0
"""Every conversation in these tests ends within this."""
KERNEL_BYTES = 4 * 1024 * 1024
"""More than any socket buffer of these tests holds."""

T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class Work(msgspec.Struct, frozen=True, tag=True):
    number: int
    blob: bytes = b""


class Cancel(msgspec.Struct, frozen=True, tag=True):
    number: int


class Done(msgspec.Struct, frozen=True, tag=True):
    number: int
    anything: object = None


class Stranger(msgspec.Struct, frozen=True, tag=True):
    number: int = 0


Command = Work | Cancel
Master = Channel[Command, Done]
Worker = Channel[Done, Command]


Run = Callable[[Coroutine[Any, Any, T]], T]


def run_on(factory: LoopFactory, coroutine: Coroutine[Any, Any, T]) -> T:
    faults: list[dict[str, Any]] = []

    async def bounded() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        return await asyncio.wait_for(coroutine, DEADLINE_S)

    with asyncio.Runner(loop_factory=factory) as runner:
        result = runner.run(bounded())
    assert faults == [], "a callback failed behind everybody's back"
    return result


@contextmanager
def socket_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        yield ours, theirs


@asynccontextmanager
async def channel_pair() -> AsyncIterator[tuple[Master, Worker]]:
    with socket_pair() as (ours, theirs):
        master = await Channel.open(ours, Work | Cancel, Done)
        worker = await Channel.open(theirs, Done, Work | Cancel)
        try:
            yield master, worker
        finally:
            for end in (master, worker):
                end.close()
                await end.wait_closed()


@asynccontextmanager
async def channel_and_raw(max_frame_bytes: int = MAX_FRAME_BYTES) -> AsyncIterator[tuple[Master, socket.socket]]:
    """A channel whose peer is a bare non-blocking socket."""
    with socket_pair() as (ours, raw):
        raw.setblocking(False)
        master: Master = await Channel.open(ours, Work | Cancel, Done, max_frame_bytes=max_frame_bytes)
        try:
            yield master, raw
        finally:
            master.close()
            raw.close()
            await master.wait_closed()


def frame_of(msg: object) -> bytes:
    return encode_frame(msgspec.msgpack.encode(msg))


async def say(raw: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(raw, data)


async def read_messages(raw: socket.socket, count: int) -> list[Command]:
    decoder = msgspec.msgpack.Decoder(Work | Cancel)
    return [decoder.decode(await read_frame(raw)) for _ in range(count)]


async def read_frame(raw: socket.socket) -> bytes:
    (length,) = struct.unpack(">I", await read_exactly(raw, HEADER_BYTES))
    return await read_exactly(raw, length)


async def read_exactly(raw: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = await asyncio.get_running_loop().sock_recv(raw, count - len(data))
        assert piece, "the channel closed in the middle of a frame"
        data += piece
    return data


async def read_to_end(raw: socket.socket) -> bytes:
    data = bytearray()
    while piece := await asyncio.get_running_loop().sock_recv(raw, 1024 * 1024):
        data += piece
    return bytes(data)


async def turns(count: int = 20) -> None:
    """Let everything that is ready happen."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Turn the loop until the condition holds; the caller's deadline bounds it."""
    while not condition():  # noqa: ASYNC110 - conditions of the code under test, which announces none
        await asyncio.sleep(0)


async def fill(master: Master) -> int:
    """Post until the kernel takes no more and ``send`` would wait; how many messages that took."""
    count = 0
    while master.pending_bytes <= SEND_HIGH_WATER_BYTES:
        master.post(Work(count, bytes(100_000)))
        count += 1
        await turns(2)
    return count
