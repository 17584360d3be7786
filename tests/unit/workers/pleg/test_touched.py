"""Doubts about pods: what an observation has to inspect, and when only a list will do."""

from __future__ import annotations

import pytest

from workers.pleg.touched import LATE_S, MAX_TOUCHED, Doubts, Touched

NOW = 1000.0


@pytest.fixture
def touched() -> Touched:
    """After everything was listed."""
    made = Touched()
    made.listed_all({}, frozenset())
    return made


def test_before_everything_was_listed_every_pod_is() -> None:
    touched = Touched()
    assert touched.needs_list("u1", NOW)
    touched.listed_all({}, frozenset())
    assert not touched.needs_list("u1", NOW)


def test_a_pod_that_the_list_of_everything_failed_for_is_listed_alone(touched: Touched) -> None:
    touched.listed_all({}, frozenset({"u2"}))
    assert [touched.needs_list(uid, NOW) for uid in ("u1", "u2")] == [False, True]


def test_what_was_touched_is_taken_once(touched: Touched) -> None:
    touched.add("u1", ["c1"])
    touched.add("u1", ["c2", "c1"])
    assert touched.take("u1") == Doubts(frozenset({"c1", "c2"}))
    assert touched.take("u1") == Doubts()


def test_an_observation_that_fails_puts_doubts_back_beside_those_that_came_meanwhile(touched: Touched) -> None:
    touched.add("u1", ["c1"])
    taken = touched.take("u1")
    touched.add("u1", ["c2"])
    touched.restore("u1", taken)
    assert touched.take("u1") == Doubts(frozenset({"c1", "c2"}))


def test_who_is_unsure_lists_and_names_nothing(touched: Touched) -> None:
    touched.add("u1", ["c1"])
    touched.add("u1", unsure=True)
    assert touched.needs_list("u1", NOW)
    assert touched.take("u1") == Doubts(is_unsure=True)
    assert not touched.needs_list("u1", NOW)


def test_hints_are_kept_apart(touched: Touched) -> None:
    touched.add("u1", ["name"])
    touched.hint("u1", "c1", 5.0)
    assert touched.take("u1") == Doubts(frozenset({"name"}), hinted=frozenset({("c1", 5.0)}))


def test_of_too_many_containers_none_is_named(touched: Touched) -> None:
    touched.add("u1", (f"c{number}" for number in range(MAX_TOUCHED)))
    assert not touched.needs_list("u1", NOW)
    touched.hint("u1", "one more", 5.0)
    assert touched.take("u1") == Doubts(is_unsure=True)


def test_a_list_of_everything_removes_the_doubts_from_before_it(touched: Touched) -> None:
    touched.add("u1", unsure=True)
    touched.add("u2", ["c1"])
    before = touched.all()
    touched.add("u2", ["c2"])
    touched.add("u3", ["c3"])
    touched.listed_all(before, frozenset())
    assert not touched.needs_list("u1", NOW)
    assert touched.take("u2") == Doubts(frozenset({"c1", "c2"})), "one has come since"
    assert touched.take("u3") == Doubts(frozenset({"c3"}))


def test_a_pod_whose_act_failed_is_listed_until_a_call_that_was_given_up_is_surely_over(touched: Touched) -> None:
    touched.suspect("u1", NOW)
    touched.take("u1")
    touched.listed_all({}, frozenset())
    assert touched.needs_list("u1", NOW + LATE_S - 0.1)
    assert not touched.needs_list("u1", NOW + LATE_S)
    touched.suspect("u1", NOW)
    touched.suspect("u2", NOW + LATE_S)
    assert not touched._suspect_until.keys() - {"u2"}, "those that are over are kept no longer"
