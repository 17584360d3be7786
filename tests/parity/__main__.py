"""Print the page, or what is wrong with the rows."""

from __future__ import annotations

import sys

from tests.parity.page import page
from tests.parity.table import DATA_FILE, ROOT, faults, load


def main() -> int:
    table = load(DATA_FILE.read_bytes())
    wrong = faults(table, ROOT)
    for fault in wrong:
        print(fault, file=sys.stderr)
    if not wrong:
        print(page(table), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
