"""Counts of workers that come and go, between two looks."""

from __future__ import annotations

from typing import Any

from tests.bench.counts import counted_between, counts_of


def worker(name: str, incarnation: int, calls: int | None) -> dict[str, Any]:
    return {
        "name": name,
        "incarnation": incarnation,
        "counters": None if calls is None else {"runtime_calls": calls, "syncs": 1},
    }


def between(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> int:
    return counted_between(counts_of(before, "runtime_calls"), counts_of(after, "runtime_calls"))


def test_what_those_that_stay_have_counted_is_the_difference() -> None:
    before = [worker("node-0", 1, 100), worker("pods-1", 1, 10), worker("api-1", 1, None)]
    assert between(before, [worker("node-0", 1, 130), worker("pods-1", 1, 12), worker("api-1", 2, None)]) == 32


def test_a_worker_that_has_left_takes_nothing_away() -> None:
    before = [worker("node-0", 1, 100), worker("pods-2", 1, 900)]
    assert between(before, [worker("node-0", 1, 140)]) == 40


def test_a_counter_that_begins_anew_counts_from_nothing() -> None:
    assert between([worker("node-0", 1, 100)], [worker("node-0", 2, 7)]) == 7
