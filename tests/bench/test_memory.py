"""Memory of the agent's processes beside their budgets (tests.bench.memory)."""

from __future__ import annotations

import pytest

from tests.bench.memory import report

pytestmark = [pytest.mark.bench, pytest.mark.process, pytest.mark.timeout(900)]


def test_memory(capsys: pytest.CaptureFixture[str]) -> None:
    found = report([10, 60], rounds=1)
    with capsys.disabled():
        print(f"\n{found}")
