"""Pods as people write them, beside plain ones: how long a start and a restart take with a volume of each kind.

python -m tests.bench.written_pods                       # eight rounds: some ten minutes on a quiet machine of two CPUs
python -m tests.bench.written_pods --kinds hostPath-directory subPath --rounds 6

A round starts pods of every kind, one at a time, kills each one's container once (a first restart knows no back-off),
and removes them; every second round goes through the kinds from the last to the first. A time ends when the new
container's first line is stamped by its monitor. Said is the median of the rounds' ratios to the plain pod.
"""

from __future__ import annotations

import argparse
import contextlib
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
from tests.e2e.agent import MOMENT_POLL_S, Agent, Json, free_ports, is_ready
from tests.e2e.manifests import config_map, container, pod, secret
from tests.e2e.volumes import claim, empty_dir, host_path, mount
from tests.support.podman_service import IMAGE, STORE, TRANSIENT, podman, remove_by_force, wait_until

PLAIN: Final = "plain"
SCRIPT: Final = "echo up; trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
PORT: Final = 8080
BRIDGE: Final = "bridge"
NAMESPACE: Final = "default"
DEADLINE_S: Final = 60.0
PROBES: Final[dict[str, Json]] = {
    "probe-exec": {"exec": {"command": ["true"]}},
    "probe-HTTP": {"httpGet": {"port": PORT, "path": "/etc/passwd"}},
    "probe-TCP": {"tcpSocket": {"port": PORT}},
    "probe-gRPC": {"grpc": {"port": PORT}},
}
"""Readiness probes by kind. The server of a port is up before the container's first line."""
WEB: Final = f"httpd -p {PORT} -h /"
HEALTH: Final = r"""
printf '\0\0\0\4\0\0\0\0\0'
busybox dd bs=1 count=24 of=/dev/null 2>/dev/null
while set -- $(busybox dd bs=1 count=9 2>/dev/null | busybox od -An -v -tu1) && [ $# = 9 ]; do
    busybox dd bs=1 count=$(($1 * 65536 + $2 * 256 + $3)) of=/dev/null 2>/dev/null
    [ $4 != 0 ] || printf '\0\0\24\1\4\0\0\0\1\210\17\20\20application/grpc\0\0\7\0\0\0\0\0\1\0\0\0\0\2\10\1'
    [ $4 != 0 ] || printf '\0\0\17\1\5\0\0\0\1\0\13grpc-status\0010'
done
"""
"""A gRPC health server for one connection, in busybox' shell: its SETTINGS; past the client's preface, frame by frame,
until one is DATA (4th byte 0), the whole request; then the answer's head, SERVING, and its trailers, on stream 1."""
SERVERS: Final[Mapping[str, Sequence[str]]] = {
    "probe-HTTP": [WEB],
    "probe-TCP": [WEB],
    "probe-gRPC": [f"cat >/health <<'END'{HEALTH}END", f"nc -ll -p {PORT} -e sh /health &"],
}
"""Lines of shell that leave a server behind, by kind of probe."""


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
        "image": [{"name": "v", "image": {"reference": IMAGE, "pullPolicy": "IfNotPresent"}}],
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
    "image",
    "init-container",
    "sidecar",
    *PROBES,
    "hostPort",
    BRIDGE,
)


def manifest(kind: str, name: str, directory: Path) -> Json:
    """A pod of that kind."""
    volumes = volumes_of(kind, directory)
    fields: Json = {"volumeMounts": [mount("v", "/v", **({"subPath": "a/b"} if kind == "subPath" else {}))]}
    fields = fields if volumes else {}
    spec: Json = {"volumes": volumes} if volumes else {}
    script = SCRIPT
    if kind == "fsGroup":
        spec["securityContext"] = {"fsGroup": 2000}
    elif kind == "init-container":
        spec["initContainers"] = [container("before", "true")]
    elif kind == "sidecar":
        spec["initContainers"] = [{**container("before", SCRIPT), "restartPolicy": "Always"}]
    elif kind in PROBES:
        fields["readinessProbe"] = {**PROBES[kind], "periodSeconds": 60}
        script = "\n".join((*SERVERS.get(kind, ()), SCRIPT))
    elif kind == "hostPort":
        fields["ports"] = [{"containerPort": 80, "hostPort": free_ports(1)[0]}]
    return pod(name, container(script=script, **fields), terminationGracePeriodSeconds=1, **spec)


