"""Texts as Go prints them."""

from __future__ import annotations

import pytest

from ipc.host.text.gofmt import quoted


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("plain", '"plain"'),
        ('say "x"', r'"say \"x\""'),
        ("C:\\u0041", r'"C:\\u0041"'),
        ("a\r\n\tb", r'"a\r\n\tb"'),
        ("\x00\x1b[31m", r'"\x00\x1b[31m"'),
        ("grüße", '"grüße"'),
        ("\u2028", r'"\u2028"'),
        ("\a\b\f\v", r'"\a\b\f\v"'),
        ("\U0001f600\U000e0001", '"\U0001f600' + r'\U000e0001"'),
    ],
)
def test_quoted(text: str, literal: str) -> None:
    assert quoted(text) == literal
