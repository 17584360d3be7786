"""Command line of the simulation."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import logging
import math
import sys
import time

from tests.sim.cluster.mutations import CLUSTER_MUTATIONS
from tests.sim.cluster.simulation import ClusterOptions
from tests.sim.frame import Outcome
from tests.sim.mutations import MUTATIONS, OF_CLAIMS
from tests.sim.options import Options, Size
from tests.sim.processes import available_cpus, outcomes


def main() -> int:
    arguments = _arguments()
    # The trace says everything; `tests.sim.faults` listens to the log of unexpected errors.
    logging.getLogger().addHandler(logging.NullHandler())
    options: Options | ClusterOptions = Options(
        size=arguments.size,
        pods=arguments.pods,
        pauses=arguments.pauses,
        claims=arguments.claims,
        shutdown=arguments.shutdown,
        verbose=arguments.verbose,
    )
    if arguments.cluster:
        options = ClusterOptions(verbose=arguments.verbose)
    jobs = 1 if arguments.verbose else arguments.jobs
    first, last = arguments.seeds
    if arguments.mutation:
        known = CLUSTER_MUTATIONS if arguments.cluster else {**MUTATIONS, **OF_CLAIMS}
        names = list(known) if arguments.mutation == "all" else [arguments.mutation]
        return max(_try_mutation(name, range(first, last + 1), options, jobs) for name in names)
    began_at = time.monotonic()
    end_at = began_at + arguments.minutes * 60.0 if arguments.minutes else math.inf
    seeds = itertools.takewhile(lambda seed: time.monotonic() < end_at, range(first, last + 1))
    failed = done = 0
    with contextlib.closing(outcomes(seeds, options, jobs)) as every:
        for outcome in every:
            done += 1
            if outcome.broken:
                failed += 1
                _show(outcome, arguments.tail)
                if not arguments.keep_going:
                    break
    print(f"{done} seeds, {failed} failed")
    print(f"{done / (time.monotonic() - began_at):.1f} seeds/s", file=sys.stderr)  # the trace says nothing of real time
    return 1 if failed or not done else 0


def _try_mutation(name: str, seeds: range, options: Options | ClusterOptions, jobs: int) -> int:
    found = [outcome for outcome in outcomes(seeds, options, jobs, name) if outcome.broken]
    example = f", first by seed {found[0].seed}: {found[0].broken}" if found else ""
    print(f"{name}: found by {len(found)} of {len(seeds)} seeds{example}", flush=True)
    return 0 if found else 1


def _show(outcome: Outcome, lines: int) -> None:
    print(*outcome.tail[-lines:], sep="\n")
    print(f"seed {outcome.seed}: {outcome.broken}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=_seeds, default=(1, 100), metavar="A..B", help="or a single one")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop beginning new seeds after that time")
    parser.add_argument("--jobs", type=int, default=available_cpus(), help="how many processes run seeds")
    parser.add_argument("--size", type=Size, choices=tuple(Size), default=Size.MIXED, help="how much is in a seed")
    parser.add_argument("--pods", type=int, default=Options().pods)
    on_or_off = argparse.BooleanOptionalAction
    parser.add_argument("--claims", action=on_or_off, help="claims and volumes, in all seeds or in none")
    parser.add_argument("--pauses", action=on_or_off, help="pods that are paused, likewise")
    parser.add_argument("--shutdown", action=on_or_off, default=True, help="the node is drained, its host goes down")
    parser.add_argument("--cluster", action="store_true", help="a node of a cluster whose API server fails")
    parser.add_argument("--tail", type=int, default=60, help="lines of the trace of a seed that fails")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first seed that fails")
    parser.add_argument("--break", dest="mutation", default="", help="a rule to break on purpose, or `all`")
    parser.add_argument("-v", "--verbose", action="store_true", help="the whole trace, as it comes")
    return parser.parse_args()


def _seeds(text: str) -> tuple[int, int]:
    first, _, last = text.partition("..")
    return int(first), int(last or first)


if __name__ == "__main__":
    sys.exit(main())
