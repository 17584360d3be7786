"""Runs groups of cases and counts. Knows no case by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.kubelet_tables import environment_groups, gc_groups, status_groups, worker_groups
from tests.kubelet_tables.later import Later

Case = Mapping[str, Any]

DEFAULT_FILE: Final = Path(__file__).resolve().parents[3] / "shared" / "kubelet_cases.json"
META: Final = "_meta"


LATER: Final[Mapping[str, str]] = {}
"""Group -> the work that it belongs to."""

Adapter = Callable[[Case], tuple[object, object]]
"""(expected, got) of one case. Raises `Later` for a case about something that comes later."""


class Failure(msgspec.Struct, frozen=True):
    """One case that came out differently; an adapter that raised counts, with the error as what it got."""

    case: str
    expected: object
    got: object


class GroupReport(msgspec.Struct, frozen=True, kw_only=True):
    """One group's outcome."""

    group: str
    passed: int = 0
    failures: tuple[Failure, ...] = ()
    skipped: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Reason -> how many cases."""


def load_cases(file: Path) -> dict[str, list[Case]]:
    """Group name -> cases. Raises OSError, or ValueError for a file of another format."""
    groups = json.loads(file.read_text())
    if not isinstance(groups, dict) or META not in groups:
        raise ValueError(f"{file}: not a file of kubelet cases: no {META}")
    return {name: cases for name, cases in groups.items() if name != META}


def adapters() -> dict[str, Adapter]:
    """Group name -> its adapter."""
    of_modules = (worker_groups, status_groups, gc_groups, environment_groups)
    return {group: adapter for module in of_modules for group, adapter in module.ADAPTERS.items()}


def run_group(group: str, cases: Iterable[Case], adapter: Adapter | None) -> GroupReport:
    if adapter is None:
        return GroupReport(group=group, skipped={LATER.get(group, "no adapter knows this group"): len(list(cases))})
    passed, failures, skipped = 0, [], dict[str, int]()
    for case in cases:
        try:
            expected, got = adapter(case)
        except Later as later:
            skipped[str(later)] = skipped.get(str(later), 0) + 1
            continue
        if expected == got:
            passed += 1
        else:
            failures.append(Failure(case["name"], expected, got))
    return GroupReport(group=group, passed=passed, failures=tuple(failures), skipped=skipped)
