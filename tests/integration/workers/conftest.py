"""Processes for the tests of those who watch processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stays until somebody ends it."""
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()
