"""docs/security.md: every promise names attacks that exist, and every attack tries a promise."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import pytest

from tests.attack.catalogue import ATTACKS, QUICK
from tests.parity.table import ROOT

PAGE: Final = ROOT / "docs" / "security.md"
PROMISES: Final = ("## What is promised", "## What is not promised")
NAME: Final = re.compile(r"`([^`]+)`")
NAMES: Final = frozenset(attack.name for attack in ATTACKS)


def promises(text: str) -> list[tuple[str, ...]]:
    """The cells of every row between the two headings, without the table's head."""
    part = text.partition(PROMISES[0])[2].partition(PROMISES[1])[0]
    rows = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [tuple(cell.strip() for cell in row.split("|")[1:-1]) for row in rows]


def faults(text: str, names: Collection[str] = NAMES) -> list[str]:
    """Everything that is wrong with the page, a line each."""
    wrong, tried = [], set()
    for row in promises(text):
        attacks = NAME.findall(row[-1])
        tried |= set(attacks)
        wrong += [f"{row[0]}: names no attack"] if not attacks else []
        wrong += [f"{row[0]}: there is no attack {name}" for name in attacks if name not in names]
    return wrong + [f"{name} tries no promise" for name in sorted(set(names) - tried)]


def test_every_promise_is_attacked_and_every_attack_stands_in_one() -> None:
    assert len(promises(PAGE.read_text())) > 10
    assert faults(PAGE.read_text()) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| a | b | by hand |", "a: names no attack"),
        ("| a | b | `nowhere` |", "a: there is no attack nowhere"),
        ("| a | b | `x` |", "y tries no promise"),
    ],
)
def test_a_row_that_does_not_hold_is_found(row: str, fault: str) -> None:
    page = f"{PROMISES[0]}\n\n| who | what | the attacks |\n| --- | --- | --- |\n{row}\n\n{PROMISES[1]}\n"
    assert fault in faults(page, {"x", "y"})


def test_attacks_say_what_they_do_and_what_may_come_of_it() -> None:
    assert len(NAMES) == len(ATTACKS)
    assert all(attack.deed.endswith(".") and attack.own and not attack.own.endswith(".") for attack in ATTACKS)
    assert len(QUICK) > 10
