"""The node worker's eyes on the fake and on Podman: what it shows, and how soon."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import uvloop

from ipc.host.clock import SystemClock
from ipc.k8s.kubecontainer.pod_status import ContainerState, SandboxState
from ipc.link.messages.node_worker import Observe, Relist, Relisted, RuntimeHealth, Track
from tests.contract.target import PodmanTarget, Target, container_spec, eventually, exited, pod_spec, running
from tests.fakes.ownership import ownership
from tests.support.node_worker import Master, node_worker
from tests.support.podman_service import PodmanService, running_service
from workers.containers.known_containers import KnownContainers
from workers.pleg.observer import Observer

NEVER_S = 1e9
NO_INFRA: dict[str, Any] = {"no_infra": True, "shared_namespaces": []}
STUBBORN = "trap '' TERM; while :; do sleep 0.2; done"
SOON_S = 30.0
"""Far below any relist period of these tests, far above what a hint takes."""


def observer(target: Target, hints: list[str]) -> Observer:
    known = KnownContainers(
        target.runtime,
        SystemClock(),
        ownership=ownership(target.instance),
        pod_logs_dir="/nonexistent",
        pods_dir="/nonexistent",
        on_exit=hints.append,
    )
    return Observer(target.runtime, SystemClock(), known)


async def test_one_pod_and_everything_show_the_same(target: Target) -> None:
    container = await running(target)
    for command in (["true"], ["sh", "-c", "exit 3"]):
        id = await target.runtime.create_container(container_spec(target, container.pod_id, command))
        await target.runtime.start_container(id)
        await exited(target, id, "exited")  # Podman calls it stopped until its clean-up has run.
    await target.runtime.create_container(container_spec(target, container.pod_id))
    await target.runtime.create_pod(pod_spec(target))

    eyes, fresh = observer(target, []), observer(target, [])
    relisting = await eyes.relist(await eyes.list_all())
    again = await eyes.relist(await eyes.list_all())
    one = await fresh.observe("u1")
    after = await eyes.observe("u1")
    for status in (again.statuses["u1"], one, after):
        assert status.same_as(relisting.statuses["u1"])
    assert relisting.statuses.keys() == {"u1"}
    assert [s.state for s in one.sandboxes].count(SandboxState.READY) == 1
    assert len(one.sandboxes) == 2
    assert sorted(c.state for c in one.containers) == ["created", "exited", "exited", "running"]
    assert sorted(c.exit_code for c in one.containers) == [0, 0, 0, 3]
    for seen in (eyes, fresh):
        seen.close()


async def test_what_runs_is_not_inspected_again(target: Target) -> None:
    container = await running(target)
    eyes = observer(target, [])
    first = await eyes.observe("u1")
    calls = target.runtime.counts().calls
    assert (await eyes.observe("u1")).same_as(first)
    assert target.runtime.counts().calls == calls + 1
    await target.runtime.kill_container(container.id, "KILL")
    await exited(target, container.id)
    (seen,) = (await eyes.observe("u1")).containers
    assert (seen.state, seen.exit_code) == (ContainerState.EXITED, 137)
    eyes.close()


@pytest.mark.parametrize("has_infra", [True, False], ids=["a pod", "a pod without infra"])
@pytest.mark.podman
async def test_who_stops_a_container_holds_no_relist(podman_service: PodmanService, has_infra: bool) -> None:
    """From 5.8 on a stop has its pod's lock until the container has ended."""
    target = PodmanTarget(podman_service)
    pod = await target.runtime.create_pod(pod_spec(target, **({} if has_infra else NO_INFRA)))
    other = await target.runtime.create_pod(pod_spec(target, "u2", **NO_INFRA))
    id = await target.runtime.create_container(container_spec(target, pod, ["sh", "-c", STUBBORN]))
    await target.runtime.start_container(id)
    eyes = observer(target, [])
    await eyes.relist(await eyes.list_all())
    stop = await asyncio.create_subprocess_exec("podman", "stop", "--time", "15", id, stdout=asyncio.subprocess.DEVNULL)
    try:
        await eventually(lambda: target.runtime.inspect_container(id), lambda found: found.state == "stopping")
        relisting = await eyes.relist(await eyes.list_all())
        assert (await target.runtime.inspect_container(id)).state == "stopping", "the stop still waits"
        assert {*relisting.statuses, *relisting.failures} == {"u1", "u2"}
        assert [sandbox.id for sandbox in relisting.statuses["u2"].sandboxes] == [other]
        if has_infra:
            listed = await eyes.observe("u1", listing=True)
            assert (await target.runtime.inspect_container(id)).state == "stopping", "the stop still waits"
            assert listed.same_as(relisting.statuses["u1"])
    finally:
        await target.runtime.kill_container(id, "KILL")
        await stop.wait()
        eyes.close()
        await target.clean()


