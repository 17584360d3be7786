"""Sixty pods on one of two workers beside the same sixty spread evenly, and beside a worker with half of the slots.

Bare libpod calls behind `MutationLimiter`, in two forked processes, in turns on one Podman service; the ratios count.
"""

from __future__ import annotations

import asyncio
import os
import select
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from ipc.host.clock import monotonic
from ipc.k8s.api.v1.pod import Pod
from ipc.link.shm.mutation_slots import MutationSlots
from tests.bench.raw_pods import first_place, in_flight, make_pods, pods_of, remove_pod
from tests.fakes.ownership import ownership
from tests.support.podman_service import PodmanService
from workers.kubecontainer.naming import infra_name
from workers.libpod.client import CallLimits
from workers.podman import PodmanRuntime
from workers.specgen.spec import container_spec, pod_spec
from workers.sync.mutation_limiter import MutationLimiter

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(3600)]

PODS = int(os.environ.get("ROOTLET_BENCH_PODS", "60"))
ROUNDS = int(os.environ.get("ROOTLET_BENCH_ROUNDS", "3"))
SLOTS = 4
DEADLINE_S = 300.0
WAYS = {
    "spread evenly": (SLOTS, (PODS // 2, PODS - PODS // 2)),
    "all on one": (SLOTS, (PODS, 0)),
    "all on one, half of the slots": (SLOTS // 2, (PODS, 0)),
}
"""Slots of the node, and how many pods each worker has."""


def test_one_busy_worker(podman_service: PodmanService, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for round_ in range(ROUNDS):
        for number, (way, (slots, shares)) in enumerate(WAYS.items()):
            instance = podman_service.new_instance()
            pods = make_pods(PODS, f"w{round_}{number}", podman_service.image)
            work = Work(podman_service.socket, instance, tmp_path)
            seconds[way].append(work.take_s(slots, [pods[: shares[0]], pods[shares[0] :]]))
            jobs = [remove_pod(id) for id in pods_of(podman_service.socket, instance)]
            assert len(jobs) == PODS
            in_flight(jobs, SLOTS, podman_service.socket)
    with capsys.disabled():
        print(f"\n{PODS} pods, {ROUNDS} rounds in turns, {os.cpu_count()} CPUs; median seconds")
        for way, taken in seconds.items():
            ratios = [ours / even for ours, even in zip(taken, seconds["spread evenly"], strict=True)]
            shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"  {way:30} {statistics.median(taken):6.2f}   {statistics.median(ratios):.2f} of spread ({shown})")


class Work:
    """Starts pods in two processes that share the slots."""

    def __init__(self, socket: str, instance: str, logs: Path) -> None:
        self._socket = socket
        self._instance = instance
        self._logs = logs

    def take_s(self, slots: int, shares: Sequence[Sequence[Pod]]) -> float:
        """How long it takes until all of them run, in seconds."""
        shared = MutationSlots.create(slots=slots, members=len(shares))
        began = monotonic()
        children = [self._fork(shared, number, pods) for number, pods in enumerate(shares)]
        for pid, reader in children:
            assert select.select([reader], [], [], DEADLINE_S)[0], "not within the deadline"
            assert os.read(reader, 1) == b".", "a worker failed"
            os.close(reader)
            os.waitpid(pid, 0)
        shared.close()
        return monotonic() - began

    def _fork(self, shared: MutationSlots, number: int, pods: Sequence[Pod]) -> tuple[int, int]:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(self._start(shared, number, pods))
                os.write(writer, b".")
            finally:
                os._exit(0)
        os.close(writer)
        return pid, reader

    async def _start(self, shared: MutationSlots, number: int, pods: Sequence[Pod]) -> None:
        limiter = MutationLimiter(shared.member(number))
        runtime = PodmanRuntime(self._socket, self._instance, limits=CallLimits(max_mutations=SLOTS))
        await asyncio.gather(*(self._start_pod(runtime, limiter, order, pod) for order, pod in enumerate(pods)))
        await runtime.close()

    async def _start_pod(self, runtime: PodmanRuntime, limiter: MutationLimiter, order: int, pod: Pod) -> None:
        async with limiter.permit(order):
            made = await runtime.create_pod(
                pod_spec(pod, ownership(self._instance), 0, self._logs / f"{pod.metadata.name}.pid")
            )
        async with limiter.permit(order):
            await runtime.start_container(infra_name(pod, 0))
        (container,) = pod.spec.containers
        place = first_place(container, self._instance, made, self._logs)
        async with limiter.permit(order):
            created = await runtime.create_container(container_spec(pod, container, place))
        async with limiter.permit(order):
            await runtime.start_container(created)
