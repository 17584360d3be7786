"""The free pages of Podman's database, read where Podman writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.doctor.podman_database import FILE, free_pages
from tests.podman_service import PodmanService, podman, wait_until

pytestmark = pytest.mark.podman

DEADLINE_S = 20.0
SMALLEST_PAGE = 1024


def test_a_database_that_podman_uses_is_read(podman_service: PodmanService) -> None:
    file = Path(podman("info", "--format", "{{.Store.GraphRoot}}").strip()) / FILE
    if not file.exists():
        pytest.skip("a storage that Podman 4.8 or later has made: its database is an SQLite one, without free lists")
    # A list that a writer has just replaced is not recognized.
    wait_until(lambda: free_pages(file) is not None, DEADLINE_S)
    assert 0 <= (free_pages(file) or 0) < file.stat().st_size / SMALLEST_PAGE
