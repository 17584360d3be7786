"""Pods as people write them, beside plain ones: how long a start and a restart take with a volume of each kind.

python -m tests.bench.written_pods                       # eight rounds: some ten minutes on a quiet machine of two CPUs
python -m tests.bench.written_pods --kinds hostPath-directory subPath --rounds 6

A round starts pods of every kind, one at a time, kills each one's container once (a first restart knows no back-off),
and removes them; every second round goes through the kinds from the last to the first. A time ends when the new
container's first line is stamped by its monitor. Said is the median of the rounds' ratios to the plain pod.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ipc.host.clock import parse_rfc3339, wall
from tests.bench.intervals import median_text
from tests.bench.own_storage import file_system, own_storage
from tests.bench.sleepers import load
from tests.e2e.agent import MOMENT_POLL_S, Agent, Json, free_ports, is_ready, restart_count
from tests.e2e.manifests import config_map, container, pod, secret
from tests.e2e.volumes import claim, empty_dir, host_path, mount
from tests.podman_service import podman, remove_by_force, wait_until

PLAIN: Final = "plain"
SCRIPT: Final = "echo up; trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
NAMESPACE: Final = "default"
DEADLINE_S: Final = 60.0
READY: Final = {"exec": {"command": ["true"]}, "periodSeconds": 60}


def volumes_of(kind: str, directory: Path) -> list[Json]:
    """The volumes of a pod of that kind. ``directory`` is its own, and there."""
    file = directory / "file"
    file.write_text("of the host")
    return {
        "hostPath-file": [host_path("v", file, "File")],
        "hostPath-directory": [host_path("v", directory, "Directory")],
        "hostPath-DirectoryOrCreate": [host_path("v", directory / "made", "DirectoryOrCreate")],
        "subPath": [empty_dir("v")],
        "fsGroup": [empty_dir("v")],
        "ConfigMap-Secret": [
            {"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}, {"secret": {"name": "s"}}]}}
        ],
        "emptyDir": [empty_dir("v")],
        "emptyDir-Memory": [empty_dir("v", medium="Memory", sizeLimit="1Mi")],
        "claim": [claim("v", directory.name)],
    }.get(kind, [])


KINDS: Final = (
    PLAIN,
    "hostPath-file",
    "hostPath-directory",
    "hostPath-DirectoryOrCreate",
    "subPath",
    "fsGroup",
    "ConfigMap-Secret",
    "emptyDir",
    "emptyDir-Memory",
    "claim",
    "probe",
    "hostPort",
)


def manifest(kind: str, name: str, directory: Path) -> Json:
    """A pod of that kind."""
    volumes = volumes_of(kind, directory)
    fields: Json = {"volumeMounts": [mount("v", "/v", **({"subPath": "a/b"} if kind == "subPath" else {}))]}
    fields = fields if volumes else {}
    spec: Json = {"volumes": volumes} if volumes else {}
    if kind == "fsGroup":
        spec["securityContext"] = {"fsGroup": 2000}
    elif kind == "probe":
        fields["readinessProbe"] = READY
    elif kind == "hostPort":
        fields["ports"] = [{"containerPort": 80, "hostPort": free_ports(1)[0]}]
    return pod(name, container(script=SCRIPT, **fields), terminationGracePeriodSeconds=1, **spec)


class Rounds:
    """Seconds by kind, of each round."""

    def __init__(self, agent: Agent, kinds: Sequence[str], pods: int) -> None:
        self._agent = agent
        self._kinds = kinds
        self._pods = pods
        self.starts: dict[str, list[float]] = {kind: [] for kind in kinds}
        self.restarts: dict[str, list[float]] = {kind: [] for kind in kinds}

    def run(self, number: int) -> None:
        """One round."""
        kinds = self._kinds if number % 2 else tuple(reversed(self._kinds))
        names = {(kind, pod): f"{kind.lower()}-{number}-{pod}" for pod in range(self._pods) for kind in kinds}
        for taken, measure in ((self.starts, self._start), (self.restarts, self._restart)):
            took: dict[str, list[float]] = {kind: [] for kind in kinds}
            for (kind, _), name in names.items():
                took[kind].append(measure(kind, name))
            for kind, times in took.items():
                taken[kind].append(statistics.median(times))
        self._agent.remove(*names.values())
        self._agent.until_gone(names.values(), DEADLINE_S)

    def _start(self, kind: str, name: str) -> float:
        directory = self._agent.directory / "volumes" / f"{self._agent.instance}-{name}"
        directory.mkdir(parents=True)
        wanted = manifest(kind, name, directory)
        begun = wall()
        self._agent.write(wanted)
        first = self._first_line(name, begun)
        self._agent.until(lambda: is_ready(self._agent.pods()[name]), "it is ready", DEADLINE_S, MOMENT_POLL_S)
        return first - begun

    def _restart(self, kind: str, name: str) -> float:
        pid = self._agent.eye.container(name, "main").pid
        begun = wall()
        os.kill(pid, signal.SIGKILL)
        first = self._first_line(name, begun)
        self._agent.until(lambda: self._is_again(name), "the restart is told", DEADLINE_S, MOMENT_POLL_S)
        return first - begun

    def _is_again(self, name: str) -> bool:
        found = self._agent.pods()[name]
        return restart_count(found) == 1 and is_ready(found)

    def _first_line(self, name: str, begun: float) -> float:
        """Epoch seconds."""
        wait_until(lambda: next(self._lines(name, begun), None) is not None, DEADLINE_S, MOMENT_POLL_S)
        return next(self._lines(name, begun))

    def _lines(self, name: str, begun: float) -> Iterator[float]:
        logs = Path(self._agent.settings["podLogsDir"])
        for file in logs.glob(f"{NAMESPACE}_{name}_*/main/*.log"):
            text = file.read_text()
            if "\n" in text and (stamp := parse_rfc3339(text.split(" ", 1)[0])) >= begun:
                yield stamp


def table(title: str, taken: Mapping[str, Sequence[float]]) -> str:
    """Lines of one figure."""
    lines = [f"{title}: median s; ratio to plain, median of {len(taken[PLAIN])} rounds (95 % interval)"]
    for kind, times in taken.items():
        told = f"{kind:27} {statistics.median(times):6.3f}"
        ratios = [time / plain for time, plain in zip(times, taken[PLAIN], strict=True)]
        lines.append(told if kind == PLAIN else f"{told}  {median_text(ratios)}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    kinds = tuple(dict.fromkeys((PLAIN, *options.kinds)))
    before = load()
    with own_storage() as run_name:
        agent = Agent(f"{run_name}-written")
        rounds = Rounds(agent, kinds, options.pods)
        try:
            agent.start()
            agent.write(config_map("m", a="1"), secret("s", b="2"))
            for number in range(1, options.rounds + 1):
                rounds.run(number)
        finally:
            agent.close()
            for name in podman("volume", "ls", "--quiet").split():
                if name.startswith(agent.instance):
                    remove_by_force("volume", name)
    print(f"Podman {podman('--version').split()[-1]}, storage on {file_system()}; {before} before, {load()} after")
    print(table("start", rounds.starts))
    print(table("restart", rounds.restarts))
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.written_pods")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--pods", type=int, default=3, help="of each kind in a round")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
