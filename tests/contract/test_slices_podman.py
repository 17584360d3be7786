"""Slices of pods on a host whose systemd manages this user's cgroups: what only systemd, Podman and the kernel know."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus
from ipc.k8s.podresources.cgroup_config import CgroupConfig, shares_to_weight, weight_to_shares
from ipc.k8s.podresources.node_resources import NodeResources, PodCgroups
from ipc.k8s.podresources.pod_cgroups import pod_slice, pod_slice_uid, root_name, slice_directory, systemd_basename
from ipc.link.messages.node_worker import UpdatePodCgroups
from ipc.link.messages.pod_worker import WorkType
from supervisor.admission.cgroups import delegated_controllers, managed_cgroup
from tests.contract.podman_host import DEADLINE_S, PodmanHost, container, errors
from tests.support.podman_service import PATIENCE, PodmanService, podman
from workers.cm.cleanup import PodCgroupCleanup
from workers.cm.user_slices import UserSlices

pytestmark = pytest.mark.podman
MANAGED: Final = managed_cgroup()
CONTROLLERS: Final = (delegated_controllers() or frozenset()) if MANAGED else frozenset()
MIB: Final = 1 << 20


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S * PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def cgroup_of(container: RuntimeContainerStatus) -> str:
    return Path(f"/proc/{container.pid}/cgroup").read_text()


def pids_max(pod_cgroups: PodCgroups, name: str) -> str:
    return Path(slice_directory(pod_cgroups, name), "pids.max").read_text().strip()


@pytest.fixture
async def ours() -> AsyncIterator[PodCgroups]:
    """A tree of slices of this test's own."""
    if not MANAGED:
        pytest.skip("systemd does not manage this user's cgroups")
    made = PodCgroups(root=f"rootlet-test-{uuid.uuid4().hex[:8]}", directory=MANAGED)
    yield made
    await UserSlices(made).stop(systemd_basename(root_name(made)))


@pytest.fixture
async def sliced(ours: PodCgroups, tmp_path: Path, podman_service: PodmanService) -> AsyncIterator[PodmanHost]:
    if podman("info", "--format", "{{.Host.CgroupManager}}").strip() != "systemd":
        pytest.skip("Podman makes cgroups by itself")
    host = PodmanHost(tmp_path, podman_service, ours)
    host.configure("node", resources=NodeResources(controllers=CONTROLLERS, pod_cgroups=ours, pod_pids_limit=64))
    yield host
    await host.end()


async def test_a_slice_is_made_changed_found_and_stopped(ours: PodCgroups) -> None:
    slices, name = UserSlices(ours), systemd_basename((*root_name(ours), "burstable", "podx-1"))
    assert (slices.exists(name), slices.pods()) == (False, ())
    await slices.start(name, CgroupConfig(memory=64 * MIB, cpu_shares=1024, pids_limit=50))
    await until(lambda: slices.exists(name))
    assert slices.pods() == (name,)
    assert pod_slice_uid(name, ours) == "x-1"
    assert not slices.is_populated(name)
    await slices.start(name, CgroupConfig(memory=32 * MIB, cpu_quota=50_000, cpu_period=100_000))
    if {"cpu", "memory"} <= CONTROLLERS:
        await until(lambda: slices.read(name).config.memory == 32 * MIB)
        assert slices.read(name).config == CgroupConfig(
            memory=32 * MIB, cpu_quota=50_000, cpu_period=100_000, cpu_shares=weight_to_shares(shares_to_weight(1024))
        )
    for _ in range(2):
        await slices.stop(name)
    await until(lambda: not slices.exists(name))
    await slices.start(name, CgroupConfig(cpu_shares=2))
    await until(lambda: slices.exists(name))


async def test_a_plan_reaches_systemd_and_what_nobody_knows_goes(ours: PodCgroups) -> None:
    slices, root, clock = UserSlices(ours), systemd_basename(root_name(ours)), SystemClock()
    lost, known = (systemd_basename((*root_name(ours), f"pod{uid}")) for uid in ("lost", "known"))
    for name in (lost, known):
        await slices.start(name, CgroupConfig())
        await until(lambda name=name: slices.exists(name))  # type: ignore[misc]
    cleanup = PodCgroupCleanup(slices, clock)
    running = asyncio.create_task(cleanup.run())
    async with asyncio.timeout(DEADLINE_S * PATIENCE):
        while slices.exists(lost):
            config = {root: CgroupConfig(memory=512 * MIB, cpu_shares=2048)}
            cleanup.ask(UpdatePodCgroups(slices=config, uids=("known",), planned_at=clock.now().mono))
            await asyncio.sleep(0.1)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert slices.pods() == (known,)
    if "memory" in CONTROLLERS:
        await until(lambda: slices.read(root).config.memory == 512 * MIB)


async def test_a_pod_lies_in_its_slice_and_takes_it_along(sliced: PodmanHost, ours: PodCgroups) -> None:
    amounts = ResourceRequirements(requests={"cpu": "100m"}, limits={"cpu": "500m", "memory": "96Mi"})
    of = sliced.pod(container("a"), container("b"), resources=amounts)
    done = await sliced.sync(of)
    assert (done.error, errors(done)) == ("", []), done.message
    name, slices = pod_slice(ours, of), UserSlices(ours)
    assert "burstable" in name
    for made in (await sliced.containers()).values():
        assert f"/{name}/" in cgroup_of(made)
    assert slices.is_populated(name)
    if {"cpu", "memory", "pids"} <= CONTROLLERS:
        config = slices.read(name).config
        assert (config.memory, config.cpu_quota, config.cpu_period) == (96 * MIB, 50_000, 100_000)
        assert pids_max(ours, name) == "64"
    assert (await sliced.sync(of)).changed is False
    await sliced.sync(of, WorkType.TERMINATING)
    assert (await sliced.sync(of, WorkType.TERMINATED)).error == ""
    await until(lambda: not slices.exists(name))


async def test_a_pod_from_before_there_were_slices_is_made_again(sliced: PodmanHost, ours: PodCgroups) -> None:
    of, resources = sliced.pod(container("a")), sliced.context.node.resources
    sliced.configure("node", resources=NodeResources(controllers=CONTROLLERS))
    assert errors(await sliced.sync(of)) == []
    before = (await sliced.containers())["a"]
    sliced.configure("node", resources=resources)
    killed = await sliced.sync(of)
    assert killed.summary.startswith("found the pod's cgroup is missing"), killed.summary
    assert errors(await sliced.sync(of)) == []
    after = (await sliced.containers())["a"]
    assert after.id != before.id
    assert f"/{pod_slice(ours, of)}/" in cgroup_of(after)


async def test_a_resize_of_the_pod_reaches_the_kernel(sliced: PodmanHost, ours: PodCgroups) -> None:
    if not {"cpu", "memory"} <= CONTROLLERS:
        pytest.skip("cpu and memory are not delegated")
    small, large = (
        ResourceRequirements(requests={"cpu": cpu, "memory": memory}, limits={"cpu": cpu, "memory": memory})
        for cpu, memory in (("200m", "64Mi"), ("400m", "128Mi"))
    )
    await sliced.sync(sliced.pod(container("a"), resources=small))
    before = await sliced.containers()
    larger = sliced.pod(container("a"), resources=large)
    assert errors(await sliced.sync(larger)) == []
    slices, name = UserSlices(ours), pod_slice(ours, larger)
    await until(lambda: slices.read(name).config.memory == 128 * MIB)
    assert slices.read(name).config.cpu_quota == 40_000
    assert (await sliced.containers())["a"].id == before["a"].id
