import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
import uvloop

from tests.support.api_server import PODMAN_SOCKET, Master, api_server
from tests.support.podman_streams import PodmanEnd, podman_end


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


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """TLS is the loop's: tests of the ports run on the API server's own."""
    on_ports = item.path.stem == "test_ports"
    return {"uvloop": uvloop.new_event_loop} if on_ports else {"asyncio": asyncio.new_event_loop}
