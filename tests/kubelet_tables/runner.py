"""Runs groups of cases and counts. Knows no case by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.kubelet_tables import (
    api_groups,
    describing_groups,
    environment_groups,
    eviction_groups,
    gc_groups,
    image_gc_groups,
    log_groups,
    mirror_groups,
    node_groups,
    node_registration_groups,
    patch_groups,
    printing_groups,
    resize_groups,
    resource_groups,
    selector_groups,
    server_groups,
    shutdown_groups,
    source_groups,
    status_groups,
    worker_groups,
)
from tests.kubelet_tables.findings import ABOUT_A_CASE, CONTRADICTIONS, NOT_BUILT, UNREAD
from tests.kubelet_tables.later import Later

SHARED: Final = Path(__file__).resolve().parents[3] / "shared"
DEFAULT_FILES: Final = (SHARED / "kubelet_cases.json", SHARED / "kubelet_cases_2.json")
META: Final = "_meta"

Adapter = Callable[[Mapping[str, Any]], tuple[object, object]]
"""(expected, got) of one case. Raises `Later` for a case about something that comes later."""
_MODULES: Final = (
    worker_groups,
    status_groups,
    gc_groups,
    image_gc_groups,
    environment_groups,
    printing_groups,
    describing_groups,
    selector_groups,
    source_groups,
    mirror_groups,
    patch_groups,
    log_groups,
    server_groups,
    node_groups,
    node_registration_groups,
    resize_groups,
    resource_groups,
    eviction_groups,
    shutdown_groups,
    api_groups,
)


class Case(Mapping[str, Any]):
    """One case, which knows the fields that its adapter has read."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self._read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def unread(self) -> set[str]:
        return set(self._fields) - self._read


class Failure(msgspec.Struct, frozen=True):
    """One case that came out differently; ``got`` says in words what an adapter cannot do with it."""

    case: str
    expected: object
    got: object


class GroupReport(msgspec.Struct, frozen=True, kw_only=True):
    """One group's outcome."""

    group: str
    built: bool = True
    """Whether there is an adapter."""
    passed: int = 0
    failures: tuple[Failure, ...] = ()
    skipped: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Reason -> how many cases."""


def load_cases(file: Path) -> dict[str, list[Any]]:
    """Group name -> cases. Raises OSError, or ValueError for a file of another format."""
    try:
        groups = json.loads(file.read_bytes())
    except RecursionError:
        raise ValueError(f"{file}: nested too deeply") from None
    if not isinstance(groups, dict) or META not in groups:
        raise ValueError(f"{file}: not a file of kubelet cases: no {META}")
    cases = {name: cases for name, cases in groups.items() if name != META}
    wrong = [name for name, listed in cases.items() if not isinstance(listed, list)]
    if wrong:
        raise ValueError(f"{file}: not lists of cases: {', '.join(wrong)}")
    return cases


def adapters() -> dict[str, Adapter]:
    """Group name -> its adapter."""
    return {group: adapter for module in _MODULES for group, adapter in module.ADAPTERS.items()}


def run_group(group: str, cases: Iterable[Any], adapter: Adapter | None) -> GroupReport:
    """Every case is counted once: as passed, as a failure or as skipped. Raises nothing for what a case holds."""
    if adapter is None:
        return GroupReport(group=group, built=False, skipped={not_built(group): len(list(cases))})
    passed, failures, skipped = 0, list[Failure](), dict[str, int]()
    for number, fields in enumerate(cases):
        outcome = _run_case(group, number, fields, adapter)
        match outcome:
            case None:
                passed += 1
            case Failure():
                failures.append(outcome)
            case str():
                skipped[outcome] = skipped.get(outcome, 0) + 1
    return GroupReport(group=group, passed=passed, failures=tuple(failures), skipped=skipped)


def not_built(group: str) -> str:
    """Reason why a group without an adapter waits."""
    return next((work for prefix, work in NOT_BUILT.items() if group.startswith(prefix)), "no adapter knows this group")


def _run_case(group: str, number: int, fields: Any, adapter: Adapter) -> Failure | str | None:
    """None: it passed; a text: why it was skipped."""
    if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str):
        return Failure(f"number {number}", "an object with a name", f"{fields!r:.100}")
    name = fields["name"]
    if finding := CONTRADICTIONS.get((group, name)):
        return f"contradicts the source that it names: {finding}"
    case = Case(fields)
    try:
        expected, got = adapter(case)
    except Later as later:
        return str(later)
    except KeyError as error:
        return Failure(name, "a case that its adapter knows", f"no field or operation {error}")
    except Exception as error:  # whatever a case holds is that case's failure
        return Failure(name, "a case that its adapter knows", f"{type(error).__name__}: {error}")
    if unknown := case.unread() - ABOUT_A_CASE - set(UNREAD.get(group, {})):
        return Failure(name, "no field that the adapter does not know", f"unknown: {', '.join(sorted(unknown))}")
    return None if expected == got else Failure(name, expected, got)
