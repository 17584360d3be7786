"""CPU time of commands beside the aim (tests.bench.command_line)."""

from __future__ import annotations

import pytest

from tests.bench.command_line import TREE, report

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(60, [TREE], runs=10)
    with capsys.disabled():
        print(f"\n{found}")
