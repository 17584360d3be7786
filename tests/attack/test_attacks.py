"""Attacks on a real agent: the canary beside is probed within its second, the agent's processes and memory stay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attack.attack import Attack
from tests.attack.catalogue import ATTACKS
from tests.attack.ground import Ground, ground
from tests.attack.run import carry_out
from tests.support.podman_service import PodmanService

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def place(podman_service: PodmanService) -> Iterator[Ground]:
    """One agent for all attacks."""
    with ground(podman_service.new_instance()) as made:
        yield made


@pytest.mark.parametrize(
    "attack",
    [pytest.param(each, id=each.name, marks=[] if each.is_quick else [pytest.mark.slow]) for each in ATTACKS],
)
def test_nobody_else_feels_it(place: Ground, attack: Attack) -> None:
    assert place.agent.process.poll() is None, "an attack before this one has ended the agent"
    outcome = carry_out(attack, place)
    print(outcome)
    assert not outcome.faults
