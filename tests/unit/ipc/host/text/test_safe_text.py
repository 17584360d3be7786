"""Text for people: always encodable, nothing that steers, bounded."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.text.safe_text import clipped, clipped_end, safe_line, safe_text

ANY = st.text(st.characters(exclude_categories=[]) | st.sampled_from("\u202e\u2066\u061c\x1b\x9b\ud800\udcff\n"))
STEERING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(ANY, st.none() | st.integers(0, 40))
def test_nothing_is_left_that_steers_or_cannot_be_encoded(text: str, max_bytes: int | None) -> None:
    for made, kept in ((safe_line(text, max_bytes), ""), (safe_text(text, max_bytes), "\n\t")):
        assert len(made.encode()) <= (len(made.encode()) if max_bytes is None else max_bytes)
        assert {unicodedata.category(char) for char in made if char not in kept} & STEERING == set()


@given(ANY, st.none() | st.integers(0, 40))
def test_what_is_safe_stays_as_it_is(text: str, max_bytes: int | None) -> None:
    for make in (safe_line, safe_text):
        made = make(text, max_bytes)
        assert make(made, max_bytes) == made


@pytest.mark.parametrize(
    ("text", "line", "paragraph"),
    [
        ("grüße, 世界 \U0001f600", "grüße, 世界 \U0001f600", "grüße, 世界 \U0001f600"),
        ("a\n\tb\r", r"a\n\tb\r", "a\n\tb\\r"),
        ("\x1b[31m\x9b\udcff", r"\x1b[31m\u009b\udcff", r"\x1b[31m\u009b\udcff"),
        ("\u202eexe.\u3000\u200b", r"\u202eexe.\u3000\u200b", "\\u202eexe.\u3000\\u200b"),
    ],
)
def test_examples(text: str, line: str, paragraph: str) -> None:
    assert (safe_line(text), safe_text(text)) == (line, paragraph)


@given(ANY, st.integers(0, 20))
def test_clipped_is_a_beginning(text: str, max_bytes: int) -> None:
    made = clipped(text, max_bytes)
    assert text.encode(errors="replace").decode().startswith(made)
    assert len(made.encode()) <= max_bytes


@given(st.binary(max_size=40), st.integers(1, 20))
def test_the_clipped_end_is_no_longer(data: bytes, max_bytes: int) -> None:
    assert len(clipped_end(data, max_bytes).encode()) <= max_bytes
