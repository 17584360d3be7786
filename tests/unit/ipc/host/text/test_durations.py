"""Durations are written and printed as Go does it."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.text.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("20s", 20),
        ("1m30s", 90),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("500ms", 0.5),
        ("+5m", 300),
        ("-1h2m", -3720),
        ("1h0m0.25s", 3600.25),
        ("100us", 0.0001),
        ("100µs", 0.0001),
        ("100μs", 0.0001),
        ("7ns", 7e-9),
        ("1s1s", 2),
    ],
)
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "invalid duration"),
        ("+", "invalid duration"),
        ("20", "missing unit"),
        ("1m30", "missing unit"),
        ("s", "invalid duration"),
        (".s", "invalid duration"),
        ("1d", 'unknown unit "d"'),
        ("1 s", 'unknown unit " s"'),
        ("1S", 'unknown unit "S"'),
        ("--1s", "invalid duration"),
        ("1_0s", "unknown unit"),
        ("٣s", "invalid duration"),
        ("9" * 30 + "h", "longer than"),
        ("1s" * 40, "invalid duration"),
    ],
)
def test_what_is_no_duration_is_said(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1, "1s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (0.5, "500ms"),
        (1.5, "1.5s"),
        (-2, "-2s"),
        (0.00025, "250µs"),
        (1e-9, "1ns"),
        (1e-12, "0s"),
    ],
)
def test_durations_print_as_gos(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(min_value=0, max_value=10**15))
def test_a_printed_duration_is_the_same_duration(microseconds: int) -> None:
    seconds = float(Fraction(microseconds, 10**6))
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-6)
