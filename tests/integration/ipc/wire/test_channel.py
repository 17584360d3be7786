from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from ipc.wire import channel as channel_module
from ipc.wire.channel import (
    CLOSE_LINGER_S,
    FRAME_COST_BYTES,
    MAX_PENDING_BYTES,
    READ_BYTES,
    RECEIVE_HIGH_WATER_BYTES,
    SEND_HIGH_WATER_BYTES,
    Channel,
    ChannelClosed,
    ChannelFull,
    FrameTooLarge,
    ProtocolError,
)
from ipc.wire.framing import HEADER_BYTES, MAX_FRAME_BYTES, MAX_REASON_CHARS, encode_frame

pytestmark = pytest.mark.timeout(30)

DEADLINE_S = 10.0
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


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine to its end on a fresh loop, within DEADLINE_S."""
    factory: LoopFactory = request.param
    return lambda coroutine: run_on(factory, coroutine)


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


# --- talking ---


def test_both_ways_in_order(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            for number in range(3):
                await master.send(Work(number))
            master.post(Cancel(3))
            await worker.send(Done(9))
            assert [await worker.receive() for _ in range(4)] == [Work(0), Work(1), Work(2), Cancel(3)]
            assert await master.receive() == Done(9)
            assert not master.closed

    run(conversation())


def test_a_text_that_is_no_unicode_is_escaped_on_its_way(run: Run[None]) -> None:
    """Instead of ending who passes it on; everything else of the message is as it was."""

    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            await worker.send(Done(1, anything={"text": "a\udcffb\u202e", "data": b"\xff", "none": None}))
            assert await master.receive() == Done(1, {"text": "a\\udcffb\u202e", "data": b"\xff", "none": None})

    run(conversation())


def test_iteration_ends_with_the_peer(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            for number in range(100):
                master.post(Work(number))
            master.close()
            assert [msg async for msg in worker] == [Work(number) for number in range(100)]
            assert await worker.receive() is None

    run(conversation())


def test_largest_message_passes(run: Run[None]) -> None:
    async def conversation() -> None:
        overhead = len(msgspec.msgpack.encode(Work(1, bytes(100_000)))) - 100_000
        largest = Work(1, bytes(MAX_FRAME_BYTES - overhead))
        async with channel_pair() as (master, worker):
            await master.send(largest)
            assert await worker.receive() == largest
            for send in (sender(master), poster(master)):
                with pytest.raises(FrameTooLarge):
                    await send(Work(1, largest.blob + b"1"))
            await master.send(Work(2))
            assert await worker.receive() == Work(2)

    run(conversation())


def sender(master: Master) -> Callable[[Command], Awaitable[None]]:
    return master.send


def poster(master: Master) -> Callable[[Command], Awaitable[None]]:
    async def post(msg: Command) -> None:
        master.post(msg)

    return post


def test_only_messages_of_the_link_can_be_sent(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_pair() as (master, _):
            for send in (sender(master), poster(master)):
                with pytest.raises(TypeError, match="Stranger"):
                    await send(Stranger())  # type: ignore[arg-type]
            assert master.pending_bytes == 0

    run(conversation())


def test_posts_of_one_turn_leave_in_one_write(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            for number in range(50):
                master.post(Work(number))
            await master.send(Cancel(50))
            expected = b"".join(frame_of(msg) for msg in [*(Work(number) for number in range(50)), Cancel(50)])
            assert master.pending_bytes == len(expected)
            with pytest.raises(BlockingIOError):
                raw.recv(1)
            await until(lambda: master.pending_bytes == 0)
            assert raw.recv(len(expected) + 1) == expected

    run(conversation())


# --- back-pressure ---


def test_send_waits_for_a_slow_reader_and_loses_nothing(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            blob = bytes(100_000)
            count = (KERNEL_BYTES + SEND_HIGH_WATER_BYTES) // len(blob) + 20
            sent: list[int] = []

            async def send_all() -> None:
                for number in range(count):
                    await master.send(Work(number, blob))
                    sent.append(number)

            task = asyncio.create_task(send_all())
            await turns(10 * count)
            assert len(sent) < count
            assert master.pending_bytes <= SEND_HIGH_WATER_BYTES + len(blob) + 100
            assert await read_messages(raw, count) == [Work(number, blob) for number in range(count)]
            await task

    run(conversation())


def test_concurrent_senders_keep_frames_whole_and_their_own_order(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            senders, each = 20, 15

            async def send_some(start: int) -> None:
                for number in range(start, start + each):
                    await master.send(Work(number, bytes(20_000 + number)))

            tasks = [asyncio.create_task(send_some(start)) for start in range(0, senders * each, each)]
            await until(lambda: master.pending_bytes > SEND_HIGH_WATER_BYTES)
            received: list[Command] = []
            for _ in range(senders * each):
                received += await read_messages(raw, 1)
                assert master.pending_bytes <= SEND_HIGH_WATER_BYTES + 2 * 20_000, "they all went at once"
            await asyncio.gather(*tasks)
            assert all(msg == Work(msg.number, bytes(20_000 + msg.number)) for msg in received)
            for start in range(0, senders * each, each):
                own = [msg.number for msg in received if start <= msg.number < start + each]
                assert own == list(range(start, start + each))

    run(conversation())


async def fill(master: Master) -> int:
    """Post until the kernel takes no more and ``send`` would wait; how many messages that took."""
    count = 0
    while master.pending_bytes <= SEND_HIGH_WATER_BYTES:
        master.post(Work(count, bytes(100_000)))
        count += 1
        await turns(2)
    return count


def test_cancelled_send_sends_nothing_and_blocks_nobody(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            count = await fill(master)
            tasks = [asyncio.create_task(master.send(Cancel(number))) for number in range(3)]
            await turns()
            tasks[0].cancel()
            tasks[1].cancel()
            await turns()
            assert [task.done() for task in tasks] == [True, True, False]
            received = await read_messages(raw, count + 1)
            await tasks[2]
            assert received[count:] == [Cancel(2)]
            assert master.pending_bytes == 0

    run(conversation())


def test_newcomer_does_not_overtake_waiting_senders(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            count = await fill(master)
            waiting = [asyncio.create_task(master.send(Cancel(number))) for number in range(3)]
            await turns()
            draining = asyncio.create_task(read_messages(raw, count + 4))
            # The moment between "there is room" and the first waiter's wake-up.
            await until(master._room.is_set)
            await master.send(Cancel(3))
            received = await draining
            await asyncio.gather(*waiting)
            assert received[count:] == [Cancel(number) for number in range(4)]

    run(conversation())


def test_post_is_bounded(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            blob = bytes(MAX_FRAME_BYTES // 2)
            posted = 0
            while master.pending_bytes + len(blob) + 100 < MAX_PENDING_BYTES:
                master.post(Work(posted, blob))
                posted += 1
                await turns(2)
            with pytest.raises(ChannelFull, match=str(MAX_PENDING_BYTES)):
                master.post(Work(posted, blob))
            assert MAX_PENDING_BYTES - len(blob) - 100 < master.pending_bytes <= MAX_PENDING_BYTES
            assert await read_messages(raw, posted) == [Work(number, blob) for number in range(posted)]
            master.post(Cancel(1))
            assert await read_messages(raw, 1) == [Cancel(1)]

    run(conversation())


def test_reading_pauses_while_nobody_receives(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            count = 2000
            stream = b"".join(frame_of(Done(number, "x" * 5000)) for number in range(count))
            assert len(stream) > 2 * (RECEIVE_HIGH_WATER_BYTES + KERNEL_BYTES // 2)
            said = asyncio.create_task(say(raw, stream))
            await turns(2000)
            assert not said.done()
            assert sum(map(len, master._frames)) <= RECEIVE_HIGH_WATER_BYTES + READ_BYTES + 5100
            received = [await master.receive() for _ in range(count)]
            await said
            assert [msg.number for msg in received if msg is not None] == list(range(count))

    run(conversation())


def test_tiny_frames_are_not_free(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            tiny = encode_frame(b"\x01")
            said = asyncio.create_task(say(raw, tiny * 1_000_000))
            await turns(500)
            assert not said.done()
            assert len(master._frames) <= RECEIVE_HIGH_WATER_BYTES // FRAME_COST_BYTES + READ_BYTES // len(tiny) + 1
            with pytest.raises(ProtocolError):
                await master.receive()
            await asyncio.gather(said, return_exceptions=True)

    run(conversation())


# --- ends ---


def test_peer_death_still_delivers_what_it_sent(run: Run[None]) -> None:
    """Our write fails first (the peer is gone), its last words are read afterwards."""

    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            raw.sendall(frame_of(Done(1)) + frame_of(Done(2)))
            raw.close()
            master.post(Work(1))
            master._write()
            with pytest.raises(ChannelClosed, match="peer is gone"):
                master.post(Work(2))
            with pytest.raises(ChannelClosed):
                await master.send(Work(2))
            assert [msg async for msg in master] == [Done(1), Done(2)]
            assert not master.closed

    run(conversation())


def test_reset_is_the_end_and_not_an_error(run: Run[None]) -> None:
    """The kernel answers ECONNRESET when the peer went without reading everything."""

    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            await master.send(Work(1))
            await until(lambda: master.pending_bytes == 0)
            raw.close()
            assert await master.receive() is None

    run(conversation())


def test_peer_death_wakes_waiting_senders(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            await fill(master)
            tasks = [asyncio.create_task(master.send(Cancel(number))) for number in range(3)]
            await turns()
            raw.close()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(result) for result in results] == [ChannelClosed] * 3
            assert master.pending_bytes == 0

    run(conversation())


def test_close_wakes_everybody(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, _):
            receivers = [asyncio.create_task(master.receive()) for _ in range(2)]
            await fill(master)
            senders = [asyncio.create_task(master.send(Cancel(number))) for number in range(2)]
            await turns()
            master.close()
            assert master.closed
            results = await asyncio.gather(*receivers, *senders, return_exceptions=True)
            assert results[:2] == [None, None]
            assert [type(result) for result in results[2:]] == [ChannelClosed] * 2
            with pytest.raises(ChannelClosed, match="channel is closed"):
                master.post(Cancel(1))

    run(conversation())


def test_close_writes_what_is_pending(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            messages = [Work(number, bytes(100_000)) for number in range(60)]
            for msg in messages:
                master.post(msg)
            master.close()
            master.close()
            assert await read_to_end(raw) == b"".join(frame_of(msg) for msg in messages)
            await master.wait_closed()

    run(conversation())


def test_close_does_not_wait_for_ever(run: Run[None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "CLOSE_LINGER_S", CLOSE_LINGER_S / 20)

    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            await fill(master)
            master.close()
            assert master.pending_bytes > 0
            await master.wait_closed()
            assert master.pending_bytes == 0
            assert len(await read_to_end(raw)) > 0

    run(conversation())


def test_close_drops_what_was_not_received(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            await say(raw, frame_of(Done(1)))
            await until(lambda: master._frames_bytes > 0)
            master.close()
            assert await master.receive() is None
            await master.wait_closed()

    run(conversation())


# --- hostile peers ---


def deep(levels: int) -> bytes:
    encode = msgspec.msgpack.encode
    return b"\x82" + encode("type") + encode("Done") + encode("anything") + b"\x91" * levels


HOSTILE_STREAMS = {
    "garbage payload": encode_frame(b"\xc1\xc1\xc1"),
    "wrong tag": frame_of(Stranger()),
    "a command sent back": frame_of(Work(1)),
    "long wrong tag": encode_frame(b"\x81" + msgspec.msgpack.encode("type") + msgspec.msgpack.encode("x" * 100_000)),
    "deep nesting": encode_frame(deep(1_000_000)),
    "zero length": bytes(4),
    "huge length": b"\xff\xff\xff\xff",
    "length one over": (MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
    "http": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("stream", HOSTILE_STREAMS.values(), ids=HOSTILE_STREAMS.keys())
def test_hostile_stream_closes_the_channel(run: Run[None], stream: bytes) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            said = asyncio.create_task(say(raw, frame_of(Done(1)) + stream))
            assert await master.receive() == Done(1)
            for _ in range(2):
                with pytest.raises(ProtocolError) as caught:
                    await master.receive()
                assert 0 < len(str(caught.value)) <= MAX_REASON_CHARS
                assert str(caught.value).isprintable()
            assert master.closed
            await master.wait_closed()
            with pytest.raises(ChannelClosed):
                await master.send(Work(1))
            await asyncio.gather(said, return_exceptions=True)

    run(conversation())


def test_nothing_after_a_bad_message_is_delivered(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            await say(raw, frame_of(Stranger()) + frame_of(Done(1)))
            for _ in range(2):
                with pytest.raises(ProtocolError):
                    await master.receive()

    run(conversation())


def test_bad_frame_wakes_waiting_senders(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            await fill(master)
            task = asyncio.create_task(master.send(Cancel(1)))
            await turns()
            await say(raw, bytes(4))
            with pytest.raises(ChannelClosed):
                await task
            with pytest.raises(ProtocolError):
                await master.receive()

    run(conversation())


def test_stream_cut_at_every_byte(run: Run[None]) -> None:
    messages = [Done(1), Done(2, "some text")]
    stream = b"".join(frame_of(msg) for msg in messages)
    borders = {len(b"".join(frame_of(msg) for msg in messages[:count])): count for count in range(3)}

    async def cut_at(length: int) -> None:
        async with channel_and_raw() as (master, raw):
            await say(raw, stream[:length])
            raw.close()
            whole = max(count for border, count in borders.items() if border <= length)
            assert [await master.receive() for _ in range(whole)] == messages[:whole]
            if length in borders:
                assert await master.receive() is None
            else:
                with pytest.raises(ProtocolError, match="inside a frame"):
                    await master.receive()

    async def conversation() -> None:
        for length in range(len(stream) + 1):
            await cut_at(length)

    run(conversation())


def test_slow_drip_is_only_slow(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            task = asyncio.create_task(master.receive())
            for byte in frame_of(Done(1, "drip")):
                assert not task.done()
                await say(raw, bytes([byte]))
                await turns(3)
            assert await task == Done(1, "drip")

    run(conversation())


def test_endless_frame_takes_no_more_than_its_own_size(run: Run[None]) -> None:
    maximum = 100_000

    async def conversation() -> None:
        async with channel_and_raw(maximum) as (master, raw):
            await say(raw, maximum.to_bytes(4, "big") + bytes(maximum - 1))
            await until(lambda: master._cutter.buffered_bytes == HEADER_BYTES + maximum - 1)
            await say(raw, bytes(1) + (maximum + 1).to_bytes(4, "big"))
            with pytest.raises(ProtocolError):
                await master.receive()
            assert master._cutter.buffered_bytes == 0

    run(conversation())


pieces = st.binary(max_size=40) | st.integers(0, 100).map(lambda number: frame_of(Done(number)))


@settings(max_examples=60, deadline=None)
@given(st.lists(pieces, max_size=6).map(b"".join), st.lists(st.integers(0, 200), max_size=5))
def test_random_stream_ends_in_messages_and_one_verdict(stream: bytes, cuts: list[int]) -> None:
    borders = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            for start, end in pairwise(borders):
                try:
                    await say(raw, stream[start:end])
                except BrokenPipeError:
                    break  # The channel has seen enough.
                await turns(2)
            raw.close()
            try:
                assert all(isinstance(msg, Done) for msg in [msg async for msg in master])
            except ProtocolError:
                assert master.closed

    run_on(uvloop.new_event_loop, conversation())


# --- opening ---


def test_other_sockets_are_refused_and_stay_open(run: Run[None]) -> None:
    async def conversation() -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            with pytest.raises(ValueError, match="SOCK_STREAM"):
                await Channel.open(ours, Work, Done)
            assert ours.fileno() >= 0

    run(conversation())


@pytest.mark.parametrize("maximum", [0, -1, MAX_PENDING_BYTES])
def test_frame_maximum_must_be_sendable(run: Run[None], maximum: int) -> None:
    async def conversation() -> None:
        with socket_pair() as (ours, _):
            with pytest.raises(ValueError, match="max_frame_bytes"):
                await Channel.open(ours, Work, Done, max_frame_bytes=maximum)
            assert ours.fileno() >= 0

    run(conversation())


# --- messages that wait for others ---


def test_lazy_messages_leave_with_the_next_one_in_order(run: Run[None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "LAZY_S", 1e6)

    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            await master.send(Work(0), lazy=True)
            master.post(Work(1), lazy=True)
            await turns()
            with pytest.raises(BlockingIOError):
                raw.recv(1)
            master.post(Cancel(2))
            await turns()
            assert raw.recv(KERNEL_BYTES) == b"".join(map(frame_of, (Work(0), Work(1), Cancel(2))))
            assert master.pending_bytes == 0

    run(conversation())


def test_lazy_messages_leave_alone_after_a_while(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            for number in range(2):
                await worker.send(Done(number), lazy=True)
                assert await master.receive() == Done(number)

    run(conversation())


def test_a_lazy_message_is_written_before_its_sender_closes(run: Run[None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "LAZY_S", 1e6)

    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            await worker.send(Done(1), lazy=True)
            worker.close()
            await worker.wait_closed()
            assert await master.receive() == Done(1)
            assert await master.receive() is None

    run(conversation())


def test_a_sender_of_many_lazy_messages_waits_for_room_no_longer_than_for_the_write(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            sending = asyncio.gather(*(worker.send(Done(n, bytes(SEND_HIGH_WATER_BYTES)), lazy=True) for n in range(3)))
            for number in range(3):
                done = await master.receive()
                assert done is not None
                assert done.number == number
            await sending

    run(conversation())


def test_a_channel_that_closes_with_lazy_messages_for_a_peer_that_is_gone(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            master.post(Work(0), lazy=True)
            raw.close()
            assert await master.receive() is None
            assert master.pending_bytes == 0

    run(conversation())
