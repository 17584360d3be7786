"""kill -9 of Podman at any moment while pods start: later syncs come to what was wanted, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.link.messages.pod_worker import SyncDone, WorkType
from tests.support import pods
from tests.support.podman_service import IMAGE, SOCKET, PodmanService, podman, spawn_service
from tests.support.sync import Host
from workers.containers.known_containers import KnownContainers
from workers.kubecontainer.runtime import RuntimeCallError
from workers.pleg.observer import Observer
from workers.podman import PodmanRuntime
from workers.podman_files.orphaned_monitors import find_monitors

pytestmark = pytest.mark.podman

SEEDS = range(1, 6)
KILLS = 3
"""Number of kills of Podman, for each seed."""
PODS = 6
LATEST_KILL_S = 0.9
"""All of the pods are started by then, most of the time."""
MAX_ROUNDS = 8
EXTERNAL_TRIES = 10
DEADLINE_S = 20.0


class MortalPodman:
    """A service of the test's own that can be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.socket = str(directory / SOCKET)
        self._process = spawn_service(directory)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def start(self) -> None:
        self._process = spawn_service(self._directory)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


class ManyPods(Host):
    """Looks at one pod while others come and go."""

    def __init__(self, logs_dir: Path, socket: str, instance: str) -> None:
        super().__init__(logs_dir, SystemClock(), lambda: PodmanRuntime(socket, instance), instance)

    async def observe(self, uid: str) -> RuntimePodStatus:
        known = KnownContainers(
            self._eyes,
            self.clock,
            ownership=self.context.node.ownership,
            pod_logs_dir=str(self.logs_dir),
            pods_dir=str(self.pods_dir),
            on_exit=lambda uid: None,
        )
        look = Observer(self._eyes, self.clock, known)
        try:
            return await look.observe(uid)
        finally:
            look.close()

    async def until_podman_answers(self) -> None:
        """Wait as a caller does that has seen it dead: the next call comes only after a ping."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    await self._eyes.version()
                except RuntimeCallError:
                    await asyncio.sleep(0.05)
                else:
                    return


@pytest.fixture
def mortal(tmp_path: Path, podman_service: PodmanService) -> Iterator[MortalPodman]:
    """Beside the session's service, which cleans up."""
    directory = tmp_path / "podman"
    directory.mkdir()
    made = MortalPodman(directory)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_pods_that_podman_died_over(
    tmp_path: Path, mortal: MortalPodman, podman_service: PodmanService, seed: int
) -> None:
    rng, instance, logs_dir = random.Random(seed), podman_service.new_instance(), tmp_path / "logs"
    async with contextlib.aclosing(ManyPods(logs_dir, mortal.socket, instance)) as host:
        for _ in range(KILLS):
            await kill_and_settle(host, mortal, instance, rng)


async def kill_over(
    host: ManyPods, mortal: MortalPodman, rng: random.Random, *acts: Coroutine[Any, Any, object]
) -> None:
    """Podman is killed at some moment of these, and the next one answers to a new worker."""
    tasks = [asyncio.create_task(act) for act in acts]
    await asyncio.sleep(rng.uniform(0.0, LATEST_KILL_S))
    await asyncio.to_thread(mortal.kill)
    await asyncio.gather(*tasks, return_exceptions=True)  # a look at a Podman that is dead fails
    await asyncio.to_thread(mortal.start)
    await host.context.services.runtime.close()
    host.next_worker()
    await host.until_podman_answers()


async def kill_and_settle(host: ManyPods, mortal: MortalPodman, instance: str, rng: random.Random) -> None:
    wanted = [new_pod() for _ in range(PODS)]
    await kill_over(host, mortal, rng, *(host.sync(pod) for pod in wanted))
    await asyncio.gather(*(settle(host, pod, WorkType.SYNC) for pod in wanted))
    for pod in wanted:
        await assert_runs_for_the_first_time(host, pod)
    await until_no_leftovers(host)
    assert {monitor.container_id for monitor in find_monitors(str(host.logs_dir))} == known_ids(instance)
    for work, request in ((WorkType.TERMINATING, {"grace_period_s": 0}), (WorkType.TERMINATED, {"remove": True})):
        await asyncio.gather(*(settle(host, pod, work, **request) for pod in wanted))
    assert known_ids(instance) == set()
    assert [name for name in external_names() if any(pod.metadata.name in name for pod in wanted)] == []
    await until_no_monitors(str(host.logs_dir))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_pods_that_podman_died_over_while_they_went(
    tmp_path: Path, mortal: MortalPodman, podman_service: PodmanService, seed: int
) -> None:
    """The last call takes a running sandbox away with all that is in it."""
    rng, instance, logs_dir = random.Random(seed), podman_service.new_instance(), tmp_path / "logs"
    async with contextlib.aclosing(ManyPods(logs_dir, mortal.socket, instance)) as host:
        for _ in range(KILLS):
            await remove_and_kill(host, mortal, instance, rng)


async def remove_and_kill(host: ManyPods, mortal: MortalPodman, instance: str, rng: random.Random) -> None:
    unwanted = [new_pod() for _ in range(PODS)]
    await asyncio.gather(*(settle(host, pod, WorkType.SYNC) for pod in unwanted))
    await kill_over(host, mortal, rng, *(go(host, pod) for pod in unwanted))
    await asyncio.gather(*(settle(host, pod, WorkType.TERMINATED, remove=True) for pod in unwanted))
    assert known_ids(instance) == set()
    await until_no_leftovers(host)
    await until_no_monitors(str(host.logs_dir))


async def go(host: Host, pod: Pod) -> None:
    """Stop the pod's containers, then remove it."""
    await host.sync(pod, WorkType.TERMINATING, grace_period_s=0, remove=True)
    await host.sync(pod, WorkType.TERMINATED, remove=True)


def new_pod() -> Pod:
    uid = str(uuid.uuid4())
    return pods.pod(pods.container("a", image=IMAGE, args=("sleep", "1000")), uid=uid, name=f"killed-{uid[:8]}")


async def settle(host: Host, pod: Pod, work: WorkType, **request: Any) -> SyncDone:
    """Sync on fresh looks until nothing is left to do. No back-off is waited for."""
    for _ in range(MAX_ROUNDS):
        done = await host.sync(pod, work, **request)
        if not (done.changed or done.error or any(result.error for result in done.results)):
            return done
    raise AssertionError(f"not at rest after {MAX_ROUNDS} rounds: {done}")


async def assert_runs_for_the_first_time(host: Host, pod: Pod) -> None:
    status = await host.observe(pod.metadata.uid)
    assert [(c.state, c.attempt) for c in status.containers] == [(ContainerState.RUNNING, 0)]
    assert len(status.sandboxes) == 1


async def until_no_leftovers(host: Host) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = await host.context.services.runtime.end_leftovers(host.context.node.pod_logs_dir)
            if not (found.ended or found.unsettled):
                return


async def until_no_monitors(logs_dir: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await asyncio.to_thread(find_monitors, logs_dir):  # noqa: ASYNC110 - other programs
            await asyncio.sleep(0.05)


def known_ids(instance: str) -> set[str]:
    return set(
        podman("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label=rootlet.dev/instance={instance}").split()
    )


def external_names() -> list[str]:
    """Names of everything that storage keeps for containers. Podman fails when one of anybody's goes meanwhile."""
    for _ in range(EXTERNAL_TRIES):
        try:
            return podman("ps", "--all", "--external", "--format", "{{.Names}}").split()
        except AssertionError as error:
            if "container not known" not in str(error):
                raise
    raise AssertionError(f"containers went during each of {EXTERNAL_TRIES} lists")
