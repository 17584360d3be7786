"""Channels whose peers send what is no frame, no message, or no end."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import msgspec
import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from ipc.link.wire.channel import ChannelClosed, ProtocolError
from ipc.link.wire.framing import HEADER_BYTES, MAX_FRAME_BYTES, MAX_REASON_CHARS, encode_frame
from tests.support.channels import (
    Cancel,
    Done,
    Run,
    Stranger,
    Work,
    channel_and_raw,
    fill,
    frame_of,
    run_on,
    say,
    turns,
    until,
)

pytestmark = pytest.mark.timeout(30)


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
