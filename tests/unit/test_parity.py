"""docs/parity.md: it is true to its data, and its data to the tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.parity.mutations import MUTATIONS, Mutation
from tests.parity.page import page
from tests.parity.table import DATA_FILE, ROOT, Group, Row, State, Table, faults, load

BEHAVIOURS: Final = ROOT.parent / "shared" / "KUBELET.md"
"""The list of the kubelet's behaviours, where it lies beside the project."""
BEHAVIOUR: Final = re.compile(r"^\| ([A-Z]+-\d{2}) \|", re.MULTILINE)
BEYOND: Final = frozenset({"PORT-05", "IMG-16", "SRV-29"})
"""Rows of what is no part of the kubelet, but of every node that it runs on, and of what is newer than the list."""
HERE: Final = "tests/unit/test_parity.py"

DONE = Row(title="it does something", state=State.DONE, tests=(f"{HERE}::test_every_row_holds",))


def table_of(*rows: Row) -> Table:
    return Table(group=(Group(id="XY", title="a subject", rows={f"XY-{n:02}": row for n, row in enumerate(rows, 1)}),))


def changed(**fields: object) -> Row:
    return msgspec.structs.replace(DONE, **fields)


def test_every_row_holds() -> None:
    assert faults(load(DATA_FILE.read_bytes()), ROOT) == []


def test_the_page_is_what_the_rows_say() -> None:
    assert (ROOT / "docs" / "parity.md").read_text() == page(load(DATA_FILE.read_bytes())), (
        "python -m tests.parity > docs/parity.md"
    )


@pytest.mark.skipif(not BEHAVIOURS.exists(), reason=f"{BEHAVIOURS} is not there")
def test_every_behaviour_has_its_row() -> None:
    wanted = BEHAVIOUR.findall(BEHAVIOURS.read_text())
    rows = [id for id, _ in load(DATA_FILE.read_bytes()).rows()]
    assert [id for id in rows if id not in BEYOND] == wanted


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.row)
def test_a_mutation_fits_its_row_and_its_file(mutation: Mutation) -> None:
    """Whether the row's test notices it is tried by `tests.parity.test_mutations`."""
    rows = dict(load(DATA_FILE.read_bytes()).rows())
    assert mutation.test in rows[mutation.row].tests
    assert (ROOT / mutation.file).read_text().count(mutation.old) == 1


def test_there_are_mutations_of_many_rows() -> None:
    assert len({mutation.row for mutation in MUTATIONS}) >= 20


def test_a_row_that_holds_is_accepted() -> None:
    assert faults(table_of(DONE), ROOT) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (changed(tests=()), "XY-01: is done and names no test"),
        (changed(state=State.PARTLY, note="the rest", tests=()), "XY-01: is partly and names no test"),
        (changed(tests=(f"{HERE}::test_of_nothing",)), f"XY-01: there is no test {HERE}::test_of_nothing"),
        (changed(tests=(f"{HERE}::changed",)), f"XY-01: there is no test {HERE}::changed"),
        (changed(tests=("tests/unit/test_nowhere.py::test_x",)), "XY-01: there is no test tests/unit/test_nowhere"),
        (changed(tests=(HERE,)), f"XY-01: there is no test {HERE}"),
        (changed(state=State.PARTLY), "XY-01: is partly and does not say why"),
        (changed(state=State.LATER), "XY-01: is later and does not say why"),
        (changed(state=State.NOT_POSSIBLE), "XY-01: is not possible rootless and does not say why"),
        (changed(state=State.NOT_OURS, note=" "), "XY-01: is not ours and does not say why"),
        (changed(title=""), "XY-01: has no title"),
    ],
)
def test_a_row_that_does_not_hold_is_refused(row: Row, fault: str) -> None:
    found = faults(table_of(row), ROOT)
    assert len(found) == 1
    assert found[0].startswith(fault)


def test_a_method_of_a_class_is_a_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("class TestIt:\n    async def test_this(self): ...\n")
    there, elsewhere = changed(tests=("test_it.py::TestIt::test_this",)), changed(tests=("test_it.py::test_this",))
    assert faults(table_of(there), tmp_path) == []
    assert faults(table_of(elsewhere), tmp_path) == ["XY-01: there is no test test_it.py::test_this"]


def test_rows_are_numbered_through() -> None:
    group = Group(id="XY", title="a subject", rows={"XY-02": DONE})
    assert faults(Table(group=(group,)), ROOT) == ["XY: its rows are not XY-01, XY-02, … in this order"]
    assert faults(Table(group=(group, group)), ROOT)[0] == "XY: this group is given twice"


@pytest.mark.parametrize(
    "text",
    [
        '[[group]]\nid = "X"\ntitle = "x"\n[group.rows.X-01]\ntitle = "t"\nstate = "soon"\n',
        '[[group]]\nid = "X"\ntitle = "x"\n[group.rows.X-01]\ntitle = "t"\nstate = "done"\nwhy = "because"\n',
        '[[group]]\nid = "X"\ntitle = "x"\n[group.rows.X-01]\ntitle = "t"\n',
        '[[group]]\nid = "X"\ntitle = "x"\nrows = {X-01 = {title = "t", state = "later"}, X-01 = {}}\n',
    ],
    ids=["unknown state", "unknown field", "no state", "row given twice"],
)
def test_what_is_no_row_does_not_load(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        load(text.encode())
