import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop

from tests.unit.workers.api_server.harness import Master, api_server


@pytest.fixture(scope="session")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    """The loop that the real process has: its sockets and transports differ from the standard one's."""
    return uvloop.EventLoopPolicy()


@pytest.fixture
async def master(tmp_path: Path) -> AsyncIterator[Master]:
    """An API server that has been told nothing yet."""
    async with api_server(tmp_path) as started:
        yield started
