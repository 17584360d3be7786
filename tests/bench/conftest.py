"""Agents as a user has them: with the default periods, and a Podman service of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.podman_service import PodmanService

IMPATIENT: Final = (
    "relistPeriod",
    "quietRelistPeriod",
    "fileCheckFrequency",
    "housekeepingPeriod",
    "nodeStatusUpdateFrequency",
)
"""What the end-to-end tests set, so that they need not wait."""


@pytest.fixture
def agent(podman_service: PodmanService) -> Iterator[Agent]:
    """Not yet started."""
    made = Agent(podman_service.new_instance())
    for name in IMPATIENT:
        del made.settings[name]
    for name in ("idleTimeout", "podsPerWorker"):
        del made.settings["workers"][name]
    made.configure({})
    with contextlib.ExitStack() as stack:
        stack.callback(made.close)
        yield made
