"""`make bench`: raw libpod calls and Rootlet in turns, and the table of what is reached.

python -m tests.bench                                   # eight rounds: some 60 minutes on a quiet machine of two CPUs
python -m tests.bench --quick                           # one small round: whether it works, in about a minute
python -m tests.bench --plans "empty host" --rounds 3 --out now.json --compare before.json
python -m tests.bench --plans "beside 300" --phases restart --rounds 3
python -m tests.bench --plans "empty host" --store transient      # beside raw calls on both stores
ROOTLET_BENCH_DIRECTORY=/dev/shm/bench python -m tests.bench      # with Podman's storage on a disk of that name
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.clock import monotonic
from supervisor.config.settings import PodmanSettings, seconds
from tests.bench.byte_code import make_byte_code
from tests.bench.default_periods import set_default_periods
from tests.bench.own_storage import file_system, own_storage
from tests.bench.phases import Bench, Recorder, Services, Windows
from tests.bench.schedule import Phase, Step, schedules
from tests.bench.sleepers import load
from tests.bench.table import PLANS, TABLE, Outcome, as_json, as_text, medians, outcome
from tests.e2e.agent import Agent
from tests.support.podman_service import STORE, TRANSIENT, podman, running_service

QUICK_DIVISOR: Final = 20
CUT_OFF: Final = 130
"""Exit code after Ctrl-C or SIGTERM, as of a shell."""
PLAIN: Final = PodmanSettings(cleanup_delay_s=seconds("0s"))
"""Podman as it is without us."""
QUICK: Final = Windows(idle_timeout_s=2.0, idle_s=2.0, resync_s=0.0, restarts=2, gets=1)


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    make_byte_code()
    os.environ[STORE] = options.store
    run = Run(options, load())
    phases = set(options.phases) - (set() if options.store == TRANSIENT else {Phase.DEFAULT_STORE})
    try:
        with own_storage() as run_name:
            for steps in schedules(options.plans, options.rounds, phases):
                run.carry_out(steps, run_name)
    except KeyboardInterrupt:
        return CUT_OFF
    print(run.report(), flush=True)
    return 0


@contextlib.contextmanager
def other_services(store: str) -> Iterator[Services]:
    """Services that raw calls use beside the agent's, whose store is named."""
    with tempfile.TemporaryDirectory(prefix="rl-plain-", dir="/tmp") as directory, contextlib.ExitStack() as running:

        def socket(name: str, settings: PodmanSettings) -> str:
            home = Path(directory, name)
            home.mkdir()
            return str(running.enter_context(running_service(home, settings)))

        plain = socket("plain", PLAIN)
        yield Services(plain, socket("default", PodmanSettings()) if store == TRANSIENT else "")


class Run:
    """The figures so far."""

    def __init__(self, options: argparse.Namespace, load_before: str) -> None:
        self._options = options
        self._before = medians(options.compare.read_text()) if options.compare is not None else None
        self._load_before = load_before
        self._plans = {plan.name: plan.scaled(options.divisor) for plan in PLANS}
        self._windows = QUICK if options.quick else Windows(idle_s=options.idle_seconds)
        self._recorders = {name: Recorder() for name in options.plans}

    def carry_out(self, steps: Sequence[Step], run_name: str) -> None:
        """All steps, on an agent of their own."""
        agent = Agent(f"{run_name}-agent")
        # How long the API server stays is not the default: else every look at idle processes took two minutes.
        set_default_periods(agent, {"idleTimeout": f"{self._windows.idle_timeout_s:g}s"})
        try:
            agent.start()
            with other_services(self._options.store) as services:
                benches = {
                    name: Bench(agent, services, plan, self._windows, run_name, self._recorders.get(name, Recorder()))
                    for name, plan in self._plans.items()
                }
                for step in steps:
                    self._carry_out(step, benches[step.plan])
        except BaseException:
            # Shown before pods and files are removed, which takes minutes.
            print(self.report("cut off: what was measured by then"), flush=True)
            raise
        finally:
            agent.close()

    def _carry_out(self, step: Step, bench: Bench) -> None:
        began = monotonic()
        bench.run(step)
        took_s = monotonic() - began
        print(f"{step.plan}, round {step.round}: {step.phase} {took_s:.0f} s; {load()}", file=sys.stderr, flush=True)
        for warning in bench.warnings:
            print(f"  a start failed: {warning}", file=sys.stderr, flush=True)
        if self._options.out is not None:  # what was measured by then is kept
            self._options.out.write_text(as_json(self._outcomes(), _about(self._options.rounds)))

    def report(self, how: str = "in turns") -> str:
        """The table, with what is to be known about the run."""
        versions = f"{version('rootlet')}, Podman {_podman_version()}, Python {platform.python_version()}"
        return (
            f"\n{versions}; {self._options.rounds} rounds, {self._options.store} store on {file_system()}\n"
            f"{how}, median (lowest to highest), ratio (95 % interval); {self._load_before} before, {load()} after\n"
            f"{as_text(self._outcomes(), self._before)}"
        )

    def _outcomes(self) -> list[Outcome]:
        return [
            outcome(msgspec.structs.replace(row, plan=self._plans[row.plan.name]), recorder.samples)
            for name, recorder in self._recorders.items()
            for row in TABLE
            if row.plan.name == name
        ]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    names = [plan.name for plan in PLANS]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROOTLET_BENCH_ROUNDS", "8")))
    parser.add_argument("--plans", nargs="+", default=names, choices=names, help="populations, by their names")
    phases = parser.add_argument("--phases", nargs="+", type=Phase, default=tuple(Phase), choices=tuple(Phase))
    phases.help = "only these, and those that make and remove the pods that they need"
    parser.add_argument("--store", choices=("default", TRANSIENT), default="default", help="podman.store of the agent")
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
    return {
        "version": version("rootlet"),
        "podman": _podman_version(),
        "load": load(),
        "rounds": rounds,
        "storage": file_system(),
    }


def _podman_version() -> str:
    return podman("version", "--format", "{{.Server.Version}}").strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
