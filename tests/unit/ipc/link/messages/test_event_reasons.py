"""The table of event reasons and the enumeration of sync errors are the only places that spell them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import ipc
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.sync_error import SyncError

ROOT = Path(ipc.__file__).parent.parent
TABLES = (
    ROOT / "ipc/link/messages/event_reasons.py",
    ROOT / "ipc/link/messages/sync_error.py",
    ROOT / "ipc/link/metrics/reasons.py",
)
"""The last one has values of labels, which tests/unit/ipc/link/metrics/test_table.py holds against the second."""
ROWS = {name: row for name, row in vars(event_reasons).items() if isinstance(row, EventReason)}
COMPOUND = re.compile(r"(?:[A-Z][A-Za-z]*[a-z]){2,}")
"""Reasons of one word (Failed, Timeout) are words of other tables, too."""

OF_GRPC = "DeadlineExceeded"
"""A status of gRPC has the same name (google.golang.org/grpc/codes)."""


class Words(NamedTuple):
    """A module, as far as it matters here: each later search for garbage would walk through its syntax tree."""

    literals: frozenset[str]
    names: frozenset[str]


@cache
def modules() -> dict[Path, Words]:
    files = (file for package in ("ipc", "supervisor", "workers") for file in (ROOT / package).rglob("*.py"))
    return {file: words(ast.parse(file.read_text())) for file in files if file not in TABLES}


def words(tree: ast.Module) -> Words:
    return Words(frozenset(literals(tree)), frozenset(names(tree)))


def literals(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


def test_no_other_module_spells_a_reason() -> None:
    reasons = {row.reason for row in ROWS.values()} | {error.value for error in SyncError}
    compound = {reason for reason in reasons if COMPOUND.fullmatch(reason)} - {OF_GRPC}
    assert len(compound) > 30
    spelled = {str(file.relative_to(ROOT)): compound & module.literals for file, module in modules().items()}
    assert {file: found for file, found in spelled.items() if found} == {}


@pytest.mark.parametrize("name", [*ROWS, *(error.name for error in SyncError)])
def test_every_row_has_a_user(name: str) -> None:
    assert any(name in module.names for module in modules().values())


def test_rows_differ() -> None:
    assert len(set(ROWS.values())) == len(ROWS)


def test_a_rejection_is_a_warning_with_the_reason_of_the_status() -> None:
    row = event_reasons.rejected("OutOfcpu")
    assert (str(row), row.type) == ("OutOfcpu", event_reasons.EventType.WARNING)


def test_a_row_of_upstream_names_its_file() -> None:
    sources = {row.source for row in ROWS.values() if row.source}
    assert all(
        re.fullmatch(r"pkg/(?:kubelet|controller/volume)/[\w/]+\.go, \w+(?: and \w+)*", source) for source in sources
    )
