"""One suite for the fakes and for Podman: what holds for them must hold for it, or simulations prove nothing."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from ipc.host.clock import SystemClock
from tests.contract.podman_host import PodmanHost
from tests.contract.target import FAKE_IMAGE, FakeTarget, PodmanTarget, ServerTarget, Target
from tests.fakes.large_podman import LargePodman, Processes
from tests.fakes.libpod_server import serving
from tests.fakes.podman import FakePodman
from tests.support.podman_service import PodmanService

PODMAN: Final = pytest.param("podman", marks=pytest.mark.podman)
OWN_PODMAN: Final = pytest.param("own podman", marks=pytest.mark.podman)
"""A service of the agent's own, of which more is done past its API. For those tests that ask for it."""


@pytest.fixture(params=["fake", "server", PODMAN])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Target]:
    """The runtime under test, cleaned up afterwards."""
    async with contextlib.AsyncExitStack() as stack:
        made: Target
        if request.param == "fake":
            made = FakeTarget(FakePodman(SystemClock(), images=[FAKE_IMAGE]))
        elif request.param == "server":
            socket = tmp_path / "podman.sock"
            await stack.enter_async_context(serving(socket, LargePodman([FAKE_IMAGE], Processes.REAL), {}))
            made = ServerTarget(str(socket))
        else:
            service: PodmanService = request.getfixturevalue("podman_service")
            made = PodmanTarget(service, is_own_service=request.param == "own podman")
        yield made
        await made.clean()


@pytest.fixture
async def host(tmp_path: Path, podman_service: PodmanService) -> AsyncIterator[PodmanHost]:
    """One pod's world on real Podman, empty afterwards."""
    made = PodmanHost(tmp_path, podman_service)
    yield made
    await made.end()
