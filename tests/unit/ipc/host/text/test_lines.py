from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.text.lines import MAX_LINE_BYTES, LineSplitter


def split(parts: list[bytes]) -> Iterator[bytes]:
    splitter = LineSplitter()
    for part in parts:
        yield from splitter.feed(part)
    yield from splitter.end()


@given(st.lists(st.binary(max_size=5) | st.sampled_from([b"\n", b"\r\n", b"a\nb"])))
def test_lines_do_not_depend_on_where_parts_are_cut(parts: list[bytes]) -> None:
    whole = [line for piece in b"".join(parts).split(b"\n") if (line := piece.rstrip(b"\r"))]
    assert list(split(parts)) == whole


def test_a_line_is_there_with_its_end() -> None:
    splitter = LineSplitter()
    assert list(splitter.feed(b'{"a":')) == []
    assert list(splitter.feed(b"1}\n{")) == [b'{"a":1}']
    assert list(splitter.end()) == [b"{"]


def test_a_line_without_end_is_not_waited_for() -> None:
    splitter = LineSplitter()
    for _ in range(MAX_LINE_BYTES // 65536):
        assert list(splitter.feed(b"x" * 65536)) == []
    with pytest.raises(ConnectionResetError):
        list(splitter.feed(b"x"))
