"""`make bench`, small: it measures every figure that its table has a row for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.table import TABLE

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow, pytest.mark.timeout(900)]

DEADLINE_S = 800
BY_CHANCE = {"Podman calls per pod resynced", "PSS, nobody looking: api"}
"""A pod is resynced in a long window alone; the API server may have left, or not."""


@pytest.mark.parametrize("store", ["default", "transient"], indirect=True)
def test_every_row_gets_its_figure(tmp_path: Path, store: str) -> None:
    out = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--quick", "--store", store, "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    rows = json.loads(out.read_text())["rows"]
    assert [row["name"] for row in rows] == [row.name for row in TABLE]
    assert {row["name"] for row in rows if row["rootlet"] is None and not row["detail"]} <= BY_CHANCE
    assert all(row["verdict"] in ("met", "missed") for row in rows if row["rootlet"] is not None and row["aim"] != "-")
    assert all(row["name"] in done.stdout for row in rows if row["rootlet"] is not None or not row["detail"])
