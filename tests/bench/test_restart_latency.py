"""From kill -9 of a container's process to its successor running: Rootlet beside the two libpod calls that it takes.

Pod after pod in turns, on the agent's own Podman service: Rootlet replaces a container; raw calls create and start one
in a sandbox that runs; raw calls do the same as soon as a pidfd tells the end of a container that was killed, while
conmon and Podman clean up after it, which is what anybody who replaces a container has to share the machine with. The
end is what Podman says of the successor: when its process was started. A pod's first restart knows no back-off, so each
pod is killed once, and every round has new ones.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import NamedTuple

import pytest

from ipc.api.v1.pod import Pod
from ipc.host.clock import parse_rfc3339, wall
from supervisor.client.http import AgentClient, WatchEvent
from tests.bench.raw_pods import in_flight, make_pods, pods_of, remove_pod, start_pod
from tests.bench.sleepers import CONTAINER, load, quantile, sleepers
from tests.e2e.agent import Agent, container_status, restart_count
from tests.fakes.ownership import ownership
from tests.harness.raw_libpod import Libpod
from tests.podman_service import PodmanService
from workers.kubecontainer.naming import container_name, sandbox_name
from workers.specgen.spec import ContainerConfig, container_spec

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(3600)]

PODS = int(os.environ.get("ROOTLET_BENCH_PODS", "60"))
ROUNDS = int(os.environ.get("ROOTLET_BENCH_ROUNDS", "3"))
IN_FLIGHT = 4
READY_DEADLINE_S = 300.0
EXIT_DEADLINE_S = 10.0
REST_S = 0.4
"""Between two samples: what Podman cleans up after one is no part of the next one."""
ROOTLET, RAW, RAW_AFTER_KILL = "rootlet", "raw create + start", "raw, after a kill"


class Sample(NamedTuple):
    """Seconds from the begin."""

    created: float
    """Until Podman began to create the container."""
    started: float
    """Until its process was started."""


def test_restart_latency(
    agent: Agent, podman_service: PodmanService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.start()
    samples: dict[str, list[Sample]] = {ROOTLET: [], RAW: [], RAW_AFTER_KILL: []}
    before = load()
    for round_ in range(ROUNDS):
        wanted = sleepers(f"k{round_}", PODS)
        agent.write(*wanted.values())
        agent.until_ready(wanted, READY_DEADLINE_S)
        with _raw_pods(podman_service, _service_of(agent), f"r{round_}", tmp_path) as raw:
            _measure_in_turns(agent, raw, list(wanted), samples)
        agent.remove(*wanted)
        agent.until_gone(wanted, READY_DEADLINE_S)
    assert {len(taken) for taken in samples.values()} == {ROUNDS * PODS}
    with capsys.disabled():
        _print(samples, before)


def _service_of(agent: Agent) -> str:
    return str(agent.socket.with_suffix(".podman.sock"))


def _print(samples: dict[str, list[Sample]], before: str) -> None:
    print(f"\n{PODS} pods, {ROUNDS} rounds, in turns; {before} before, {load()} after; milliseconds")
    print(f"  {'':20} {'p50':>6} {'p90':>6} {'p99':>6}   until Podman began: p50")
    for way, taken in samples.items():
        started = [sample.started for sample in taken]
        figures = " ".join(f"{1000 * quantile(started, part):6.0f}" for part in (0.5, 0.9, 0.99))
        print(f"  {way:20} {figures}   {1000 * quantile([sample.created for sample in taken], 0.5):.0f}")
    for rival in (RAW, RAW_AFTER_KILL):
        parts = [_p50(samples, ROOTLET, round_) / _p50(samples, rival, round_) for round_ in range(ROUNDS)]
        shown = ", ".join(f"{ratio:.2f}" for ratio in parts)
        print(f"  p50 of rootlet / {rival}: {statistics.median(parts):.2f} (median of the rounds: {shown})")


def _p50(samples: dict[str, list[Sample]], way: str, round_: int) -> float:
    return quantile([sample.started for sample in samples[way][round_ * PODS : (round_ + 1) * PODS]], 0.5)


def _measure_in_turns(agent: Agent, raw: RawPods, names: list[str], samples: dict[str, list[Sample]]) -> None:
    ways: dict[str, Callable[[int], Sample]] = {RAW: raw.start_another, RAW_AFTER_KILL: raw.replace}
    client = AgentClient(agent.socket)
    replace = _killer(agent, client, raw.libpod)
    for number, name in enumerate(names):
        samples[ROOTLET].append(replace(name))
        for way, start in ways.items():
            sleep(REST_S)
            samples[way].append(start(number))
        sleep(REST_S)


def _killer(agent: Agent, client: AgentClient, libpod: Libpod) -> Callable[[str], Sample]:
    """Kills the container of a pod, and returns when the agent's watch has told that its successor runs."""
    pids = {pod: container.pid for (pod, name), container in agent.eye.running().items() if name == CONTAINER}
    events = client.watch("/api/v1/namespaces/default/pods", {})

    def replace(name: str) -> Sample:
        begun = wall()
        os.kill(pids[name], signal.SIGKILL)
        id = next(id for event in events if (id := _successor(event, name)))
        return _sample(libpod, id, begun)

    return replace


