from __future__ import annotations

import pytest

from supervisor.cli.streams.detach_keys import KeyFilter, parse_detach_keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", b""),
        ("ctrl-p,ctrl-q", b"\x10\x11"),
        ("a,b", b"ab"),
        ("ctrl-@,ctrl-_,ctrl-[", b"\x00\x1f\x1b"),
        ("ctrl-P", b"\x10"),
    ],
)
def test_keys(text: str, keys: bytes) -> None:
    assert parse_detach_keys(text) == keys


@pytest.mark.parametrize("text", ["ctrl-", "ctrl-1", "ab", "a,,b", "ü"])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="unknown key"):
        parse_detach_keys(text)


def test_without_a_sequence_everything_goes_through() -> None:
    keys = KeyFilter(b"")
    assert keys.feed(b"\x10\x11") == b"\x10\x11"
    assert not keys.detached


def test_the_sequence_in_pieces() -> None:
    keys = KeyFilter(b"\x10\x11")
    assert keys.feed(b"a\x10") == b"a"
    assert keys.feed(b"b\x10") == b"\x10b"
    assert keys.feed(b"\x10") == b"\x10"
    assert not keys.detached
    assert keys.feed(b"\x11rest") == b""
    assert keys.detached


def test_a_sequence_that_begins_like_itself() -> None:
    keys = KeyFilter(b"aab")
    assert keys.feed(b"aa") == b""
    assert keys.feed(b"a") == b"a"
    assert keys.feed(b"b") == b""
    assert keys.detached
