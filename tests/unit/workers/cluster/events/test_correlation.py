"""Events that are told of many, from the agent's history to the API server, beside client-go's correlator
(tools/record, events_cache_test.go: TestEventCorrelator, TestEventSpamFilter)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
import pytest

from ipc.k8s.api.v1.event import Event
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventType
from supervisor.record.recorder import COMBINED, MAX_SIMILAR, SIMILAR_INTERVAL_S, EventRecorder
from workers.cluster.events.spam_filter import BURST, SpamFilter

START: Final = 1_800_000_000.0
FOR_EVER_S: Final = 1e9


class Correlator:
    """The master's history, and the filter before the server: EventCorrelate."""

    def __init__(self) -> None:
        self._recorder = EventRecorder("n1", 1000, FOR_EVER_S)
        self._spam = SpamFilter()

    def correlate(self, report: EventReport, at: float) -> Event | None:
        """The event as it goes to the server; None for one that is skipped."""
        event, _ = self._recorder.record(report, START + at)
        return event if self._spam.lets_pass(event, at) else None

    def correlate_all(self, reports: Iterable[EventReport], interval_s: float) -> Event | None:
        """The last one's fate."""
        return [self.correlate(report, number * interval_s) for number, report in enumerate(reports)][-1]


def report(reason: str, message: str, *, pod: str = "my-pod", container: str = "mycontainer") -> EventReport:
    return EventReport(
        uid=f"uid-{pod}",
        namespace="my-ns",
        name=pod,
        type=EventType.NORMAL,
        reason=reason,
        message=message,
        field_path=f"spec.containers{{{container}}}",
    )


def similar(count: int) -> list[EventReport]:
    return [report("similar", f"similar message-{number}", container="container1") for number in range(count)]


FIRST: Final = report("first", "i am first")
DUPLICATE: Final = report("duplicate", "me again")
UNIQUE: Final = report("unique", "snowflake")
SIMILAR: Final = report("similar", "similar message", container="container1")
OF_ANOTHER_CONTAINER: Final = msgspec.structs.replace(SIMILAR, field_path="spec.containers{container2}")
UNIQUES: Final = [report(f"reason-{number}", f"message-{number}", pod=f"pod-{number}") for number in range(30)]
TOGETHER: Final = f"{COMBINED}{SIMILAR.message}"


class Case(NamedTuple):
    name: str
    before: list[EventReport]
    new: EventReport
    interval_s: float
    told: tuple[str, int] | None
    """Message and count; None: it is skipped."""


CASES: Final = (
    Case("create-a-single-event", [], FIRST, 5, ("i am first", 1)),
    Case("the-same-event-should-just-count", [DUPLICATE], DUPLICATE, 5, ("me again", 2)),
    Case(
        "the-same-event-should-just-count-even-if-more-than-aggregate",
        [DUPLICATE] * MAX_SIMILAR,
        DUPLICATE,
        30,
        ("me again", MAX_SIMILAR + 1),
    ),
    Case(
        "the-same-event-is-spam-if-happens-too-frequently",
        [DUPLICATE] * (BURST + 1),
        DUPLICATE,
        1,
        None,
    ),
    Case("create-many-unique-events", UNIQUES, UNIQUE, 5, ("snowflake", 1)),
    Case("similar-events-should-aggregate-event", similar(MAX_SIMILAR - 1), SIMILAR, 5, (TOGETHER, 1)),
    Case(
        "similar-events-many-times-should-count-the-aggregate",
        similar(MAX_SIMILAR),
        SIMILAR,
        5,
        (TOGETHER, 2),
    ),
    Case(
        "events-from-different-containers-do-not-aggregate",
        [OF_ANOTHER_CONTAINER],
        SIMILAR,
        5,
        ("similar message", 1),
    ),
    Case(
        "similar-events-whose-interval-is-greater-than-aggregate-interval-do-not-aggregate",
        similar(MAX_SIMILAR - 1),
        SIMILAR,
        SIMILAR_INTERVAL_S + 1,
        ("similar message", 1),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_are_correlated_as_upstream(case: Case) -> None:
    told = Correlator().correlate_all([*case.before, case.new], case.interval_s)
    assert (None if told is None else (told.message, told.count)) == case.told
    assert told is None or (told.first_timestamp == told.last_timestamp) == (told.count == 1)


def test_similar_events_of_a_rolling_interval_are_one() -> None:
    """Each one begins the ten minutes anew."""
    told = Correlator().correlate_all([*similar(MAX_SIMILAR - 1), SIMILAR], SIMILAR_INTERVAL_S)
    assert told is not None
    assert told.message == TOGETHER


def test_another_reason_of_the_object_is_spam_like_the_first() -> None:
    """TestEventSpamFilter, its first case: the default key has no reason in it."""
    correlator = Correlator()
    assert [correlator.correlate(FIRST, 0.0) is not None for _ in range(BURST + 1)] == [True] * BURST + [False]
    assert correlator.correlate(UNIQUE, 1.0) is None


def test_a_warning_is_told_after_many_normal_events_of_its_object() -> None:
    """The key has the type in it (getSpamKey)."""
    correlator = Correlator()
    told = [correlator.correlate(FIRST, 0.0) for _ in range(BURST + 1)]
    assert told[-1] is None
    warning = correlator.correlate(msgspec.structs.replace(FIRST, type=EventType.WARNING), 1.0)
    assert warning is not None
    assert warning.count == 1


def test_what_was_skipped_counts_in_the_next_one_that_is_told() -> None:
    """Upstream filters what its log has counted (EventCorrelate)."""
    correlator = Correlator()
    for _ in range(BURST + 10):
        correlator.correlate(DUPLICATE, 0.0)
    told = correlator.correlate(DUPLICATE, 301.0)
    assert told is not None
    assert told.count == BURST + 11
