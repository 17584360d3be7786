"""Tests that failed beside others and are run once more, alone: ``python -m tests.second_chance CACHE`` prints them.

`make test` has five files at a time on two CPUs, with real Podman and real clocks below them. A test that fails there
and passes alone is told by name, as a defect to be mended, and does not refuse the whole. What depends on nothing but
its own input gets no second chance: units, the simulation, the documents.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

MOST: Final = 3
"""The number of tests of a run that may be tried again: more failures than that are the fault of a change."""
ON_REAL_PARTS: Final = ("tests/chaos/", "tests/contract/", "tests/e2e/", "tests/integration/", "tests/process/")


def second_chances(failed: Iterable[str]) -> list[str]:
    """The failed tests, when all of them may be run again; else none."""
    names = sorted(failed)
    may = len(names) <= MOST and all(name.startswith(ON_REAL_PARTS) and "::" in name for name in names)
    return names if may else []


def main(argv: Sequence[str]) -> int:
    """One name a line, none when nothing may be run again. Raises OSError, ValueError for a cache without failures."""
    for name in second_chances(json.loads(Path(argv[0], "v/cache/lastfailed").read_bytes())):
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
