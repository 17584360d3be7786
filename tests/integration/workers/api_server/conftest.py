from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.api_server import PODMAN_SOCKET, Master, api_server
from tests.harness.podman_streams import PodmanEnd, podman_end


@pytest.fixture
async def master(tmp_path: Path) -> AsyncIterator[Master]:
    """An API server that has been told nothing yet."""
    async with api_server(tmp_path) as started:
        yield started


@pytest.fixture
async def podman(tmp_path: Path) -> AsyncIterator[PodmanEnd]:
    """Podman's end of its streams, played."""
    async with podman_end(tmp_path / PODMAN_SOCKET) as end:
        yield end
