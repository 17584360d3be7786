"""Channels: conversations, back-pressure, ends, opening."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from ipc.link.wire import channel as channel_module
from ipc.link.wire.channel import (
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
from ipc.link.wire.framing import MAX_FRAME_BYTES, encode_frame
from tests.support.channels import (
    KERNEL_BYTES,
    Cancel,
    Command,
    Done,
    Master,
    Run,
    Stranger,
    Work,
    channel_and_raw,
    channel_pair,
    fill,
    frame_of,
    read_messages,
    read_to_end,
    say,
    socket_pair,
    turns,
    until,
)

pytestmark = pytest.mark.timeout(30)


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
