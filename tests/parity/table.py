"""The rows, and what makes one of them wrong."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tests.named_tests import missing

ROOT: Final = Path(__file__).resolve().parents[2]
DATA_FILE: Final = ROOT / "docs" / "parity.toml"


class State(enum.StrEnum):
    """How far Rootlet is with a behaviour."""

    DONE = "done"
    PARTLY = "partly"
    LATER = "later"
    NOT_POSSIBLE = "not possible rootless"
    NOT_OURS = "not ours"


SHOWN_BY_TESTS: Final = frozenset({State.DONE, State.PARTLY})
"""Something of it is claimed to be there, so something has to show it."""


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One behaviour of the kubelet."""

    title: str
    state: State
    note: str = ""
    """Gap, or why it is not here; of a row that is done, what differs on purpose."""
    tests: tuple[str, ...] = ()
    """Each ``path::name``, the path from the project's root; a parametrised test without its parameters."""


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Behaviours with one subject."""

    id: str
    title: str
    rows: dict[str, Row]
    """By id, in the order of the page."""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything, in the order of the page."""

    group: tuple[Group, ...]

    def rows(self) -> Iterator[tuple[str, Row]]:
        for group in self.group:
            yield from group.rows.items()


def load(data: bytes) -> Table:
    """Raises msgspec.DecodeError: no TOML (a row given twice among that), or not of the types above."""
    return msgspec.toml.decode(data, type=Table)


def faults(table: Table, root: Path) -> list[str]:
    """Everything that is wrong, a line each; test files are looked up below ``root``."""
    lost = frozenset(missing((reference for _, row in table.rows() for reference in row.tests), root))
    return [*_wrong_groups(table), *(f"{id}: {fault}" for id, row in table.rows() for fault in _wrong(row, lost))]


def _wrong_groups(table: Table) -> Iterator[str]:
    ids = [group.id for group in table.group]
    yield from (f"{id}: this group is given twice" for id in sorted(set(ids)) if ids.count(id) > 1)
    for group in table.group:
        wanted = [f"{group.id}-{number:02}" for number in range(1, len(group.rows) + 1)]
        if list(group.rows) != wanted:
            yield f"{group.id}: its rows are not {group.id}-01, {group.id}-02, … in this order"


def _wrong(row: Row, lost: frozenset[str]) -> Iterator[str]:
    if not row.title.strip():
        yield "has no title"
    if row.state is not State.DONE and not row.note.strip():
        yield f"is {row.state} and does not say why"
    if row.state in SHOWN_BY_TESTS and not row.tests:
        yield f"is {row.state} and names no test"
    yield from (f"there is no test {reference}" for reference in row.tests if reference in lost)


def count(rows: Mapping[str, Row]) -> dict[State, int]:
    """How many rows are in each state."""
    states = [row.state for row in rows.values()]
    return {state: states.count(state) for state in State}
