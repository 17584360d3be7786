"""Agents as a user has them: with the default periods, and a Podman service of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.bench.default_periods import set_default_periods
from tests.e2e.agent import Agent
from tests.support.podman_service import PodmanService


@pytest.fixture
def agent(podman_service: PodmanService) -> Iterator[Agent]:
    """Not yet started."""
    made = Agent(podman_service.new_instance())
    set_default_periods(made, {"count": 2, "maxDeaths": 1000})
    with contextlib.ExitStack() as stack:
        stack.callback(made.close)
        yield made
