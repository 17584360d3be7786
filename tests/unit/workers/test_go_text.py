"""Texts as Go prints them."""

from __future__ import annotations

import pytest

from workers.go_text import duration, join_host_port, quoted


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1s"), (59, "59s"), (60, "1m0s"), (90, "1m30s"), (3600, "1h0m0s"), (3723, "1h2m3s")]
)
def test_durations(seconds: int, text: str) -> None:
    assert duration(seconds) == text


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


def test_only_an_ipv6_address_gets_brackets() -> None:
    assert [join_host_port(host, 80) for host in ("10.0.0.1", "::1", "example.org")] == [
        "10.0.0.1:80",
        "[::1]:80",
        "example.org:80",
    ]
