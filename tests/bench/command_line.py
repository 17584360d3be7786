"""Costs of a command: CPU time of its whole process, in turns with an interpreter that does nothing.

    python -m tests.bench.command_line --pods 60 --runs 20
    python -m tests.bench.command_line --beside /path/of/another/checkout     # the same commands of that tree, in turns

The commands ask a real API server in this process, whose master is played as in the tests. CPU time is that of the
kernel's account of the ended process (user and system), so the server's is not in it; the time by the clock has it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ipc.link.messages.api_server import WorkerInfo
from tests.bench.simulated import manifests, simulated_node
from tests.fakes.libpod_server import IMAGE
from tests.support.api_server import Master, agent_changed, api_server, event_changed, pod_changed

TREE: Final = Path(__file__).parents[2]
AIM_S: Final = 0.1
"""CPU time of a command that prints."""
ENTRY: Final = "import sys; from supervisor.__main__ import main; sys.exit(main())"
"""As the console script of an installed package has it."""
READY_DEADLINE_S: Final = 120.0
DEADLINE_S: Final = 60.0
"""For one command, in seconds: one that waits for something for ever fails the bench, and does not hold it up."""
NOTHING: Final = "python -c pass"
COMMANDS: Final[Sequence[tuple[str, ...]]] = (
    ("get", "pods"),
    ("get", "pods", "-o", "wide"),
    ("get", "pods", "-o", "json"),
    ("get", "pods", "-o", "yaml"),
    ("get", "pods", "-o", "jsonpath={.items[*].status.phase}"),
    ("get", "pods", "--sort-by", ".metadata.name"),
    ("get", "pod", "web-7"),
    ("get", "all"),
    ("get", "events"),
    ("events",),
    ("get", "workers"),
    ("describe", "pod", "web-7"),
    ("logs", "web-7"),
    ("wait", "--for=condition=Ready", "pod/web-7"),
    ("explain", "pod.spec.containers"),
    ("api-resources",),
    ("auth", "whoami"),
    ("config", "default"),
    ("delete", "pod", "web-7", "--no-wait"),
    ("version",),
    ("--help",),
    ("run", "--help"),
    ("exec", "--help"),
)

MANIFEST: Final = "{directory}/applied.yaml"
"""A pod, in the directory of the node."""
AGENT_COMMANDS: Final[Sequence[tuple[str, ...]]] = (
    ("top", "pods"),
    ("stats",),
    ("images",),
    ("status",),
    ("config", "view"),
    ("apply", "-f", MANIFEST),
    ("diff", "-f", MANIFEST),
    ("doctor", "--config", "{directory}/rootlet.yaml"),
)
"""Commands that a whole agent answers. `doctor` has no aim: it is not asked in passing, and reads everything. `rollout
restart` is none of them: it waits for ends of processes, which the simulated service does not have."""


class Taken(NamedTuple):
    """Seconds of one run."""

    cpu_s: float
    clock_s: float


Found = dict[str, list[Taken]]
"""All runs, by what ran."""


def time_taken(arguments: Sequence[str], environment: Mapping[str, str]) -> Taken:
    """User and system time of one Python to its end, and the time by the clock. Raises AssertionError when it fails."""
    begun_s = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        late = threading.Timer(DEADLINE_S, process.kill)
        late.start()
        _, status, usage = os.wait4(process.pid, 0)
        late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        assert process.returncode == 0, f"{arguments}: {process.returncode} {errors.read()!r}"
    return Taken(usage.ru_utime + usage.ru_stime, time.monotonic() - begun_s)


def in_turns(socket: Path, trees: Sequence[Path], runs: int, commands: Sequence[tuple[str, ...]] = COMMANDS) -> Found:
    """Every command of every tree once in each round, after a round that does not count."""
    found: Found = {}
    for _ in range(runs + 1):
        _note(found, NOTHING, time_taken(["-c", "pass"], os.environ))
        for command in commands:
            for tree in trees:
                environment = {**os.environ, "ROOTLET_SOCKET": str(socket), "PYTHONPATH": str(tree)}
                _note(found, _name(command, tree, trees), time_taken(["-c", ENTRY, *command], environment))
    return {what: taken[1:] for what, taken in found.items()}


def _note(found: Found, what: str, taken: Taken) -> None:
    found.setdefault(what, []).append(taken)


def _name(command: Sequence[str], tree: Path, trees: Sequence[Path]) -> str:
    return " ".join(("rootlet", *command)) + ("" if tree == trees[0] else f"  ({tree})")


async def measure(directory: Path, pods: int, trees: Sequence[Path], runs: int) -> Found:
    """Beside a server that knows so many pods, each with an event and a line of log."""
    async with api_server(directory) as master:
        _fill(master, pods)
        return await asyncio.to_thread(in_turns, master.socket_path, trees, runs)


def measure_agent(pods: int, trees: Sequence[Path], runs: int) -> Found:
    """Beside a whole agent on the simulated service."""
    with simulated_node(pods + 1, instant=True) as node:
        node.start()
        node.state_pods(manifests(pods))
        node.until(lambda: node.ready_pods() == pods, READY_DEADLINE_S)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "applied"}}
        container = {"name": "main", "image": IMAGE, "imagePullPolicy": "IfNotPresent"}
        (node.directory / "applied.yaml").write_text(json.dumps({**pod, "spec": {"containers": [container]}}))
        commands = [tuple(word.format(directory=node.directory) for word in words) for words in AGENT_COMMANDS]
        return in_turns(node.admin_socket, trees, runs, commands)


def _fill(master: Master, pods: int) -> None:
    names = [f"web-{number}" for number in range(pods)]
    master.ready(
        *(pod_changed(1 + number, name) for number, name in enumerate(names)),
        *(event_changed(1 + pods + number, f"{name}.1", name) for number, name in enumerate(names)),
        agent_changed(
            WorkerInfo(
                slot=1, role="node-worker", name="node", pid=4712, incarnation=1, state="Running", pods=pods, deaths=0
            )
        ),
    )
    for name in names:
        log = master.logs_dir / f"default_{name}_uid-{name}" / "app" / "0.log"
        log.parent.mkdir(parents=True)
        log.write_text("2026-01-01T00:00:00.000000000+00:00 stdout F started\n")


def report(pods: int, trees: Sequence[Path], runs: int) -> str:
    """Measures all commands of all trees in each round. Each is held against the aim."""
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(Path(directory), pods, trees, runs))
    found |= {what: taken for what, taken in measure_agent(pods, trees, runs).items() if what not in found}
    lines = [
        f"{pods} pods, {runs} runs of each in turns, ms of CPU: median (lowest to highest); aim {1000 * AIM_S:.0f};"
        " then ms by the clock: quickest"
    ]
    for what, taken in found.items():
        cpu_ms = [1000 * each.cpu_s for each in taken]
        middle, clock_ms = statistics.median(cpu_ms), min(1000 * each.clock_s for each in taken)
        verdict = "met" if middle <= 1000 * AIM_S else "missed"
        spread = f"({min(cpu_ms):.0f} to {max(cpu_ms):.0f})"
        lines.append(f"{middle:6.0f} {spread:13} {verdict:6} {clock_ms:6.0f}  {what}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.command_line", description=__doc__)
    parser.add_argument("--pods", type=int, default=60)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--beside", type=Path, action="append", default=[], help="another checkout")
    options = parser.parse_args()
    print(report(options.pods, [TREE, *(tree.resolve() for tree in options.beside)], options.runs))


if __name__ == "__main__":
    main()
