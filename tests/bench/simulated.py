"""An agent on the simulated Podman service: both are processes of their own, with a directory of their own."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import yaml

from supervisor.load_test.processes import Usage, take_snapshot
from tests.fakes.libpod_server import IMAGE, STATE_PATH
from tests.support.podman_service import wait_until
from tests.support.raw_libpod import UnixConnection

TREE: Final = Path(__file__).parents[2]
PODS_PER_FILE: Final = 100
POLL_S: Final = 0.2
START_DEADLINE_S: Final = 120.0
STOP_DEADLINE_S: Final = 60.0

Json = dict[str, Any]


class ServiceState(msgspec.Struct, frozen=True):
    """Words of the simulated service about itself."""

    calls: dict[str, int]
    running: int
    """Containers, without infra containers."""
    pods: int


class SimulatedNode:
    """The service and, from `start` on, the agent. Everything ends with the block of `simulated_node`."""

    def __init__(self, directory: Path, max_pods: int, settings: Mapping[str, Any]) -> None:
        self.directory = directory
        self.manifests = directory / "manifests"
        self.manifests.mkdir()
        self.service_socket = directory / "podman.sock"
        self.log = directory / "agent.log"
        self.config = directory / "rootlet.yaml"
        admin = directory / "run" / "agent.sock"
        admin.parent.mkdir()
        self.admin_socket = admin
        self.config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "rootlet.dev/v1alpha1",
                    "kind": "RootletConfiguration",
                    "instanceName": "scale",
                    "nodeName": "scale",
                    "staticPodPath": str(self.manifests),
                    "stateDir": str(directory / "state"),
                    "memoryDir": str(directory / "memory"),
                    "podLogsDir": str(directory / "logs"),
                    "adminSocket": str(admin),
                    "containerRuntimeEndpoint": f"unix://{self.service_socket}",
                    "maxPods": max_pods,
                    # Observed as by default, and not met by a machine that is nearly full.
                    "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1Mi"},
                    "workers": {"count": 2},
                    **settings,
                }
            )
        )
        self._agent: subprocess.Popen[bytes] | None = None

    # --- life ---

    def start(self, deadline_s: float = START_DEADLINE_S, module: str = "supervisor") -> None:
        """Return when every process of the agent works and Podman answered."""
        with self.log.open("ab") as log:
            command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", module, "run", "--config"]
            self._agent = subprocess.Popen(
                [*command, str(self.config)], cwd=TREE, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.until(self._is_up, deadline_s)

    def kill(self) -> None:
        """kill -9 of the master; the others follow."""
        family = psutil.Process(self.agent.pid).children(recursive=True)
        self.agent.send_signal(signal.SIGKILL)
        self.agent.wait()
        psutil.wait_procs(family, timeout=STOP_DEADLINE_S)

    def stop(self) -> None:
        if self._agent is not None and self._agent.poll() is None:
            self._agent.terminate()
            self._agent.wait(STOP_DEADLINE_S)

    @property
    def agent(self) -> subprocess.Popen[bytes]:
        assert self._agent is not None
        return self._agent

    def _is_up(self) -> bool:
        assert self.agent.poll() is None, self.log.read_text()[-4000:]
        try:
            about, workers = self.get("/version"), self.workers()
        except (OSError, http.client.HTTPException):
            return False
        running = all(worker["state"] == "Running" for worker in workers.values())
        return about["pid"] == self.agent.pid and about["runtimeHealthy"] and about["sourcesReady"] and running

    # --- what it is asked for ---

    def state_pods(self, files: Mapping[str, str]) -> None:
        """Write these manifests, each at once."""
        for name, text in files.items():
            written = self.directory / name
            written.write_text(text)
            written.rename(self.manifests / name)

    def withdraw(self, names: Iterable[str]) -> None:
        for name in names:
            (self.manifests / name).unlink()

    # --- what it shows ---

    def workers(self) -> dict[str, Json]:
        return {worker["name"]: worker for worker in self.get("/rootlet/v1/workers")["items"]}

    def get(self, path: str) -> Json:
        """Answer of the agent's API. Raises OSError or HTTPException while nobody answers."""
        found: Json = json.loads(_get(self.admin_socket, path))
        return found

    def usage(self) -> dict[str, Usage]:
        """Memory and CPU time of the agent's processes, by name."""
        return {usage.name: usage for usage in take_snapshot(self.agent.pid, tuple(self.workers().values())).agent}

    def service(self) -> ServiceState:
        return msgspec.json.decode(_get(self.service_socket, STATE_PATH), type=ServiceState)

    def pods(self) -> list[Json]:
        """As the agent's API has them."""
        return list(self.get("/api/v1/pods")["items"])

    def ready_pods(self) -> int:
        return sum(map(_is_ready, self.pods()))

    def until(self, condition: Callable[[], bool], deadline_s: float) -> None:
        wait_until(condition, deadline_s, POLL_S)


@contextlib.contextmanager
def simulated_node(
    max_pods: int, *, instant: bool = False, strangers: int = 0, settings: Mapping[str, Any] | None = None
) -> Iterator[SimulatedNode]:
    """A service that listens, and an agent that was not started yet. ``instant``: the calls take no time.
    ``strangers`` is how many containers of others make the lists longer."""
    directory = Path(tempfile.mkdtemp(prefix="rl-scale-", dir="/tmp"))
    node = SimulatedNode(directory, max_pods, settings or {})
    command = [sys.executable, "-m", "tests.fakes.libpod_server", str(node.service_socket)]
    command += ["--instant"] if instant else ["--strangers", str(strangers)]
    service = subprocess.Popen(command, cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert service.stdout is not None
        assert service.stdout.readline() == b"listening\n"
        yield node
    finally:
        node.stop()
        service.terminate()
        service.wait(STOP_DEADLINE_S)
        if service.stdout is not None:
            service.stdout.close()
        if os.environ.get("ROOTLET_BENCH_KEEP") is None:
            shutil.rmtree(directory)


def manifests(pods: int, edition: int = 0, first: int = 0, image: str = IMAGE) -> dict[str, str]:
    """Pods of one container, PODS_PER_FILE to a file. Another edition is another container."""
    files = {}
    for start in range(first, pods, PODS_PER_FILE):
        part = [_pod(index, edition, image) for index in range(start, min(start + PODS_PER_FILE, pods))]
        files[f"pods-{start:05}.yaml"] = "".join(f"---\n{json.dumps(pod)}\n" for pod in part)
    return files


def _pod(index: int, edition: int, image: str) -> Json:
    script = f"trap 'exit 0' TERM; : {edition}; while :; do sleep 86400 & wait $!; done"
    container = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{index:05}", "namespace": "default", "labels": {"app": "scale"}},
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [{**container, "command": ["/bin/sh", "-c", script]}],
        },
    }


def text_of(socket: Path, path: str) -> str:
    """Raises OSError or HTTPException while nobody answers."""
    return _get(socket, path).decode()


def _get(socket: Path, path: str) -> bytes:
    """The body of a good answer."""
    with contextlib.closing(UnixConnection(str(socket))) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    if answer.status != http.client.OK:
        raise http.client.HTTPException(f"GET {path}: {answer.status}")
    return body


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
