from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.api_server import Master, api_server


@pytest.fixture
async def master(tmp_path: Path) -> AsyncIterator[Master]:
    """An API server that has been told nothing yet."""
    async with api_server(tmp_path) as started:
        yield started
