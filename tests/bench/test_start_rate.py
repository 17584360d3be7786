"""Pods per second to running: Rootlet beside the same libpod calls made raw and beside `podman kube play`.

All of them in one run, in turns, on one Podman service with the same settings; the figures that count are the ratios.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from ipc.api.v1.pod import Pod
from ipc.host.clock import monotonic
from supervisor.client.http import AgentClient
from supervisor.config.socket_path import admin_socket_path
from tests.bench.raw_pods import in_flight, make_pods, pods_of, remove_pod, start_pod
from tests.podman_service import PodmanService

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(3600)]

PODS = int(os.environ.get("ROOTLET_BENCH_PODS", "60"))
ROUNDS = int(os.environ.get("ROOTLET_BENCH_ROUNDS", "3"))
RAW_IN_FLIGHT = (2, 4, 8)
PLAY_IN_FLIGHT = (1, 4)
REMOVALS_IN_FLIGHT = 4
DEADLINE_S = 600


def test_start_rate(podman_service: PodmanService, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Raw with 1, 2, 4 and 8 pods in flight, kube play with 1 and 4, Rootlet with its default; the best one counts."""
    seconds: dict[str, list[float]] = {}
    with _agent(podman_service, tmp_path) as start_with_rootlet:
        ways: dict[str, Callable[[str], float]] = {"rootlet": start_with_rootlet}
        ways |= {f"raw {n}": _raw(podman_service, tmp_path, n) for n in RAW_IN_FLIGHT}
        ways |= {f"kube play {n}": _kube_play(podman_service, tmp_path, n) for n in PLAY_IN_FLIGHT}
        for round_ in range(ROUNDS):
            for way, start in ways.items():
                seconds.setdefault(way, []).append(start(f"b{round_}{way.replace(' ', '')}"))
    with capsys.disabled():
        _print(seconds)


def _print(seconds: dict[str, list[float]]) -> None:
    rates = {way: PODS / statistics.median(taken) for way, taken in seconds.items()}
    print(f"\n{PODS} pods, {ROUNDS} rounds in turns, {os.cpu_count()} CPUs; median and spread of pods/s")
    for way, taken in seconds.items():
        print(f"  {way:14} {rates[way]:6.2f}   ({PODS / max(taken):.2f} to {PODS / min(taken):.2f})")
    for rival in ("raw", "kube play"):
        best = max((way for way in rates if way.startswith(rival)), key=rates.__getitem__)
        ratios = [theirs / ours for theirs, ours in zip(seconds[best], seconds["rootlet"], strict=True)]
        shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"  rootlet / {best}: {statistics.median(ratios):.2f} (median of the rounds: {shown})")


def _raw(service: PodmanService, tmp_path: Path, threads: int) -> Callable[[str], float]:
    def start(prefix: str) -> float:
        instance = service.new_instance()
        jobs = [start_pod(pod, instance, tmp_path) for pod in make_pods(PODS, prefix, service.image)]
        taken = in_flight(jobs, threads, service.socket)
        _remove(service, instance)
        return taken

    return start


def _kube_play(service: PodmanService, tmp_path: Path, at_a_time: int) -> Callable[[str], float]:
    """One command per pod, as an operator's loop or Quadlet has it. With the service's containers.conf: with a kernel
    keyring per container (Podman's default) a user cannot start more than 200."""
    environment = {**os.environ, "CONTAINERS_CONF": str(Path(service.socket).with_name("containers.conf"))}

    def start(prefix: str) -> float:
        instance = service.new_instance()
        files = []
        for pod in make_pods(PODS, prefix, service.image):
            files.append(tmp_path / f"{pod.metadata.name}.yaml")
            files[-1].write_text(yaml.safe_dump(_manifest(pod, instance)))
        names = "\n".join(map(str, files))
        command = ["xargs", "-P", str(at_a_time), "-n", "1", "podman", "kube", "play", "--quiet"]
        started = monotonic()
        subprocess.run(
            command, input=names, text=True, check=True, capture_output=True, timeout=DEADLINE_S, env=environment
        )
        taken = monotonic() - started
        _remove(service, instance)
        return taken

    return start


@contextlib.contextmanager
def _agent(service: PodmanService, tmp_path: Path) -> Iterator[Callable[[str], float]]:
    """A running agent; what it yields applies the pods and waits until the last one is Ready."""
    instance = service.new_instance()
    config = tmp_path / "rootlet.yaml"
    (tmp_path / "manifests").mkdir()
    settings = {
        "apiVersion": "rootlet.dev/v1alpha1",
        "kind": "RootletConfiguration",
        "instanceName": instance,
        "staticPodPath": "manifests",
        "stateDir": "state",
        "memoryDir": "memory",
        "podLogsDir": "logs",
        "maxPods": 2 * PODS,
        "containerRuntimeEndpoint": f"unix://{service.socket}",
    }
    config.write_text(yaml.safe_dump(settings))

    def rootlet(*args: str) -> None:
        command = ["rootlet", "--instance", instance, *args]
        done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=DEADLINE_S)
        assert done.returncode == 0, done.stderr

    def start(prefix: str) -> float:
        file = tmp_path / f"{prefix}.yaml"
        file.write_text(yaml.safe_dump_all(_manifest(pod, instance) for pod in make_pods(PODS, prefix, service.image)))
        client = AgentClient(admin_socket_path(instance))
        started = monotonic()
        client.apply(file.read_bytes(), file.name)
        _wait_until_ready(client)
        taken = monotonic() - started
        rootlet("delete", "-f", str(file))
        return taken

    with (tmp_path / "agent.log").open("wb") as log:
        agent = subprocess.Popen(["rootlet", "run", "--config", str(config)], stdout=log, stderr=log)
        try:
            _wait_for_agent(instance, agent)
            yield start
            rootlet("stop", "--pods")
        finally:
            agent.terminate()
            agent.wait(DEADLINE_S)


def _wait_until_ready(client: AgentClient) -> None:
    ready: set[str] = set()
    for event in client.watch("/api/v1/namespaces/default/pods", {"watch": True}):
        conditions = event.object.get("status", {}).get("conditions", [])
        if any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions):
            ready.add(event.object["metadata"]["name"])
        if len(ready) == PODS:
            return


def _wait_for_agent(instance: str, agent: subprocess.Popen[bytes]) -> None:
    deadline = monotonic() + 60
    ask = ["rootlet", "--instance", instance, "get", "workers"]
    while subprocess.run(ask, capture_output=True, check=False).returncode:
        assert agent.poll() is None, "the agent ended"
        assert monotonic() < deadline, "the agent does not answer"


def _manifest(pod: Pod, instance: str) -> dict[str, object]:
    [container] = pod.spec.containers
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.metadata.name, "labels": {"rootlet.dev/instance": instance}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": container.name,
                    "image": container.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": list(container.command),
                }
            ],
        },
    }


def _remove(service: PodmanService, instance: str) -> None:
    in_flight([remove_pod(id) for id in pods_of(service.socket, instance)], REMOVALS_IN_FLIGHT, service.socket)
