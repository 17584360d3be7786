"""Requests that are repeated, and when (client-go rest/with_retry.go)."""

from __future__ import annotations

import pytest

from workers.kubeclient.retry import MAX_RETRIES, MAX_RETRY_AFTER_S, pause_after_answer, pause_after_break


@pytest.mark.parametrize(
    ("code", "header", "pause_s"),
    [
        (429, "3", 3.0),
        (503, "0", 0.0),
        (500, " 1 ", 1.0),
        (599, "1", 1.0),
        (429, "", None),
        (503, "", None),
        (600, "1", None),
        (409, "1", None),
        (410, "1", None),
        (404, "1", None),
        (200, "1", None),
        (429, "-1", None),
        (429, "1.5", None),
        (429, "Wed, 21 Oct 2026 07:28:00 GMT", None),
        (429, "9" * 9, float(MAX_RETRY_AFTER_S)),
        (429, "9" * 10_000, None),
        (429, "٣", None),
    ],
)
def test_an_answer_is_repeated_where_the_server_says_when(code: int, header: str, pause_s: float | None) -> None:
    assert pause_after_answer(0, code, header) == pause_s


def test_the_last_repetition_stands() -> None:
    assert pause_after_answer(MAX_RETRIES - 1, 503, "1") == 1.0
    assert pause_after_answer(MAX_RETRIES, 503, "1") is None
    assert pause_after_break(MAX_RETRIES - 1, "GET") == 1.0
    assert pause_after_break(MAX_RETRIES, "GET") is None


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_change_whose_connection_broke_is_not_repeated(verb: str) -> None:
    assert pause_after_break(0, verb) is None


def test_a_read_is_repeated_at_once_and_then_after_a_pause() -> None:
    assert [pause_after_break(retries, "GET") for retries in range(3)] == [0.0, 1.0, 1.0]
