"""Rows of the board: each to one pod at a time, and none when all are taken."""

from __future__ import annotations

from supervisor.pods.board_rows import NO_ROW, RowAllocator


def test_rows_are_taken_lowest_first_and_given_back() -> None:
    rows = RowAllocator(2)
    assert [rows.assign(), rows.assign(), rows.assign()] == [0, 1, NO_ROW]
    rows.give_back(NO_ROW)
    assert rows.assign() == NO_ROW, "what never was a row does not become one"
    rows.give_back(1)
    assert [rows.assign(), rows.assign()] == [1, NO_ROW]
