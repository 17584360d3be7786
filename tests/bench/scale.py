"""Many pods on the simulated Podman service: what they cost the agent, and how that grows.

    python -m tests.bench.scale --pods 100,1000,5000,10000 --out docs/scale.json

For every number of pods a fresh service and a fresh agent live through the same phases. Counts (calls of Podman) and
memory are exact; CPU time depends little on what else the machine does, duration much.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.clock import monotonic
from supervisor.config.resolution.child_settings import INSPECT_FILE
from supervisor.load_test.processes import Usage
from tests.bench.simulated import PODS_PER_FILE, SimulatedNode, manifests, simulated_node

IDLE_S: Final = 30.0
"""How long nothing happens while it is measured what that costs: several relists, most of a sync period."""
SETTLE_S: Final = 10.0
EDITED: Final = 0.1
"""Part of the pods whose container is replaced, and then of those that are deleted."""
DEADLINE_PER_POD_S: Final = 0.3
DEADLINE_S: Final = 120.0

Json = dict[str, Any]


class Phase(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One phase of one run."""

    seconds: float
    cpu_s: dict[str, float] = msgspec.field(name="cpuSeconds")
    """By process."""
    calls: dict[str, int]
    """Calls of Podman, by name."""
    pss_bytes: dict[str, int]
    """By process, at the end."""


class Meter:
    """Resources that the agent has used between two moments."""

    def __init__(self, node: SimulatedNode) -> None:
        self._node = node
        self._usage, self._calls, self._at = node.usage(), node.service().calls, monotonic()

    def phase(self) -> Phase:
        """From the making of this meter, or from the last phase, until now."""
        seconds = monotonic() - self._at
        before, calls = self._usage, self._calls
        self._usage, self._calls = self._node.usage(), self._node.service().calls
        self._at = monotonic()
        return Phase(
            seconds=round(seconds, 2),
            cpu_s={name: round(_cpu_between(before.get(name), usage), 2) for name, usage in self._usage.items()},
            calls={name: n - calls.get(name, 0) for name, n in self._calls.items() if n > calls.get(name, 0)},
            pss_bytes={name: usage.pss_bytes for name, usage in self._usage.items()},
        )


def _cpu_between(before: Usage | None, after: Usage) -> float:
    """Another process of the same name began at nothing."""
    return after.cpu_seconds - (before.cpu_seconds if before is not None and before.pid == after.pid else 0.0)


def run(pods: int, keep: Callable[[Json], None] = lambda found: None) -> Json:
    """Every phase with that many pods. ``keep`` gets the figures so far after each."""
    deadline_s = DEADLINE_S + pods * DEADLINE_PER_POD_S
    some = max(PODS_PER_FILE, math.floor(pods * EDITED / PODS_PER_FILE) * PODS_PER_FILE)
    phases: dict[str, Phase] = {}
    with simulated_node(pods) as node:
        node.start()
        let_pass(SETTLE_S)
        meter = Meter(node)

        def measure(name: str, act: Callable[[], None]) -> None:
            act()
            phases[name] = meter.phase()
            keep(_figures(pods, some, phases))
            print(f"{pods} pods, {name}: {_line(phases[name])}", flush=True)

        def all_ready(count: int) -> None:
            node.until(lambda: node.service().running == count, deadline_s)
            node.until(lambda: node.ready_pods() == count, deadline_s)

        def start() -> None:
            node.state_pods(manifests(pods))
            all_ready(pods)

        def edit() -> None:
            started = node.service().calls["create container"]
            node.state_pods(manifests(some, edition=1))
            node.until(lambda: node.service().calls["create container"] >= started + some, deadline_s)
            all_ready(pods)

        def resync() -> None:
            """All is inspected anew, because nothing is remembered: two containers for each pod."""
            (node.directory / "memory" / INSPECT_FILE).unlink()
            seen = node.service().calls["inspect container"]
            os.kill(node.workers()["node"]["pid"], signal.SIGKILL)
            node.until(lambda: node.service().calls["inspect container"] >= seen + 2 * pods, deadline_s)
            node.until(lambda: node.workers()["node"]["state"] == "Running", deadline_s)

        def restart() -> None:
            started = node.service().calls["start container"]
            node.kill()
            node.start()
            all_ready(pods)
            assert node.service().calls["start container"] == started, "a restart has started containers"

        def delete() -> None:
            node.withdraw(manifests(some))
            node.until(lambda: node.service().pods == pods - some, deadline_s)
            node.until(lambda: len(node.pods()) == pods - some, deadline_s)

        measure("nothing", lambda: let_pass(SETTLE_S))
        measure("start", start)
        measure("settle", lambda: let_pass(SETTLE_S))
        measure("idle", lambda: let_pass(IDLE_S))
        measure("edit", edit)
        measure("resync", resync)
        measure("restart", restart)
        measure("delete", delete)
    return _figures(pods, some, phases)


def let_pass(window_s: float) -> None:
    """The window of a measurement and no wait: what the agent does in it of its own accord is the result."""
    time.sleep(window_s)


def _figures(pods: int, changed: int, phases: Mapping[str, Phase]) -> Json:
    return {"pods": pods, "changed": changed, "phases": {name: msgspec.to_builtins(p) for name, p in phases.items()}}


def _line(phase: Phase) -> str:
    cpu = " ".join(f"{name} {seconds:.2f}" for name, seconds in phase.cpu_s.items())
    pss = sum(phase.pss_bytes.values()) / 1024**2
    return f"{phase.seconds:.1f} s; CPU {sum(phase.cpu_s.values()):.2f} s ({cpu}); PSS {pss:.1f} MiB; {phase.calls}"


def write(out: Path, found: Mapping[int, Json]) -> None:
    runs = [found[pods] for pods in sorted(found)]
    out.write_text(json.dumps({"cpus": os.cpu_count(), "idleSeconds": IDLE_S, "runs": runs}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--pods", default="100,1000,5000,10000", help="how many, one run for each")
    parser.add_argument("--out", type=Path, help="file for the figures; runs of other sizes that are in it stay")
    options = parser.parse_args()
    found: dict[int, Json] = {}
    if options.out is not None and options.out.exists():
        found = {each["pods"]: each for each in json.loads(options.out.read_text())["runs"]}

    def keep(run: Json) -> None:
        found[run["pods"]] = run
        if options.out is not None:
            write(options.out, found)

    for pods in map(int, options.pods.split(",")):
        run(pods, keep)


if __name__ == "__main__":
    main()
