"""Podman says what is not so, on the fake and on Podman: what it says, and what is made of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.kubecontainer.pod_status import CONTAINER_STATUS_UNKNOWN, ContainerState, RuntimePodStatus, SandboxState
from tests.contract.target import DEADLINE_S, LyingTarget, container_spec, exited, pod_spec, remove, running
from tests.fakes.ownership import ownership
from workers.containers.known_containers import KnownContainers, with_end
from workers.kubecontainer import labels
from workers.pleg.observer import Observer

pytestmark = pytest.mark.parametrize(
    "target", ["fake", pytest.param("podman", marks=pytest.mark.podman)], indirect=True
)

DEAF = ("sh", "-c", "trap '' TERM; sleep 1000")
SUB_UID = "1000"
"""A user of the container that is another one than the agent's on the host."""


class Eyes:
    """An observer that looks again when a process ends, as the node worker does."""

    def __init__(self, target: LyingTarget) -> None:
        self._asked = asyncio.Event()
        known = KnownContainers(
            target.runtime,
            SystemClock(),
            ownership=ownership(target.instance),
            pod_logs_dir="/nonexistent",
            pods_dir="/nonexistent",
            on_exit=lambda uid: self._asked.set(),
            stuck_slack_s=0.5,
        )
        self.observer = Observer(target.runtime, SystemClock(), known)

    async def until(self, holds: Callable[[RuntimePodStatus], bool]) -> RuntimePodStatus:
        async with asyncio.timeout(DEADLINE_S):
            while not holds(status := await self.observer.observe("u1")):
                await self._asked.wait()
                self._asked.clear()
        return status


def only(status: RuntimePodStatus) -> tuple[ContainerState, int, str]:
    (container,) = status.containers
    return container.state, container.exit_code, container.reason


LOST = (ContainerState.EXITED, 137, CONTAINER_STATUS_UNKNOWN)


@pytest.mark.parametrize("user", ["0", SUB_UID])
async def test_an_end_without_a_monitor_is_never_noticed_by_podman_and_at_once_by_us(
    target: LyingTarget, user: str
) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod, ("sleep", "1.5"), user=user))
    await target.runtime.start_container(id)
    container = await target.runtime.inspect_container(id)
    eyes = Eyes(target)
    assert only(await eyes.observer.observe("u1")) == (ContainerState.RUNNING, 0, "")
    assert target.runtime.has_monitor(container.process)
    await target.kill_monitor(container)
    assert not target.runtime.has_monitor(container.process)
    # The container lives: nobody makes anything of it yet.
    assert only(await eyes.observer.observe("u1")) == (ContainerState.RUNNING, 0, "")
    status = await eyes.until(lambda status: only(status) == LOST)
    assert [s.state for s in status.sandboxes] == [SandboxState.READY]
    shown = await target.runtime.inspect_container(id)
    assert (shown.state, shown.pid) == ("running", container.pid)
    # A first look finds the same, in a list and alone.
    fresh = Eyes(target)
    assert only(await fresh.until(lambda status: only(status) == LOST)) == LOST
    assert only((await fresh.observer.relist(await fresh.observer.list_all())).statuses["u1"]) == LOST
    assert await target.runtime.wait_exit(container.process, DEADLINE_S)
    await target.runtime.kill_container(id, "KILL")
    for each in (eyes, fresh):
        each.observer.close()


async def test_a_sandbox_whose_infra_container_ends_unnoticed_is_not_ready(target: LyingTarget) -> None:
    container = await running(target)
    infra = next(c for c in await target.runtime.list_containers() if c.is_infra)
    shown = await target.runtime.inspect_container(infra.id)
    eyes = Eyes(target)
    await eyes.observer.observe("u1")
    await target.kill_monitor(shown)
    await target.kill_process(shown)
    status = await eyes.until(lambda status: status.sandboxes[0].state is SandboxState.NOT_READY)
    assert only(status)[0] is ContainerState.RUNNING
    assert status.containers[0].id == container.id
    assert (await target.runtime.inspect_container(infra.id)).state == "running"
    eyes.observer.close()


async def test_a_stop_that_was_abandoned_leaves_stopping_for_ever(target: LyingTarget) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    own = {**container_spec(target, pod)["labels"], labels.GRACE_PERIOD_S: "1"}
    id = await target.runtime.create_container(container_spec(target, pod, DEAF, labels=own))
    await target.runtime.start_container(id)
    container = await target.runtime.inspect_container(id)
    eyes = Eyes(target)
    await target.abandon_stop(container)
    assert only(await eyes.observer.observe("u1"))[0] is ContainerState.RUNNING
    async with asyncio.timeout(DEADLINE_S):
        while only(await eyes.observer.observe("u1"))[0] is not ContainerState.UNKNOWN:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert (await target.runtime.inspect_container(id)).state == "stopping"
    await target.runtime.kill_container(id, "KILL")
    await exited(target, id)
    assert only(await eyes.observer.observe("u1")) == (ContainerState.EXITED, 137, "")
    eyes.observer.close()


async def test_a_stop_of_what_ended_without_a_monitor_leaves_an_end(target: LyingTarget) -> None:
    container = await running(target, DEAF)
    eyes = Eyes(target)
    await target.abandon_stop(container)
    await target.kill_monitor(container)
    await target.kill_process(container)
    await eyes.until(lambda status: only(status) == LOST)
    assert (await target.runtime.inspect_container(container.id)).state == "stopping"
    await remove(target.runtime.remove_container, container.id)
    assert (await eyes.observer.observe("u1")).containers == ()
    eyes.observer.close()


async def test_what_runs_without_a_monitor_can_be_removed(target: LyingTarget) -> None:
    """kill -9 of both, then the way that the next container takes: a name that is free."""
    container = await running(target)
    await target.kill_monitor(container)
    await target.kill_process(container)
    await remove(target.runtime.remove_container, container.id)
    again = await target.runtime.create_container({**container_spec(target, container.pod_id), "name": container.name})
    await target.runtime.start_container(again)
    assert (await target.runtime.inspect_container(again)).state == "running"


async def test_a_pid_that_passed_to_a_stranger_is_no_process_of_the_container(target: LyingTarget) -> None:
    container, other = await running(target), await running(target)
    stale = msgspec.structs.replace(container, pid=other.pid)
    assert target.runtime.open_process(stale) is None
    pidfd = target.runtime.open_process(container)
    assert pidfd is not None
    os.close(pidfd)


async def test_what_the_monitor_notes_of_an_end_is_what_podman_says_of_it(target: LyingTarget) -> None:
    container = await running(target)
    assert target.runtime.recorded_end(container.process) is None
    await target.kill_process(container)
    async with asyncio.timeout(DEADLINE_S):
        while (noted := target.runtime.recorded_end(container.process)) is None:  # noqa: ASYNC110 - another program's file
            await asyncio.sleep(0.001)
    shown = await target.runtime.inspect_container(container.id)
    assert shown.state in ("stopped", "exited")
    assert (shown.exit_code, shown.oom_killed) == (noted.exit_code, noted.oom_killed) == (137, False)
    assert shown.finished_at == pytest.approx(noted.finished_at, abs=1e-5)
    believed = with_end(container, noted)
    expected = msgspec.structs.replace(shown, state="exited", finished_at=believed.finished_at)
    assert msgspec.structs.asdict(believed) == msgspec.structs.asdict(expected)


async def test_without_a_monitor_nobody_notes_an_end(target: LyingTarget) -> None:
    container = await running(target)
    await target.kill_monitor(container)
    await target.kill_process(container)
    assert target.runtime.recorded_end(container.process) is None
