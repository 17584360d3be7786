"""Command line of the tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.kubelet_tables.runner import DEFAULT_FILE, GroupReport, adapters, load_cases, run_group


def main() -> int:
    arguments = _arguments()
    groups = load_cases(arguments.file)
    wanted = groups if arguments.group is None else {arguments.group: groups.get(arguments.group, [])}
    reports = [run_group(name, cases, adapters().get(name)) for name, cases in wanted.items()]
    for report in reports:
        _show(report, verbose=arguments.verbose)
    passed, failed = sum(r.passed for r in reports), sum(len(r.failures) for r in reports)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kubelet_tables", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE)
    parser.add_argument("--group", help="only this group")
    parser.add_argument("-v", "--verbose", action="store_true", help="skipped cases too, with the reason")
    return parser.parse_args()


def _show(report: GroupReport, *, verbose: bool) -> None:
    skipped = sum(report.skipped.values())
    print(f"{report.group}: {report.passed} passed, {len(report.failures)} failed, {skipped} skipped")
    for failure in report.failures:
        print(f"  FAILED {failure.case}\n    expected {failure.expected}\n    got      {failure.got}")
    if verbose or not report.passed:
        for reason, count in report.skipped.items():
            print(f"  skipped {count}: {reason}")


if __name__ == "__main__":
    sys.exit(main())
