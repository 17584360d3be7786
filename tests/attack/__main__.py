"""Attacks on a real agent beside a canary: python -m tests.attack [--list | --quick | --only NAME ...]"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ipc.host.clock import wall
from tests.attack.attack import Attack
from tests.attack.catalogue import ATTACKS, BY_NAME, QUICK
from tests.attack.ground import ground
from tests.attack.run import run
from tests.support.podman_service import ensure_image, remove_of_dead_runs, why_not


def main() -> int:
    arguments = _arguments()
    attacks = _chosen(arguments)
    if arguments.list:
        print(*(f"{attack.name:32} {attack.deed}\n{'':32} may: {attack.own}" for attack in attacks), sep="\n")
        return 0
    if reason := why_not():
        print(reason, file=sys.stderr)
        return 2
    remove_of_dead_runs()
    with tempfile.TemporaryDirectory() as directory:
        ensure_image(Path(directory))
    with ground(f"test-{os.getpid()}-{int(wall())}") as place:
        outcomes = run(attacks, place, lambda line: print(line, flush=True))
    broken = [outcome.name for outcome in outcomes if outcome.faults]
    longest = max(outcomes, key=lambda outcome: outcome.gap_s)
    print(f"{len(outcomes)} of {len(attacks)} attacks, {len(broken)} broke something: {', '.join(broken) or 'none'}")
    print(f"the canary's longest gap: {longest.gap_s:.2f} s ({longest.name})")
    return int(bool(broken) or len(outcomes) < len(attacks))


def _chosen(arguments: argparse.Namespace) -> Sequence[Attack]:
    if arguments.only:
        return [BY_NAME[name] for name in arguments.only]
    return QUICK if arguments.quick else ATTACKS


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the attacks and do nothing")
    parser.add_argument("--quick", action="store_true", help="those that take some seconds")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(BY_NAME), help="these, in this order")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
