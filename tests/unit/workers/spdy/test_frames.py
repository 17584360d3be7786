"""Frames and header blocks: as a real kubelet and kubectl write them, in any pieces, and damaged in any way."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubelet_tables.runner import SHARED
from workers.spdy.decoder import MAX_CONTROL_BYTES, FrameDecoder
from workers.spdy.frames import (
    Data,
    Frame,
    FrameError,
    GoAway,
    MoreHeaders,
    Ping,
    RstStream,
    Settings,
    SynReply,
    SynStream,
    Window,
    encode,
)
from workers.spdy.header_blocks import ADLER32, DICTIONARY, MAX_BLOCK_BYTES, MAX_PAIRS, HeaderReader, HeaderWriter

RECORDINGS: Final = SHARED / "kubernetes_wire.json"
REPLY: Final = bytes.fromhex("80030002000000140000000178f9e3c6a7c26260606000000000ffff")
"""First answer of a real kubelet, and its next one."""
NEXT_REPLY: Final = bytes.fromhex("800300020000000e000000036260606000000000ffff")
OPENING: Final = bytes.fromhex("800300010000001900000003000000000000c22ac5565c92925f5a02000000ffff")

ids = st.integers(1, 2**31 - 1)
texts = st.text(st.characters(codec="latin-1"), max_size=20)
names = st.text(st.sampled_from("abcdefgh-:"), min_size=1, max_size=8)
headers = st.dictionaries(names, texts, max_size=5).map(lambda found: tuple(found.items()))
frames = st.one_of(
    st.builds(SynStream, ids, headers, st.booleans(), st.booleans()),
    st.builds(SynReply, ids, headers, st.booleans()),
    st.builds(MoreHeaders, ids, headers, st.booleans()),
    st.builds(Data, ids, st.binary(max_size=100), st.booleans()),
    st.builds(RstStream, ids, st.integers(0, 2**32 - 1)),
    st.builds(Ping, st.integers(0, 2**32 - 1)),
    st.builds(GoAway, ids, st.integers(0, 2**32 - 1)),
    st.builds(Window, ids, st.integers(0, 2**32 - 1)),
    st.builds(Settings),
)


@st.composite
def chunked(draw: st.DrawFn, streams: st.SearchStrategy[bytes]) -> list[bytes]:
    """A stream cut into pieces at random places; empty pieces too."""
    stream = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    return [stream[start:end] for start, end in pairwise([0, *cuts, len(stream)])]


def encoded(values: list[Frame]) -> bytes:
    writer = HeaderWriter()
    return b"".join(encode(value, writer.compressed) for value in values)


def decoded(pieces: list[bytes]) -> tuple[list[Frame], str]:
    """Frames, data of one stream in a row as one of them, and what broke the stream ('' when nothing did)."""
    decoder, found = FrameDecoder(), list[Frame]()
    try:
        for piece in pieces:
            for frame in decoder.frames(piece):
                last = found[-1] if found else None
                is_more = isinstance(last, Data) and isinstance(frame, Data) and last.stream == frame.stream
                if is_more and isinstance(last, Data) and isinstance(frame, Data) and not last.fin:
                    found[-1] = Data(frame.stream, last.data + frame.data, frame.fin)
                else:
                    found.append(frame)
    except FrameError as error:
        return found, str(error)
    return found, ""


def merged(values: list[Frame]) -> list[Frame]:
    """As `decoded` has them: an empty frame of data that ends nothing says nothing."""
    found: list[Frame] = []
    for value in values:
        last = found[-1] if found else None
        if isinstance(value, Data):
            if not value.data and not value.fin:
                continue
            if isinstance(last, Data) and last.stream == value.stream and not last.fin:
                found[-1] = Data(value.stream, last.data + value.data, value.fin)
                continue
        found.append(value)
    return found


def test_the_dictionary_is_that_of_the_protocol() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == ADLER32


def test_frames_of_a_real_kubelet() -> None:
    assert decoded([REPLY, NEXT_REPLY]) == ([SynReply(1), SynReply(3)], "")


def _recorded(frames: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in frames:
        for spdy in each.get("spdy", [each] if "frame" in each else []):
            yield each["from"], spdy


def _recordings() -> list[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    if not RECORDINGS.exists():
        return []
    records = json.loads(RECORDINGS.read_text())["records"]
    found = [(f"{record['scene']} {record['path']}", list(_recorded(record.get("frames") or ()))) for record in records]
    return [(name, frames) for name, frames in found if frames]


@pytest.mark.skipif(not RECORDINGS.exists(), reason="needs the recordings of a real kubelet")
def test_every_recorded_frame_is_read_as_it_was() -> None:
    """Cut off at the first frame of a direction of which not all bytes were recorded."""
    read = 0
    for name, recorded in _recordings():
        for side in ("client", "server"):
            decoder = FrameDecoder()
            for frame in (frame for origin, frame in recorded if origin == side):
                data = bytes.fromhex(frame["hex"].rstrip("…"))
                length = frame["length"]
                if len(data) != length + 8:
                    break
                kinds = [type(value).__name__ for value in decoder.frames(data)]
                wanted = {"SYN_STREAM": "SynStream", "SYN_REPLY": "SynReply", "RST_STREAM": "RstStream"}
                wanted |= {"GOAWAY": "GoAway", "PING": "Ping", "DATA": "Data"}
                assert set(kinds) <= {wanted[frame["frame"]]}, name
                read += 1
    assert read > 20


def test_windows_of_the_dictionary_are_the_same_for_all_sizes() -> None:
    """Our blocks are made with a small window; whoever reads with a large one understands them."""
    reader = zlib.decompressobj(zdict=DICTIONARY)
    writer = HeaderWriter()
    for number in range(100):
        block = writer.compressed((("streamtype", "data"), ("requestid", str(number))))
        assert reader.decompress(block).endswith(str(number).encode())


@given(chunked(st.lists(frames, max_size=10).map(encoded)))
def test_pieces_do_not_matter(pieces: list[bytes]) -> None:
    assert decoded(pieces) == decoded([b"".join(pieces)])


@given(st.lists(frames, max_size=10))
def test_round_trip(values: list[Frame]) -> None:
    assert decoded([encoded(values)]) == (merged(values), "")


@given(st.lists(frames, max_size=5))
def test_byte_by_byte(values: list[Frame]) -> None:
    stream = encoded(values)
    assert decoded([stream[at : at + 1] for at in range(len(stream))]) == (merged(values), "")


@given(chunked(st.binary(max_size=200)))
def test_any_bytes_are_frames_or_an_error(pieces: list[bytes]) -> None:
    whole, pieced = decoded([b"".join(pieces)]), decoded(pieces)
    assert whole == pieced
    assert whole[1].isprintable()


@given(st.data())
def test_damaged_frames_are_frames_or_an_error(data: st.DataObject) -> None:
    stream = bytearray(encoded(data.draw(st.lists(frames, min_size=1, max_size=5))))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    found, reason = decoded([bytes(stream)])
    assert len(found) <= len(stream)
    assert reason.isprintable()


def block(text: bytes) -> bytes:
    packer = zlib.compressobj(9, zdict=DICTIONARY)
    return packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)


def pairs(*texts: bytes, count: int | None = None) -> bytes:
    number = len(texts) // 2 if count is None else count
    return struct.pack(">I", number) + b"".join(struct.pack(">I", len(text)) + text for text in texts)


HOSTILE_BLOCKS: Final = {
    "empty": b"",
    "no zlib": b"\xff" * 20,
    "nothing in it": block(b""),
    "no dictionary": zlib.compress(pairs()),
    "more headers than are there": block(pairs(b"a", b"b", count=2)),
    "fewer headers than are there": block(pairs(b"a", b"b", count=0)),
    "count said to be huge": block(b"\xff\xff\xff\xff"),
    "name said to be huge": block(b"\x00\x00\x00\x01\xff\xff\xff\xff"),
    "value said to be huge": block(b"\x00\x00\x00\x01" + struct.pack(">I", 1) + b"a" + b"\xff\xff\xff\xff"),
    "two of one name": block(pairs(b"a", b"1", b"a", b"2")),
    "two of one name in capitals": block(pairs(b"a", b"1", b"A", b"2")),
    "too many": block(pairs(*(b"%d" % number for number in range(2 * MAX_PAIRS + 2)))),
    "too large": block(pairs(b"a", bytes(MAX_BLOCK_BYTES))),
    "a bomb": block(pairs(b"a", bytes(64 * 1024 * 1024)))[: MAX_CONTROL_BYTES - 10],
}


@pytest.mark.parametrize("data", HOSTILE_BLOCKS.values(), ids=HOSTILE_BLOCKS.keys())
def test_hostile_header_block(data: bytes) -> None:
    reader = HeaderReader()
    tracemalloc.start()
    try:
        with pytest.raises(FrameError) as caught:
            reader.read(data)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1024 * 1024
    assert str(caught.value).isprintable()


def test_the_end_of_the_stream_of_blocks() -> None:
    packer = zlib.compressobj(9, zdict=DICTIONARY)
    with pytest.raises(FrameError, match="has ended"):
        HeaderReader().read(packer.compress(pairs()) + packer.flush(zlib.Z_FINISH))


def test_names_are_in_small_letters() -> None:
    assert HeaderReader().read(block(pairs(b"StreamType", b"Error"))) == (("streamtype", "Error"),)


HOSTILE_HEADS: Final = {
    "another version": b"\x80\x02\x00\x01\x00\x00\x00\x0a",
    "a control frame of 16 MiB": b"\x80\x03\x00\x01\x00\xff\xff\xff",
    "an unknown frame of 16 MiB": b"\x80\x03\x00\x63\x00\xff\xff\xff",
    "a stream without a number": b"\x80\x03\x00\x01\x00\x00\x00\x09",
    "a ping of 5 bytes": b"\x80\x03\x00\x06\x00\x00\x00\x05",
    "a reset of nothing": b"\x80\x03\x00\x03\x00\x00\x00\x00",
    "data of stream 0": b"\x00\x00\x00\x00\x00\x00\x00\x01",
}


@pytest.mark.parametrize("data", HOSTILE_HEADS.values(), ids=HOSTILE_HEADS.keys())
def test_hostile_heads_are_refused_before_their_payload(data: bytes) -> None:
    found, reason = decoded([data])
    assert found == []
    assert reason


def test_data_of_any_length_is_passed_on_as_it_comes() -> None:
    """16 MiB in one frame: nothing of it is kept."""
    decoder = FrameDecoder()
    assert list(decoder.frames(b"\x00\x00\x00\x01\x01\xff\xff\xff")) == []
    left = 0xFFFFFF
    piece = bytes(64 * 1024)
    tracemalloc.start()
    try:
        while left:
            (first, *rest) = decoder.frames(piece[: min(left, len(piece))])
            left -= min(left, len(piece))
            assert isinstance(first, Data)
            assert rest == ([] if left else [Data(1, fin=True)])
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1024 * 1024


def test_frames_of_unknown_types_are_skipped() -> None:
    assert decoded([b"\x80\x03\x00\x63\x00\x00\x00\x02ab" + NEXT_REPLY[:0] + encoded([Ping(7)])]) == ([Ping(7)], "")