def _successor(event: WatchEvent, name: str) -> str:
    """The id of that pod's second container, once it runs."""
    pod = event.object
    if pod["metadata"].get("name") != name or restart_count(pod, CONTAINER) != 1:
        return ""
    status = container_status(pod, CONTAINER)
    return str(status["containerID"]).rpartition("/")[2] if "running" in status["state"] else ""


def _sample(libpod: Libpod, id: str, begun: float) -> Sample:
    """``begun`` in wall time, as Podman's own times are."""
    found = libpod.call("GET", f"containers/{id}/json")
    assert found["State"]["Status"] == "running"
    return Sample(parse_rfc3339(found["Created"]) - begun, parse_rfc3339(found["State"]["StartedAt"]) - begun)


class RawPods:
    """Pods that nobody looks after."""

    def __init__(self, libpod: Libpod, pods: list[Pod], instance: str, logs: Path) -> None:
        self.libpod = libpod
        self._pods = pods
        self._instance = instance
        self._logs = logs

    def start_another(self, number: int) -> Sample:
        """A second container beside the first one."""
        return self._start(number, 1, wall())

    def replace(self, number: int) -> Sample:
        """Kill the first container, and start another one as soon as it is dead."""
        name = container_name(self._pods[number], CONTAINER, 0)
        pid = self.libpod.call("GET", f"containers/{name}/json")["State"]["Pid"]
        fd = os.pidfd_open(pid)
        begun = wall()
        os.kill(pid, signal.SIGKILL)
        assert select.select([fd], [], [], EXIT_DEADLINE_S)[0], "it did not die"
        os.close(fd)
        return self._start(number, 2, begun)

    def _start(self, number: int, attempt: int, begun: float) -> Sample:
        pod = self._pods[number]
        (container,) = pod.spec.containers
        place = ContainerConfig(
            ownership=ownership(self._instance),
            sandbox_id=sandbox_name(pod, 0),
            attempt=attempt,
            backoff_s=0.0,
            image=container.image,
            log_file=self._logs / f"{pod.metadata.name}.{attempt}.log",
        )
        id = self.libpod.call("POST", "containers/create", container_spec(pod, container, place))["Id"]
        self.libpod.call("POST", f"containers/{id}/start")
        return _sample(self.libpod, id, begun)


@contextlib.contextmanager
def _raw_pods(service: PodmanService, socket: str, prefix: str, logs: Path) -> Iterator[RawPods]:
    instance = service.new_instance()
    pods = make_pods(PODS, prefix, service.image)
    in_flight([start_pod(pod, instance, logs) for pod in pods], IN_FLIGHT, socket)
    with contextlib.closing(Libpod(socket)) as libpod:
        yield RawPods(libpod, pods, instance, logs)
    in_flight([remove_pod(id) for id in pods_of(socket, instance)], IN_FLIGHT, socket)
