"""The free pages of Podman's database, read where Podman writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.doctor.podman_database import FILE, free_pages
from tests.support.podman_service import PodmanService, podman, wait_until

pytestmark = pytest.mark.podman

DEADLINE_S = 20.0
SMALLEST_PAGE = 1024


def test_a_database_that_podman_uses_is_read(podman_service: PodmanService) -> None:
    file = Path(podman("info", "--format", "{{.Store.GraphRoot}}").strip()) / FILE
    if not file.exists():
        pytest.skip("a storage that Podman 4.8 or later has made: its database is an SQLite one, without free lists")
    found: list[int] = []

    def is_read() -> bool:
        free = free_pages(file)
        if free is not None:
            found.append(free)
        return free is not None

    # A list that a writer has just replaced is not recognized.
    wait_until(is_read, DEADLINE_S)
    assert 0 <= found[-1] < file.stat().st_size / SMALLEST_PAGE
