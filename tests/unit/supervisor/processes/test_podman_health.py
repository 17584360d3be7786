"""Words about Podman's absence, and how often they are said."""

from __future__ import annotations

import pytest

from ipc.messages.event_reasons import CONTAINER_RUNTIME_DOWN, CONTAINER_RUNTIME_UP, EventReason
from ipc.messages.node_worker import RuntimeHealth
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
