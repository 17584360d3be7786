"""Words about Podman's absence, and how often they are said."""

from __future__ import annotations

import logging

import msgspec
import pytest

from ipc.link.messages.event_reasons import CONTAINER_RUNTIME_DOWN, CONTAINER_RUNTIME_UP, EventReason
from ipc.link.messages.node_worker import RuntimeHealth
from supervisor.processes.podman_health import PodmanHealth
from tests.fakes.clock import HandClock

UP = RuntimeHealth(healthy=True, version="4.3.1")
DOWN = RuntimeHealth(healthy=False, message="no answer")


class Heard:
    """A health, and the events that it made."""

    def __init__(self, *told: RuntimeHealth) -> None:
        self.events: list[EventReason] = []
        self.clock = HandClock()
        self.health = PodmanHealth(self.clock, lambda reason, message: self.events.append(reason))
        for each in told:
            self.health.take(each)


@pytest.mark.parametrize(
    ("told", "events"),
    [
        ((UP,), []),
        ((DOWN,), []),
        ((DOWN, UP), []),
        ((UP, DOWN, DOWN), [CONTAINER_RUNTIME_DOWN]),
        ((UP, DOWN, UP), [CONTAINER_RUNTIME_DOWN, CONTAINER_RUNTIME_UP]),
    ],
)
def test_a_change_is_an_event_but_for_the_first_answer(
    told: tuple[RuntimeHealth, ...], events: list[EventReason]
) -> None:
    assert Heard(*told).events == events


def test_the_version_is_known_while_nobody_answers() -> None:
    newest = Heard(UP, DOWN).health.newest
    assert (newest.healthy, newest.version, newest.message) == (False, "4.3.1", "no answer")


def test_the_silence_counts_from_its_beginning() -> None:
    heard = Heard(UP, DOWN)
    heard.clock.wall += 5.0
    heard.health.take(DOWN)
    assert heard.health.silent_since == 1000.0
    heard.health.take(UP)
    assert heard.health.silent_since == 0.0


def test_a_network_that_is_missing_is_told_once_and_podman_answers_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    without = msgspec.structs.replace(UP, network_problem="no pasta")
    with caplog.at_level(logging.INFO):
        heard = Heard(UP, without, msgspec.structs.replace(DOWN, network_problem="no pasta"), without, UP)
    said = [record.getMessage() for record in caplog.records if "network" in record.getMessage()]
    assert said == [
        "pods in the host's network alone can start: no pasta",
        "pods can have a network of their own again",
    ]
    answers = [record for record in caplog.records if record.getMessage() == "Podman answers (API 4.3.1)"]
    assert len(answers) == 2
    assert heard.events == [CONTAINER_RUNTIME_DOWN, CONTAINER_RUNTIME_UP]
