from __future__ import annotations

import math

from workers.pleg.observe_queue import SAME_AGAIN_S, Failure, ObserveQueue

NOW = 1000.0


def test_the_soonest_request_counts_and_keeps_its_place() -> None:
    waiting = ObserveQueue()
    assert (waiting.next_at, waiting.due(NOW)) == (math.inf, [])
    waiting.request("u1", NOW + 5)
    waiting.request("u2")
    waiting.request("u1", NOW + 1)
    waiting.request("u1", NOW + 9)
    waiting.request("u3", NOW + 2)
    assert (waiting.next_at, waiting.due(NOW)) == (0.0, ["u2"])
    assert waiting.due(NOW + 1) == ["u1", "u2"]
    waiting.take(["u2"])
    assert waiting.next_at == NOW + 1
    assert waiting.take_all() == ("u1", "u3")
    assert waiting.take_all() == ()


def test_who_was_not_looked_at_waits_on_unless_there_is_a_newer_request() -> None:
    waiting = ObserveQueue()
    waiting.request("u1", NOW + 5)
    waiting.request_again(["u1", "u2"])
    assert waiting.due(NOW) == ["u2"]
    assert waiting.due(NOW + 5) == ["u1", "u2"]


def test_a_look_that_fails_is_repeated_later_and_later() -> None:
    waiting = ObserveQueue()
    for failures, delay_s in enumerate((0.25, 0.5, 1.0), 1):
        assert waiting.failed("u1", "broken", NOW).times == failures
        assert waiting.next_at == NOW + delay_s
        assert waiting.retry_delay_s(["u1"]) == delay_s
        waiting.take(["u1"])
    waiting.request("u1")
    waiting.failed("u1", "broken", NOW)
    assert waiting.due(NOW) == ["u1"], "somebody has asked anew"
    waiting.observed("u1")
    assert waiting.failed("u1", "broken", NOW) == Failure(1, is_news=True)


def test_all_that_failed_are_due_when_the_last_of_them_is() -> None:
    waiting = ObserveQueue()
    assert waiting.retry_delay_s([]) == math.inf
    waiting.failed("u1", "broken", NOW)
    waiting.failed("u2", "broken", NOW)
    waiting.failed("u2", "broken", NOW)
    assert waiting.retry_delay_s(["u1", "u2"]) == 0.5
    waiting.observed("u2")  # by what a monitor has noted, while others are told that it could not be looked at
    assert waiting.retry_delay_s(["u1", "u2"]) == 0.25


def test_the_same_error_is_news_once_a_minute_and_another_one_at_once() -> None:
    waiting = ObserveQueue()
    said = [
        waiting.failed(uid, why, NOW + at).is_news
        for uid, why, at in (
            ("u1", "broken", 0.0),
            ("u2", "broken", 1.0),
            ("u1", "broken", 1.0),
            ("u1", "broken", SAME_AGAIN_S - 1.0),
            ("u1", "broken", SAME_AGAIN_S),
            ("u1", "broken", SAME_AGAIN_S + 30.0),
            ("u1", "late", SAME_AGAIN_S + 31.0),
            ("u1", "broken", SAME_AGAIN_S + 32.0),
            ("u1", "broken", SAME_AGAIN_S + 91.0),
            ("u1", "broken", SAME_AGAIN_S + 92.0),
        )
    ]
    assert said == [True, True, False, False, True, False, True, True, False, True]


def test_the_same_error_is_news_after_a_look_that_did_not_fail() -> None:
    waiting = ObserveQueue()
    waiting.failed("u1", "broken", NOW)
    waiting.observed("u1")
    assert waiting.failed("u1", "broken", NOW) == Failure(1, is_news=True)
    waiting.drop("u1")
    assert waiting.failures("u1") == 0
