"""``python -m tests.docs``: run the commands of the pages, and say where their output is another one than is printed.

``--write`` prints a page with the new outputs instead.
"""

from __future__ import annotations

import argparse
import difflib
import sys

from tests.docs.pages import PAGES, ROOT, renewed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs", description=__doc__)
    parser.add_argument("page", nargs="?", default=PAGES[0], choices=PAGES)
    parser.add_argument("--write", action="store_true", help="Print the page with the new outputs.")
    chosen = parser.parse_args()
    before = (ROOT / chosen.page).read_text()
    after = renewed(before)
    if chosen.write:
        sys.stdout.write(after)
        return 0
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "page", "run"))
    return int(after != before)


if __name__ == "__main__":
    sys.exit(main())
