from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.link.wire.framing import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    MAX_REASON_CHARS,
    FrameDecoder,
    FrameError,
    FrameTooLarge,
    ProtocolError,
    decode_message,
    encode_frame,
)

SMALL_MAX_BYTES = 64
"""A small maximum, so that random lengths fall on both sides of it."""


class Ping(msgspec.Struct, frozen=True, tag=True):
    text: str
    numbers: tuple[int, ...] = ()
    anything: object = None


class Pong(msgspec.Struct, frozen=True, tag=True):
    number: int


DECODER = msgspec.msgpack.Decoder(Ping | Pong)

payloads = st.lists(st.binary(min_size=1, max_size=SMALL_MAX_BYTES), max_size=8)
headers = st.integers(0, 2 * SMALL_MAX_BYTES).map(lambda length: length.to_bytes(HEADER_BYTES, "big"))
hostile_streams = st.lists(st.binary(max_size=SMALL_MAX_BYTES) | headers, max_size=20).map(b"".join)


@st.composite
def chunked(draw: st.DrawFn, streams: st.SearchStrategy[bytes]) -> list[bytes]:
    """A stream cut into pieces at random places; empty pieces too."""
    stream = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    return [stream[start:end] for start, end in pairwise([0, *cuts, len(stream)])]


def encode_all(frames: list[bytes]) -> bytes:
    return b"".join(encode_frame(frame) for frame in frames)


def feed_all(decoder: FrameDecoder, chunks: list[bytes]) -> tuple[list[bytes], str]:
    """Every frame that came out, and what broke the stream ('' when nothing did)."""
    frames: list[bytes] = []
    try:
        for chunk in chunks:
            frames += decoder.feed(chunk)
            assert decoder.buffered_bytes < HEADER_BYTES + SMALL_MAX_BYTES
    except FrameError as error:
        return [*frames, *error.frames], str(error)
    return frames, ""


def test_frame_is_length_then_payload() -> None:
    assert encode_frame(b"abc") == b"\x00\x00\x00\x03abc"


def test_encode_knows_the_maximum() -> None:
    assert len(encode_frame(bytes(10), max_frame_bytes=10)) == HEADER_BYTES + 10
    with pytest.raises(FrameTooLarge, match="11 bytes exceeds the maximum of 10 bytes"):
        encode_frame(bytes(11), max_frame_bytes=10)
    with pytest.raises(FrameTooLarge):
        encode_frame(bytes(MAX_FRAME_BYTES + 1))
    with pytest.raises(ValueError, match="empty"):
        encode_frame(b"")


def test_largest_frame_passes_in_small_pieces() -> None:
    payload = bytes(MAX_FRAME_BYTES)
    stream = encode_frame(payload)
    decoder = FrameDecoder()
    pieces = [stream[start : start + 65_536] for start in range(0, len(stream), 65_536)]
    assert [frame for piece in pieces for frame in decoder.feed(piece)] == [payload]
    assert decoder.buffered_bytes == 0


@given(st.data())
def test_any_chunking_gives_the_same_frames(data: st.DataObject) -> None:
    frames = data.draw(payloads)
    decoder = FrameDecoder(SMALL_MAX_BYTES)
    assert feed_all(decoder, data.draw(chunked(st.just(encode_all(frames))))) == (frames, "")
    decoder.eof()


@given(chunked(hostile_streams))
def test_hostile_stream_means_the_same_however_it_arrives(chunks: list[bytes]) -> None:
    whole = feed_all(FrameDecoder(SMALL_MAX_BYTES), [b"".join(chunks)])
    assert feed_all(FrameDecoder(SMALL_MAX_BYTES), chunks) == whole


def prefixes(stream: bytes) -> Iterator[bytes]:
    return (stream[:length] for length in range(len(stream) + 1))


def test_stream_cut_at_every_byte() -> None:
    frames = [b"a", b"bc", bytes(40)]
    borders = {len(encode_all(frames[:count])): frames[:count] for count in range(len(frames) + 1)}
    for prefix in prefixes(encode_all(frames)):
        decoder = FrameDecoder(SMALL_MAX_BYTES)
        complete = decoder.feed(prefix)
        if len(prefix) in borders:
            assert complete == borders[len(prefix)]
            decoder.eof()
        else:
            with pytest.raises(FrameError, match="inside a frame"):
                decoder.eof()
            with pytest.raises(FrameError, match="inside a frame"):
                decoder.feed(b"")