class Rounds:
    """Seconds by kind, of each round. ``bridged``: the agent whose pods share a bridge."""

    def __init__(self, agent: Agent, bridged: Agent | None, kinds: Sequence[str], pods: int) -> None:
        self._agents = {kind: bridged if bridged and kind == BRIDGE else agent for kind in kinds}
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
        for agent in set(self._agents.values()):
            of_its = [name for (kind, _), name in names.items() if self._agents[kind] is agent]
            agent.remove(*of_its)
            agent.until_gone(of_its, DEADLINE_S)

    def _start(self, kind: str, name: str) -> float:
        agent = self._agents[kind]
        directory = agent.directory / "volumes" / f"{agent.instance}-{name}"
        directory.mkdir(parents=True)
        wanted = manifest(kind, name, directory)
        begun = wall()
        agent.write(wanted)
        first = self._first_line(agent, name, begun)
        agent.until(lambda: is_ready(agent.pods()[name]), "it is ready", DEADLINE_S, MOMENT_POLL_S)
        return first - begun

    def _restart(self, kind: str, name: str) -> float:
        agent = self._agents[kind]
        pid = agent.eye.container(name, "main").pid
        begun = wall()
        os.kill(pid, signal.SIGKILL)
        first = self._first_line(agent, name, begun)
        agent.until(lambda: self._is_again(agent, name), "the restart is told", DEADLINE_S, MOMENT_POLL_S)
        return first - begun

    def _is_again(self, agent: Agent, name: str) -> bool:
        statuses = agent.pods()[name]["status"]["containerStatuses"]
        return [(status["restartCount"], status["ready"]) for status in statuses] == [(1, True)]

    def _first_line(self, agent: Agent, name: str, begun: float) -> float:
        """Epoch seconds."""
        wait_until(lambda: next(self._lines(agent, name, begun), None) is not None, DEADLINE_S, MOMENT_POLL_S)
        return next(self._lines(agent, name, begun))

    def _lines(self, agent: Agent, name: str, begun: float) -> Iterator[float]:
        logs = Path(agent.settings["podLogsDir"])
        for file in logs.glob(f"{NAMESPACE}_{name}_*/main/*.log"):
            text = file.read_text()
            if "\n" in text and (stamp := parse_rfc3339(text.split(" ", 1)[0])) >= begun:
                yield stamp


@contextlib.contextmanager
def bridged_agent(run_name: str) -> Iterator[Agent]:
    """A running agent whose pods share a bridge of its own."""
    name = f"{run_name}-bridge"
    podman("network", "create", name)
    agent = Agent(f"{run_name}-bridged", {"podNetwork": {"mode": "bridge", "bridge": name}})
    try:
        agent.start()
        yield agent
    finally:
        agent.close()
        podman("network", "rm", "--force", name)


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
    os.environ[STORE] = options.store
    with own_storage() as run_name, contextlib.ExitStack() as others:
        bridged = others.enter_context(bridged_agent(run_name)) if BRIDGE in kinds else None
        agent = Agent(f"{run_name}-written")
        rounds = Rounds(agent, bridged, kinds, options.pods)
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
    version = podman("--version").split()[-1]
    print(f"Podman {version}, {options.store} store on {file_system()}; {before} before, {load()} after")
    print(table("start", rounds.starts))
    print(table("restart", rounds.restarts))
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.written_pods")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--pods", type=int, default=3, help="of each kind in a round")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--store", choices=("default", TRANSIENT), default="default", help="podman.store of the agents")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
