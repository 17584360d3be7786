"""Command line of the storm."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

from ipc.host.clock import wall
from tests.chaos.plan import make_plan
from tests.chaos.run import run
from tests.support.podman_service import ensure_image, remove_of_dead_runs, why_not

MAX_SEED = 2**32


def main() -> int:
    arguments = _arguments()
    plan = make_plan(arguments.seed, arguments.minutes * 60, arguments.pods)
    if arguments.plan:
        print(*(f"{fault.at_s:7.1f} s  {fault}" for fault in plan.faults), sep="\n")
        return 0
    if reason := why_not():
        print(reason, file=sys.stderr)
        return 2
    remove_of_dead_runs()
    with tempfile.TemporaryDirectory() as directory:
        ensure_image(Path(directory))
    outcome = run(plan, f"test-{os.getpid()}-{int(wall())}", lambda line: print(line, flush=True))
    return 0 if outcome.is_good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(MAX_SEED), help="of the plan (default: any)")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long the storm lasts (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=10, help="half of them are left alone (default: %(default)s)")
    parser.add_argument("--plan", action="store_true", help="print the plan of faults and do nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
