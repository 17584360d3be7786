"""Frames without a mask: refused wherever they begin, and in whatever pieces they come."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.api_server.core.frame_guard import VIOLATION, FrameGuard, Frames

MASK = b"\x01\x02\x03\x04"


def frame(payload: bytes, *, masked: bool = True) -> bytes:
    """A whole binary one."""
    size, bit = len(payload), 0x80 if masked else 0
    if size < 126:
        head = bytes([0x82, bit | size])
    elif size < 1 << 16:
        head = bytes([0x82, bit | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x82, bit | 127]) + size.to_bytes(8, "big")
    return head + (MASK if masked else b"") + payload


def fed(frames: Frames, data: bytes, cuts: list[int]) -> tuple[bytes, bool]:
    """In pieces: what has passed, and whether it was refused in the end."""
    passed, begin = b"", 0
    for end in [*sorted(cuts), len(data)]:
        part, is_refused = frames.feed(data[begin:end])
        passed += part
        if is_refused:
            return passed, True
        begin = end
    return passed, False


payloads = st.lists(st.sampled_from([b"", b"x", b"y" * 125, b"z" * 126, b"\x00" * 300, b"\xff" * 65_536]), max_size=4)


@given(payloads, st.data())
def test_masked_frames_pass_in_whatever_pieces(sent: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(map(frame, sent))
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=8))
    assert fed(Frames(), whole, cuts) == (whole, False)


@given(payloads, st.sampled_from([b"", b"x" * 10, b"x" * 70_000]), st.data())
def test_the_first_one_without_a_mask_is_refused_and_all_before_it_passes(
    sent: list[bytes], last: bytes, data: st.DataObject
) -> None:
    good = b"".join(map(frame, sent))
    whole = good + frame(last, masked=False)
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=8))
    assert fed(Frames(), whole, cuts) == (good, True)


class Heard(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data


def test_what_comes_before_the_frames_is_not_looked_at() -> None:
    heard = Heard()
    guard = FrameGuard(heard)
    guard.data_received(b"GET / HTTP/1.1\r\n\r")
    guard.data_received(b"\n")
    assert guard.begin_frames()
    guard.data_received(frame(b"a") + frame(b"b", masked=False))
    guard.data_received(frame(b"c"))
    assert heard.data == b"GET / HTTP/1.1\r\n\r\n" + frame(b"a") + VIOLATION


@pytest.mark.parametrize("early", [frame(b"a", masked=False), b"\x82"])
def test_frames_that_nobody_has_looked_at_are_known_of(early: bytes) -> None:
    guard = FrameGuard(Heard())
    guard.data_received(b"GET / HTTP/1.1\r\n\r\n" + early)
    assert not guard.begin_frames()
