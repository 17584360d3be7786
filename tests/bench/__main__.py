"""`make bench`: raw libpod calls and Rootlet in turns, and the table of what is reached.

python -m tests.bench                                   # five rounds: some 40 minutes on a quiet machine of two CPUs
python -m tests.bench --quick                           # one small round: whether it works, in about a minute
python -m tests.bench --plans "empty host" --rounds 3 --out now.json --compare before.json
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from supervisor.config.settings import PodmanSettings, seconds
from tests.bench.default_periods import set_default_periods
from tests.bench.own_storage import own_storage
from tests.bench.phases import Bench, Windows
from tests.bench.sleepers import load
from tests.bench.table import PLANS, TABLE, Outcome, Plan, as_json, as_text, medians, outcome
from tests.e2e.agent import Agent
from tests.podman_service import IMAGE, podman, running_service

QUICK_DIVISOR: Final = 20
PLAIN: Final = PodmanSettings(cleanup_delay_s=seconds("0s"))
"""Podman as it is without us."""
QUICK: Final = Windows(idle_timeout_s=2.0, idle_s=2.0, rest_s=0.1, gets=1)


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plans = [plan.scaled(options.divisor) for plan in PLANS if plan.name in options.plans]
    windows = QUICK if options.quick else Windows(idle_s=options.idle_seconds)
    outcomes: list[Outcome] = []
    before = medians(options.compare.read_text()) if options.compare is not None else None
    load_before = load()
    with own_storage() as run_name:
        for plan in plans:
            outcomes += measure(plan, options.rounds, windows, run_name)
            if options.out is not None:  # what was measured by then is kept
                options.out.write_text(as_json(outcomes, _about(options.rounds)))
    versions = f"{version('rootlet')}, Podman {_podman_version()}, Python {platform.python_version()}"
    print(f"\n{versions}; {options.rounds} rounds")
    print(f"in turns, median (lowest to highest); {load_before} before, {load()} after")
    print(as_text(outcomes, before), flush=True)
    return 0


def measure(plan: Plan, rounds: int, windows: Windows, run_name: str) -> list[Outcome]:
    """The plan's rows, on an agent of its own."""
    rows = [msgspec.structs.replace(row, plan=plan) for row in TABLE if row.plan.name == plan.name]
    phases = frozenset(row.phase for row in rows)
    with contextlib.ExitStack() as stack:
        agent = Agent(f"{run_name}-agent")
        stack.callback(agent.close)
        # How long the API server stays is not the default: else every look at idle processes took two minutes.
        set_default_periods(agent, {"idleTimeout": f"{windows.idle_timeout_s:g}s"})
        agent.start()
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rl-plain-", dir="/tmp")))
        plain = stack.enter_context(running_service(directory, PLAIN))
        bench = Bench(agent, plain, plan, windows, run_name, IMAGE)
        with bench.others():
            for number in range(rounds):
                bench.round(phases)
                print(f"{plan.name}: round {number + 1} of {rounds}; {load()}", file=sys.stderr, flush=True)
                for warning in bench.warnings:
                    print(f"  a start failed: {warning}", file=sys.stderr, flush=True)
    return [outcome(row, bench.recorder.samples) for row in rows]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    names = [plan.name for plan in PLANS]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROOTLET_BENCH_ROUNDS", "5")))
    parser.add_argument("--plans", nargs="+", default=names, choices=names, help="populations, by their names")
    parser.add_argument("--divisor", type=int, default=1, help="so many times fewer pods than the table says")
    parser.add_argument("--idle-seconds", type=float, default=Windows().idle_s, help="length of one look at idling")
    parser.add_argument("--quick", action="store_true", help="one small round of everything: proves that it works")
    parser.add_argument("--out", type=Path, help="file for the figures, as JSON")
    parser.add_argument("--compare", type=Path, help="such a file of another run: its medians beside these")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.divisor = 1, QUICK_DIVISOR
    return options


def _about(rounds: int) -> dict[str, Any]:
    return {"version": version("rootlet"), "podman": _podman_version(), "load": load(), "rounds": rounds}


def _podman_version() -> str:
    return podman("version", "--format", "{{.Server.Version}}").strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