async def test_an_empty_host(target: Target) -> None:
    eyes = observer(target, [])
    assert (await eyes.relist(await eyes.list_all())).statuses == {}
    assert (await eyes.observe("u1")).is_empty()
    eyes.close()


async def test_a_pods_life_is_followed_without_any_relist(target: Target) -> None:
    async with node_worker(target.runtime, SystemClock(), instance=target.instance, relist_period_s=NEVER_S) as master:
        relisted = await master.first(Relisted)
        assert relisted.changed == ()
        assert (await master.first(RuntimeHealth)).healthy
        await follow(target, master)
        assert master.count(RuntimeHealth) == 1


async def follow(target: Target, master: Master) -> None:
    container = await running(target)
    master.send(Track(uid="u1", row=0), Observe(uids=("u1",)))
    seen = await master.observation("u1", lambda s: bool(s.containers))
    status = master.status(seen)
    assert [(c.id, c.state, c.pid) for c in status.containers] == [
        (container.id, ContainerState.RUNNING, container.pid)
    ]
    assert [s.state for s in status.sandboxes] == [SandboxState.READY]

    before, killed_at = len(master.reports), SystemClock().now().mono
    await target.runtime.kill_container(container.id, "KILL")
    seen = await master.observation("u1", lambda s: s.containers[0].state is ContainerState.EXITED, before)
    status = master.status(seen)
    assert status.observed_at < killed_at + SOON_S
    assert status.containers[0].exit_code == 137

    before, removed_at = len(master.reports), SystemClock().now().mono
    await target.runtime.remove_pod(container.pod_id)
    seen = await master.observation("u1", lambda s: s.is_empty(), before)
    assert master.status(seen).observed_at < removed_at + SOON_S


@pytest.mark.podman
def test_the_same_on_uvloop(podman_service: PodmanService) -> None:
    """Pidfds, threads and the stream of events on the loop that workers really use."""

    async def main() -> None:
        target = PodmanTarget(podman_service)
        try:
            async with node_worker(
                target.runtime, SystemClock(), instance=target.instance, relist_period_s=NEVER_S
            ) as master:
                await master.first(Relisted)
                await follow(target, master)
        finally:
            await target.clean()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


@pytest.mark.podman
async def test_a_service_that_dies_and_comes_back(podman_service: PodmanService, tmp_path: Path) -> None:
    """Containers outlive their service; nothing that ran is shown as gone in between."""
    instance = podman_service.new_instance()
    with running_service(tmp_path) as socket:
        target = PodmanTarget(PodmanService(socket, instance))
        container = await running(target)
        worker = node_worker(target.runtime, SystemClock(), instance=target.instance)
        master = await worker.__aenter__()
        master.send(Track(uid="u1", row=0), Observe(uids=("u1",)))
        await master.observation("u1")
    before = len(master.reports)
    master.send(Relist())
    health = await master.first(RuntimeHealth, after=before)
    assert not health.healthy
    row = master.row(0)
    assert row is not None
    assert row.containers[0].id == container.id
    socket.unlink(missing_ok=True)
    before = len(master.reports)
    with running_service(tmp_path):
        await master.first(RuntimeHealth, lambda report: report.healthy, before)
        await master.first(Relisted, after=before)
        row = master.row(0)
        assert row is not None
        assert [(c.id, c.pid, c.state) for c in row.containers] == [
            (container.id, container.pid, ContainerState.RUNNING)
        ]
        await worker.__aexit__(None, None, None)
        await target.clean()
