"""Command line of the tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.kubelet_tables.runner import DEFAULT_FILES, GroupReport, adapters, load_cases, run_group

UNREADABLE = 2
"""Exit code for a file that is none of these tables."""


def main() -> int:
    arguments = _arguments()
    known = adapters()
    reports = []
    for file in arguments.files or DEFAULT_FILES:
        try:
            groups = load_cases(file)
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr)
            return UNREADABLE
        wanted = [name for name in groups if arguments.group in (None, name)]
        reports += [run_group(name, groups[name], known.get(name)) for name in wanted]
    for report in reports:
        _show(report, verbose=arguments.verbose)
    return _sum_up(reports)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kubelet_tables", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--group", help="only this group")
    parser.add_argument("-v", "--verbose", action="store_true", help="skipped cases too, with the reason")
    return parser.parse_args()


def _show(report: GroupReport, *, verbose: bool) -> None:
    skipped = sum(report.skipped.values())
    if report.built:
        print(f"{report.group}: {report.passed} passed, {len(report.failures)} failed, {skipped} skipped")
    else:
        print(f"{report.group}: not built, {skipped} cases")
    for failure in report.failures:
        print(f"  FAILED {failure.case}\n    expected {failure.expected}\n    got      {failure.got}")
    if verbose or not report.passed:
        for reason, count in report.skipped.items():
            print(f"  skipped {count}: {reason}")


def _sum_up(reports: Sequence[GroupReport]) -> int:
    """Prints the sums; the exit code."""
    passed, failed = sum(r.passed for r in reports), sum(len(r.failures) for r in reports)
    skipped = sum(sum(r.skipped.values()) for r in reports if r.built)
    waiting = [report for report in reports if not report.built]
    cases = sum(sum(report.skipped.values()) for report in waiting)
    print(f"{passed} passed, {failed} failed, {skipped} skipped; {len(waiting)} groups not built ({cases} cases)")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
