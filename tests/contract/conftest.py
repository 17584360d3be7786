"""One suite, two runtimes: what holds for the fake must hold for Podman, or simulations prove nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ipc.clock import SystemClock
from tests.contract.target import FAKE_IMAGE, FakeTarget, PodmanTarget, Target
from tests.fakes.runtime import FakePodman
from tests.podman_service import PodmanService


@pytest.fixture(params=["fake", pytest.param("podman", marks=pytest.mark.podman)])
async def target(request: pytest.FixtureRequest) -> AsyncIterator[Target]:
    """The runtime under test, cleaned up afterwards."""
    made: Target
    if request.param == "fake":
        made = FakeTarget(FakePodman(SystemClock(), images=[FAKE_IMAGE]))
    else:
        service: PodmanService = request.getfixturevalue("podman_service")
        made = PodmanTarget(service)
    yield made
    await made.clean()
