from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ipc.host.clock import (
    MAX_TIMESTAMP_CHARS,
    Clock,
    Instant,
    SystemClock,
    monotonic,
    parse_rfc3339,
    rfc3339,
    rfc3339_micro,
    wall,
)

MIN_WALL = int(datetime(1, 1, 2, tzinfo=UTC).timestamp())
MAX_WALL = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())


def test_system_clock_reads_both_clocks() -> None:
    clock: Clock = SystemClock()
    before = Instant(mono=monotonic(), wall=wall())
    now = clock.now()
    assert before.mono <= now.mono <= monotonic()
    assert abs(now.wall - before.wall) < 60
    assert now.wall > parse_rfc3339("2024-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1767225600.0, "2026-01-01T00:00:00Z"),
        (1767225600.999999, "2026-01-01T00:00:00Z"),
        (-0.5, "1969-12-31T23:59:59Z"),
        (-62135596800.0, "0001-01-01T00:00:00Z"),
        (253402300799.0, "9999-12-31T23:59:59Z"),
    ],
)
def test_rfc3339_is_utc_and_cuts_fractions(seconds: float, text: str) -> None:
    assert rfc3339(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (1767225600.25, "2026-01-01T00:00:00.250000Z"),
        (1767225600.9999999, "2026-01-01T00:00:01.000000Z"),
        (-0.25, "1969-12-31T23:59:59.750000Z"),
    ],
)
def test_rfc3339_micro_keeps_microseconds(seconds: float, text: str) -> None:
    assert rfc3339_micro(seconds) == text


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, 1e20, -1e20, 253402300800.0])
def test_unprintable_times_are_value_errors(seconds: float) -> None:
    for render in (rfc3339, rfc3339_micro):
        with pytest.raises(ValueError, match=r"."):
            render(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-01-01T00:00:00Z", 1767225600.0),
        ("2026-11-20T08:37:22.791861700+00:00", 1795163842.7918617),
        ("2026-11-20T09:37:22.791861700+01:00", 1795163842.7918617),
        ("2026-11-20T03:07:22.7-05:30", 1795163842.7),
        ("2026-11-20t08:37:22.000000000000000000000001z", 1795163842.0),
        ("2024-02-29T00:00:00Z", 1709164800.0),
        ("0001-01-01T00:00:00Z", 0.0),
        ("0001-01-01T00:53:00+00:53", 0.0),
        ("0001-01-01T00:00:01Z", -62135596799.0),
        ("9999-12-31T23:59:59-23:59", 253402387139.0),
    ],
)
def test_parse(text: str, seconds: float) -> None:
    assert parse_rfc3339(text) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "never",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00Z\n",
        " 2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+0100",
        "2026-01-01T00:00:00+24:00",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z",
        "0000-01-01T00:00:00Z",
        "٢٠٢٦-01-01T00:00:00Z",
        "2026-01-01T00:00:00." + "1" * MAX_TIMESTAMP_CHARS + "Z",
    ],
)
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_rfc3339(text)


def test_refusal_is_short_whatever_the_text() -> None:
    with pytest.raises(ValueError, match="not an RFC 3339") as caught:
        parse_rfc3339("x" * 1_000_000)
    assert len(str(caught.value)) < 200


@given(st.text())
def test_parse_raises_nothing_but_value_error(text: str) -> None:
    try:
        seconds = parse_rfc3339(text)
    except ValueError:
        return
    assert math.isfinite(seconds)


@given(st.integers(MIN_WALL, MAX_WALL))
@example(-1)
def test_whole_seconds_round_trip(seconds: int) -> None:
    assert parse_rfc3339(rfc3339(seconds)) == seconds


@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
)
def test_parse_agrees_with_datetime(naive: datetime, offset_min: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset_min)))
    assert parse_rfc3339(moment.isoformat()) == pytest.approx(moment.timestamp(), abs=1e-4)