@pytest.mark.parametrize("length", [0, SMALL_MAX_BYTES + 1, 2**31, 2**32 - 1])
def test_impossible_length_breaks_the_stream_for_good(length: int) -> None:
    decoder = FrameDecoder(SMALL_MAX_BYTES)
    with pytest.raises(FrameError, match=f"length {length} ") as caught:
        decoder.feed(encode_frame(b"good") + length.to_bytes(4, "big") + b"rest")
    assert caught.value.frames == (b"good",)
    assert decoder.buffered_bytes == 0
    for _ in range(2):
        with pytest.raises(FrameError, match=f"length {length} ") as caught:
            decoder.feed(encode_frame(b"good"))
        assert caught.value.frames == ()
        with pytest.raises(FrameError):
            decoder.eof()
    assert decoder.buffered_bytes == 0


def test_message_round_trip() -> None:
    ping = Ping("a", (1, 2))
    assert decode_message(DECODER, msgspec.msgpack.encode(ping)) == ping


def tagged(tag: str, field: str, value: bytes) -> bytes:
    """A map of two entries: the tag, and one field with raw msgpack in it."""
    encode = msgspec.msgpack.encode
    return b"\x82" + encode("type") + encode(tag) + encode(field) + value


HOSTILE_MESSAGES = {
    "empty": b"",
    "not a map": b"\x01",
    "no tag": b"\x80",
    "unknown tag": tagged("Bomb", "text", b"\xa1a"),
    "very long tag": tagged("B" * 1_000_000, "text", b"\xa1a"),
    "tag with control characters": tagged("\n\x1b[2J\u202e", "text", b"\xa1a"),
    "tag of another kind": b"\x81" + msgspec.msgpack.encode("type") + b"\x07",
    "tag is not UTF-8": b"\x81" + msgspec.msgpack.encode("type") + b"\xa2\xff\xfe",
    "field missing": tagged("Pong", "other", b"\x01"),
    "field of wrong type": tagged("Pong", "number", b"\xa1a"),
    "text is not UTF-8": tagged("Ping", "text", b"\xa2\xff\xfe"),
    "trailing bytes": msgspec.msgpack.encode(Pong(1)) + b"\x00",
    "deep arrays in a known field": tagged("Ping", "anything", b"\x91" * 1_000_000),
    "deep maps in a known field": tagged("Ping", "anything", b"\x81\xa1a" * 1_000_000),
    "deep arrays in an unknown field": tagged("Ping", "other", b"\x91" * 1_000_000),
    "deep maps in an unknown field": tagged("Ping", "other", b"\x81\xa1a" * 1_000_000),
    "array said to be huge": tagged("Ping", "anything", b"\xdd\xff\xff\xff\xff"),
    "typed array said to be huge": tagged("Ping", "numbers", b"\xdd\xff\xff\xff\xff"),
    "map said to be huge": tagged("Ping", "anything", b"\xdf\xff\xff\xff\xff"),
    "text said to be huge": tagged("Ping", "text", b"\xdb\xff\xff\xff\xff"),
    "bytes said to be huge": tagged("Ping", "anything", b"\xc6\xff\xff\xff\xff"),
    "extension said to be huge": tagged("Ping", "anything", b"\xc9\xff\xff\xff\xff\x01"),
    "unhashable map key": tagged("Ping", "anything", b"\x81\x81\x01\x02\x03"),
    "timestamp out of range": tagged("Ping", "anything", b"\xc7\x0c\xff\xff\xff\xff\xff" + b"\x7f" * 8),
}


@pytest.mark.parametrize("payload", HOSTILE_MESSAGES.values(), ids=HOSTILE_MESSAGES.keys())
def test_hostile_message_is_a_short_printable_protocol_error(payload: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError) as caught:
            decode_message(DECODER, payload)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 * 1024 * 1024
    assert 0 < len(str(caught.value)) <= MAX_REASON_CHARS
    assert str(caught.value).isprintable()
    # The original error can be as long as the frame: it must not be kept alive, nor reach a log as the cause.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@given(st.binary(max_size=256))
def test_random_message_is_a_message_or_a_protocol_error(payload: bytes) -> None:
    try:
        message = decode_message(DECODER, payload)
    except ProtocolError:
        return
    assert isinstance(message, Ping | Pong)


@given(st.data())
def test_damaged_message_is_a_message_or_a_protocol_error(data: st.DataObject) -> None:
    payload = bytearray(msgspec.msgpack.encode(Ping("some text", (1, 300, 70_000), {"a": [1.5, None]})))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = decode_message(DECODER, bytes(payload))
    except ProtocolError:
        return
    assert isinstance(message, Ping | Pong)
