"""Names of rotated logs: their order is the order of the lines, whatever the clock does."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.logs import layout
from workers.logs.rotated_names import next_name, rotated_of, split_excess, split_unused, stem

WALL = 1_763_665_431.0
STAMP = f"{datetime.datetime.fromtimestamp(WALL):%Y%m%d-%H%M%S}"


def test_a_name_is_upstreams() -> None:
    assert next_name("0.log", WALL, []) == f"0.log.{STAMP}"


def test_files_of_others_are_not_rotated_logs() -> None:
    names = ["0.log.tmp", "0.log.old", "0.log", "00.log.20200101-000000", "0xlog.20200101-000000", "0.log.2020-0101"]
    assert rotated_of("0.log", names) == []


def test_leftovers_are_found() -> None:
    names = ["0.log.20200101-000000", "0.log.20200101-000000.gz", "0.log.20200102-000000", "0.log.20200101-000001.tmp"]
    in_use, unused = split_unused(rotated_of("0.log", names))
    assert in_use == ["0.log.20200101-000000.gz", "0.log.20200102-000000"]
    assert unused == ["0.log.20200101-000000", "0.log.20200101-000001.tmp"]


def test_the_oldest_go() -> None:
    names = [f"0.log.2020010{day}-000000" for day in (3, 1, 2, 4)]
    assert split_excess(names, 4) == (sorted(names)[2:], sorted(names)[:2])
    assert split_excess(names, 2) == ([], sorted(names))
    assert split_excess(names, 6) == (sorted(names), [])


def test_there_is_a_last_name() -> None:
    with pytest.raises(OverflowError):
        next_name("0.log", WALL, ["0.log.99999999-999999"])


@given(st.lists(st.floats(0, 4_000_000_000), max_size=30))
def test_names_rise_whatever_the_clock_does(times: list[float]) -> None:
    names: list[str] = []
    for wall in times:
        names.append(next_name("0.log", wall, names))
        if len(names) % 3 == 0:
            names[-2] += ".gz"
    assert rotated_of("0.log", reversed(names)) == names
    assert len(set(map(stem, names))) == len(names)
    assert all(layout.attempt_of(name) == 0 for name in names)
