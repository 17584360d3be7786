"""The page of pod fields, printed by its module."""

import subprocess
import sys
from pathlib import Path

from ipc.api.support.page import render_pod_fields

REPOSITORY = Path(__file__).resolve().parents[5]


def test_the_module_prints_the_page() -> None:
    command = [sys.executable, "-W", "error", "-m", "ipc.api.support.page"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=True)
    assert run.stdout == render_pod_fields()
    assert run.stderr == ""
