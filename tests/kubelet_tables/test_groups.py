"""The groups that are answered for pass in full; whatever else a file may hold is told in words."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kubelet_tables.findings import CONTRADICTIONS, NOT_BUILT, UNREAD
from tests.kubelet_tables.runner import DEFAULT_FILES, adapters, load_cases, not_built, run_group
from tests.support.variants import seldom

ROOT: Final = Path(__file__).parents[2]
MISSING: Final = [str(file) for file in DEFAULT_FILES if not file.exists()]
needs_tables: Final = pytest.mark.skipif(bool(MISSING), reason=f"not there: {', '.join(MISSING)}")


@cache
def groups() -> dict[str, list[Any]]:
    return {group: cases for file in DEFAULT_FILES for group, cases in load_cases(file).items()}


@needs_tables
@pytest.mark.parametrize("group", sorted(adapters()))
def test_group_passes(group: str) -> None:
    report = run_group(group, groups()[group], adapters()[group])
    assert report.failures == ()
    assert report.passed


@needs_tables
def test_every_group_has_an_adapter_or_waits_for_some_work() -> None:
    waiting = groups().keys() - adapters().keys()
    assert {not_built(group) for group in waiting} <= set(NOT_BUILT.values())


@needs_tables
def test_what_is_known_of_cases_is_about_cases_that_are_there() -> None:
    assert {(group, name) for group, name in CONTRADICTIONS} <= {
        (group, case["name"]) for group, cases in groups().items() for case in cases
    }
    fields = {group: set().union(*cases) for group, cases in groups().items() if cases}
    assert [(group, field) for group, known in UNREAD.items() for field in known if field not in fields[group]] == []


@pytest.mark.parametrize(
    ("group", "case"),
    [
        ("pod_phase", None),
        ("pod_phase", "text"),
        ("pod_phase", {}),
        ("pod_phase", {"name": 1}),
        ("pod_phase", {"name": "x"}),
        ("pod_phase", {"name": "x", "pod": 1}),
        ("truncate_hostname", {"name": "x", "input": "a", "expected": "a", "new_field": True}),
        ("truncate_hostname", {"name": "x", "input": 1, "expected": "a"}),
        ("flowcontrol_backoff", {"name": "x", "initial_s": 1, "max_s": 2, "ops": [{"op": "jump"}]}),
        ("label_selector_match", {"name": "x", "labels": {}, "requirements": [{"key": "a", "operator": "like"}]}),
        ("print_timestamp", {"name": "x", "direction": "sideways", "timestamp": None, "now": None, "expected": ""}),
        ("container_gc", {"name": "x", "containers": [{}]}),
    ],
)
def test_what_an_adapter_does_not_know_is_that_cases_failure(group: str, case: Any) -> None:
    good = {"name": "good", "input": "a", "expected": "a"}
    report = run_group(group, [case], adapters()[group])
    assert len(report.failures) == 1
    assert isinstance(report.failures[0].got, str), "told in words"
    assert run_group("truncate_hostname", [case, good], adapters()["truncate_hostname"]).passed == 1, "others go on"


def test_a_case_that_contradicts_its_source_is_skipped_with_that_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    group, case = "truncate_hostname", {"name": "x", "input": "a", "expected": "b"}
    assert run_group(group, [case], adapters()[group]).failures
    monkeypatch.setattr("tests.kubelet_tables.runner.CONTRADICTIONS", {(group, "x"): "it says a"})
    report = run_group(group, [case], adapters()[group])
    assert (report.failures, report.skipped) == ((), {"contradicts the source that it names: it says a": 1})


def command_line(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.kubelet_tables", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_any_file_of_that_form_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    cases = {
        "_meta": {},
        "truncate_hostname": [{"name": "short", "input": "a", "expected": "a"}, {"name": "odd", "op": "turn"}],
        "of_another_world": [{"name": "x"}, {"name": "y"}],
    }
    file.write_text(json.dumps(cases))
    done = command_line(file)
    assert (done.returncode, done.stderr) == (1, "")
    assert "truncate_hostname: 1 passed, 1 failed, 0 skipped" in done.stdout
    assert "FAILED odd" in done.stdout
    assert "no field or operation 'expected'" in done.stdout
    assert "of_another_world: not built, 2 cases" in done.stdout
    assert done.stdout.endswith("1 passed, 1 failed, 0 skipped; 1 groups not built (2 cases)\n")


@pytest.mark.parametrize(
    "text", ["no JSON", '{"_meta": {}, "pod_phase": 1}', *map(seldom, ("", "[]", "{}", "[" * 100_000))]
)
def test_a_file_of_another_form_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cases.json"
    file.write_text(text)
    done = command_line(file)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    done = command_line(tmp_path / "missing.json")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
