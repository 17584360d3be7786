"""`python -m tests.fuzz --seeds 1..1000`"""

from __future__ import annotations

import argparse
import sys
import traceback

from tests.fuzz.run import run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seeds", default="1..1000", help="one, or a range: 1..1000")
    first, _, last = parser.parse_args().seeds.partition("..")
    failed, accepted, seeds = 0, 0, range(int(first), int(last or first) + 1)
    for seed in seeds:
        try:
            accepted += run_seed(seed)
        except Exception:
            failed += 1
            print(f"seed {seed}:\n{traceback.format_exc()}")
    print(f"{len(seeds)} seeds, {accepted} pods accepted, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
