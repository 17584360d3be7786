"""Few failures of tests on real parts are run again, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.second_chance import MOST, main, second_chances

REAL = "tests/e2e/test_pods.py::test_a"


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ([], []),
        ([REAL], [REAL]),
        (["tests/integration/x.py::test_b[a::b c]", REAL], [REAL, "tests/integration/x.py::test_b[a::b c]"]),
        ([f"{REAL}{number}" for number in range(MOST)], [f"{REAL}{number}" for number in range(MOST)]),
        ([f"{REAL}{number}" for number in range(MOST + 1)], []),
        (["tests/unit/x.py::test_c"], []),
        ([REAL, "tests/sim/x.py::test_d"], []),
        (["tests/e2e/test_that_does_not_import.py"], []),
    ],
)
def test_which_failures_are_run_again(failed: list[str], again: list[str]) -> None:
    assert second_chances(failed) == again


def test_it_reads_what_pytest_has_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "v/cache").mkdir(parents=True)
    (tmp_path / "v/cache/lastfailed").write_text(json.dumps({REAL: True}))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [REAL]
