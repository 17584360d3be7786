"""Reads the source: state is assigned by the object that it belongs to, and by nobody else.

Others call a method or get a value. An object of a private class is its module's own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
ROOMS: Final = (
    "admission",
    "desired",
    "loop",
    "managers",
    "node",
    "podcontrol",
    "pods",
    "record",
    "sources",
    "state",
    "status",
)
FILES: Final = sorted(file for room in ROOMS for file in (ROOT / "supervisor" / room).rglob("*.py"))
SHARED: Final = ("pods/lifecycle.py", "pods/record.py")
"""Modules whose objects many others hold."""
PARTS: Final = ROOT / "supervisor" / "pods" / "parts.py"
_OWNER: Final = re.compile(r"Owner:\s+`([\w.]+)`")
SETTERS: Final = frozenset({"setattr", "delattr", "object.__setattr__", "object.__delattr__"})


def foreign_assignments(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of every attribute that is assigned or deleted on anything but ``self``."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) if not _is_of_self(node):
                yield node.lineno, node.attr
            case ast.Call(func=func) if ast.unparse(func) in SETTERS:
                yield node.lineno, ast.unparse(node)


def own_attributes(tree: ast.Module) -> frozenset[str]:
    """Names that the classes of a module declare or assign to ``self``."""
    return frozenset(name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for name in _declared(node))


@cache
def part_owners() -> Mapping[str, Path]:
    """Module that replaces each part of a pod's record: the docstring of the part or of its type names it."""
    classes = {node.name: node for node in ast.parse(PARTS.read_text()).body if isinstance(node, ast.ClassDef)}
    of_types = {name: ast.get_docstring(node) or "" for name, node in classes.items()}
    body, texts = classes["PodParts"].body, {}
    for declared, told in pairwise([*body, ast.Pass()]):
        match declared:
            case ast.AnnAssign(target=ast.Name(id=part), annotation=type):
                text = str(ast.literal_eval(told.value)) if isinstance(told, ast.Expr) else ""
                texts[part] = text + of_types.get(ast.unparse(type).split(" ")[0], "")
    named = {part: _OWNER.findall(text) for part, text in texts.items()}
    assert [part for part, owners in named.items() if len(owners) != 1] == [], "one owner each"
    return {part: ROOT.joinpath(*owner.split(".")).with_suffix(".py") for part, [owner] in named.items()}


def _declared(of: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(of):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Attribute(ctx=ast.Store()) if _is_of_self(node):
                yield node.attr


def _is_of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def test_there_is_something_to_check() -> None:
    assert {file.relative_to(ROOT / "supervisor").parts[0] for file in FILES} == set(ROOMS)
    lifecycle, state = ((ROOT / "supervisor" / name).read_text() for name in SHARED)
    assert {"phase", "pending", "in_flight", "grace_period_s"} <= own_attributes(ast.parse(lifecycle))
    assert {"slot", "successor"} <= own_attributes(ast.parse(state))


def test_every_part_of_a_pod_has_an_owner() -> None:
    texts = {part: owner.read_text() for part, owner in part_owners().items()}
    assigned = {part: {name for _, name in foreign_assignments(ast.parse(text))} for part, text in texts.items()}
    assert assigned
    assert [part for part, names in assigned.items() if part not in names] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_only_its_owner_assigns_state(file: Path) -> None:
    tree = ast.parse(file.read_text())
    of_pods = frozenset().union(
        *(own_attributes(ast.parse((ROOT / "supervisor" / name).read_text())) for name in SHARED)
    )
    parts = {part for part, owner in part_owners().items() if owner == file}
    own = (own_attributes(tree) - of_pods - part_owners().keys()) | parts
    assert [found for found in foreign_assignments(tree) if found[1] not in own] == []


@pytest.mark.parametrize(
    "source",
    [
        "state.pending = True",
        "state.lifecycle.phase = SYNC",
        "self.state.slot += 1",
        "a.x, (b.y, c) = 1, (2, 3)",
        "for state.slot in slots: pass",
        "del state.successor",
        "setattr(state, 'slot', 1)",
        "object.__setattr__(state, 'slot', 1)",
    ],
)
def test_an_assignment_is_seen(source: str) -> None:
    assert list(foreign_assignments(ast.parse(source)))


@pytest.mark.parametrize("source", ["self.slot = 1", "slot = state.slot", "state.move(1)", "slots[state.slot] = 1"])
def test_what_is_no_foreign_assignment_is_not_taken_for_one(source: str) -> None:
    assert not list(foreign_assignments(ast.parse(source)))
