"""docs/reliability.md: every fault in its table is shown by tests that exist."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.named_tests import missing
from tests.parity.table import ROOT

PAGE: Final = ROOT / "docs" / "reliability.md"
HEADER: Final = ("fault", "how it is provoked", "what is promised", "the test that shows it")
TEST: Final = re.compile(r"`([^`]+)`")
HERE: Final = "tests/unit/test_reliability.py"


def rows(text: str) -> list[tuple[str, ...]]:
    """The cells of every row of every table, without headers and the lines below them."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("|")]
    cells = [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines]
    return [row for row in cells if row != HEADER and not all(set(cell) <= set("-: ") for cell in row)]


def faults(text: str) -> list[str]:
    """Everything that is wrong with the page's tables, a line each."""
    wrong: list[str] = []
    found = rows(text)
    names = [row[0] for row in found]
    for row in found:
        tests = TEST.findall(row[-1])
        wrong += [f"{row[0]}: has {len(row)} cells instead of {len(HEADER)}"] if len(row) != len(HEADER) else []
        wrong += [f"{row[0]}: leaves a cell empty"] if not all(row) else []
        wrong += [f"{row[0]}: names no test"] if not tests else []
        wrong += [f"{row[0]}: there is no test {lost}" for lost in missing(tests, ROOT)]
        wrong += [f"{row[0]}: is given twice"] if names.count(row[0]) > 1 else []
    return wrong


def test_every_row_holds() -> None:
    text = PAGE.read_text()
    assert len(rows(text)) > 10
    assert faults(text) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| a | b | c | |", "a: leaves a cell empty"),
        ("| a | b | c | by hand |", "a: names no test"),
        ("| a | b | c | `tests/nowhere.py::test_x` |", "a: there is no test tests/nowhere.py::test_x"),
        (f"| a | b | c | `{HERE}::rows` |", f"a: there is no test {HERE}::rows"),
        (f"| a | b | `{HERE}::test_every_row_holds` |", "a: has 3 cells instead of 4"),
        (f"| a | b | c | `{HERE}::test_every_row_holds` |\n" * 2, "a: is given twice"),
    ],
)
def test_a_row_that_does_not_hold_is_found(row: str, fault: str) -> None:
    table = f"| {' | '.join(HEADER)} |\n| --- | --- | --- | --- |\n{row}\n"
    assert fault in faults(table)


def test_a_row_that_holds_is_accepted() -> None:
    assert (
        faults(f"| a \\| b | b | c | `{HERE}::test_every_row_holds`, `{HERE}::test_a_row_that_holds_is_accepted` |")
        == []
    )
