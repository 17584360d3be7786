"""Podman says what is not so: it is noticed, and the pod comes right. On a fake Podman, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ipc.k8s.kubecontainer.pod_status import CONTAINER_STATUS_UNKNOWN, ContainerState, RuntimePodStatus, SandboxState
from ipc.link.messages.node_worker import (
    Observation,
    ObservationFailed,
    Observe,
    Relist,
    Relisted,
    RuntimeHealth,
    Track,
)
from ipc.link.messages.pod_worker import WorkType
from tests.fakes.clock import SimClock, simulate, simulated
from tests.fakes.ownership import ownership
from tests.support import pods
from tests.support.node_worker import NEVER_S, Host, Master, to_list
from tests.support.sync import FakeHost
from workers.containers.exit_watch import PATIENCE_S
from workers.containers.known_containers import KnownContainers
from workers.kubecontainer import labels
from workers.kubecontainer.overrides import STUCK_SLACK_S
from workers.pleg.observer import Observer

SOON_S = 1.0
PERIOD_S = 10.0


async def follow(master: Master, uid: str = "u1") -> None:
    master.send(Track(uid=uid, row=0), Observe(uids=(uid,)))
    await master.observation(uid, lambda status: bool(status.containers), after=len(master.reports))


async def news(master: Master, holds: Callable[[RuntimePodStatus], bool]) -> Observation:
    """The first look at the followed pod from now on of which that is true."""
    return await master.observation("u1", holds, after=len(master.reports))


def is_lost(status: RuntimePodStatus) -> bool:
    newest = status.containers[0]
    return (newest.state, newest.exit_code, newest.reason) == (ContainerState.EXITED, 137, CONTAINER_STATUS_UNKNOWN)


# --- ends that Podman does not notice ------------------------------------------------------------------------------


@simulated
async def test_running_with_a_dead_pid_and_a_dead_monitor_is_an_end() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        await follow(master)
        host.podman.kill_monitor(container)
        host.podman.exit(container, 3)
        ended_at = host.now()
        seen = await news(master, is_lost)
        assert seen.observed_at < ended_at + SOON_S
        status = master.status(seen)
        assert status.containers[0].finished_at == pytest.approx(host.clock.wall_offset_s + ended_at, abs=0.1)
        assert status.sandboxes[0].state is SandboxState.READY
        assert host.podman.container(container).state == "running"


@simulated
async def test_and_it_costs_nothing_from_then_on() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        await follow(master)
        host.podman.kill_monitor(container)
        host.podman.exit(container)
        await news(master, is_lost)
        calls = len(host.runtime.calls)
        await asyncio.sleep(590)
        assert set(list(host.runtime.calls)[calls:]) == {"version"}, "a sign of life, and nothing about containers"
        before, calls = len(master.reports), len(host.runtime.calls)
        master.send(Relist())
        await master.first(Relisted, after=before)
        assert is_lost(master.row(0) or RuntimePodStatus(uid=""))
        assert len(host.runtime.calls) == calls + 2


@simulated
async def test_it_is_found_by_a_node_worker_that_was_not_there() -> None:
    host = Host()
    container = host.running("u1")
    host.podman.kill_monitor(container)
    host.podman.exit(container)
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        await news(master, is_lost)


@simulated
async def test_a_monitor_that_hangs_has_its_time_and_may_still_tell() -> None:
    host = Host()
    container = host.running("u1")
    fake = host.podman.container(container)
    async with host.worker(relist_period_s=NEVER_S) as master:
        await follow(master)
        # Stopped, not dead: it is there and says nothing.
        host.podman.kill_monitor(container)
        host.runtime.has_monitor = lambda process: True  # type: ignore[method-assign]
        host.podman.exit(container)
        ended_at = host.now()
        await news(master, is_lost)
        assert PATIENCE_S <= host.now() - ended_at < PATIENCE_S + 5
        # The pod goes on.
        fake.state, fake.pid, fake.exit_code, fake.is_dead = "exited", 0, 5, False
        fake.finished_at = host.clock.now().wall
        master.send(Relist())
        seen = await news(master, lambda status: status.containers[0].exit_code == 5)
        assert master.status(seen).containers[0].reason == ""


@simulated
async def test_a_dead_monitor_under_a_living_container_changes_nothing() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=PERIOD_S) as master:
        await follow(master)
        before = master.row(0)
        host.podman.kill_monitor(container)
        await asyncio.sleep(200)
        after = master.row(0)
        assert before is not None
        assert after is not None
        assert after.same_as(before)


@simulated
async def test_an_infra_container_that_ends_unnoticed_leaves_the_sandbox_not_ready() -> None:
    host = Host()
    container = host.running("u1")
    infra = host.podman.pods[host.podman.container(container).pod_id].infra_id
    async with host.worker(relist_period_s=NEVER_S) as master:
        await follow(master)
        host.podman.kill_monitor(infra)
        host.podman.exit(infra)
        ended_at = host.now()
        seen = await news(master, lambda status: status.sandboxes[0].state is SandboxState.NOT_READY)
        assert seen.observed_at < ended_at + SOON_S
        assert master.status(seen).containers[0].state is ContainerState.RUNNING


@simulated
async def test_with_one_pid_namespace_the_sandboxs_end_is_seen_with_that_of_its_containers() -> None:
    """The infra container's process ends last: its pidfd tells nothing yet."""
    host = Host()
    container = host.running("u1", leaves=True)
    infra = host.podman.container(host.podman.pods[host.podman.container(container).pod_id].infra_id)
    async with host.worker(relist_period_s=NEVER_S) as master:
        await follow(master)
        infra.is_exiting = True
        host.podman.exit(container, 137)
        seen = await news(master, lambda status: status.containers[0].state is ContainerState.EXITED)
        assert master.status(seen).sandboxes[0].state is SandboxState.NOT_READY


@pytest.mark.parametrize("major", [4, 5])
@simulated
async def test_after_a_reboot_everything_has_ended_and_nothing_counts_as_never_started(major: int) -> None:
    host = Host()
    host.podman.major = major
    host.running("u1")
    done = host.running("u2", command=["true"])
    never = host.container(host.podman.container(done).pod_id, "u2", "never")
    await asyncio.sleep(1)
    host.podman.reboot()
    async with host.worker() as master:
        relisted = await master.first(Relisted)
        one, two = (seen.status for seen in relisted.changed)
        assert one is not None
        assert two is not None
        assert is_lost(one)
        assert {s.state for s in (*one.sandboxes, *two.sandboxes)} == {SandboxState.NOT_READY}
        by_id = {c.id: c for c in two.containers}
        assert (by_id[done].state, by_id[done].exit_code, by_id[done].reason) == (ContainerState.EXITED, 0, "")
        assert by_id[never].state is ContainerState.CREATED


@pytest.mark.parametrize("major", [4, 5])
@simulated
async def test_after_a_reboot_a_run_has_not_the_end_of_the_run_before_it(major: int) -> None:
    """Somebody's `podman restart` a moment before: the date of an end is there, and is another run's."""
    host = Host()
    host.podman.major = major
    again, quick = host.running("u1"), host.running("u2", command=["true"])
    await asyncio.sleep(1)
    host.podman.exit(again, 3)
    await asyncio.sleep(0.01)
    host.podman.start_container(again)
    ended = host.podman.container(quick)
    ended.finished_at = ended.started_at - 0.01  # as Podman notes it of a process that ends at once
    host.podman.reboot()
    async with host.worker() as master:
        await master.first(Relisted)
        master.send(Track(uid="u1", row=0), Track(uid="u2", row=1), Observe(uids=("u1", "u2")))
        seen = await master.observation("u1", lambda status: bool(status.containers))
        assert is_lost(master.status(seen))
        seen = await master.observation("u2", lambda status: bool(status.containers))
        assert (master.status(seen).containers[0].exit_code, master.status(seen).containers[0].reason) == (0, "")


# --- states that do not last ---------------------------------------------------------------------------------------


@simulated
async def test_a_stop_that_nobody_brings_to_its_end_has_its_time() -> None:
    host = Host()
    container = host.container(host.pod("u1"), "u1", **{labels.GRACE_PERIOD_S: "20"})
    host.podman.start_container(container)
    async with host.worker(relist_period_s=PERIOD_S) as master:
        await follow(master)
        host.podman.abandon(container, "stopping")
        begun_at = host.now()
        await news(master, lambda status: status.containers[0].state is ContainerState.UNKNOWN)
        assert begun_at + 20 + STUCK_SLACK_S <= host.now() < begun_at + 20 + STUCK_SLACK_S + 5 * PERIOD_S


@simulated
async def test_a_stop_that_comes_to_its_end_is_one() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        await follow(master)
        host.podman.abandon(container, "stopping")
        host.podman.exit(container, 143)
        seen = await news(master, lambda status: status.containers[0].state is ContainerState.EXITED)
        assert master.status(seen).containers[0].exit_code == 143


# --- lists that are not whole --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_list_that_lacks_what_exists_makes_no_pod_absent(limit: int) -> None:
    async def main() -> None:
        host = Host()
        for number in range(3):
            host.running(f"u{number}")
        async with host.worker(relist_period_s=PERIOD_S) as master:
            master.send(*(Track(uid=f"u{number}", row=number) for number in range(3)))
            await asyncio.sleep(1)
            before = [master.row(number) for number in range(3)]
            host.runtime.list_limit, reports = limit, len(master.reports)
            master.send(Relist(), Observe(uids=("u0", "u1", "u2")))
            sick = await master.first(RuntimeHealth, after=reports)
            assert not sick.healthy
            assert "lacks" in sick.message
            await asyncio.sleep(100)
            assert not any(isinstance(report, Relisted) for report in master.reports[reports:])
            for number, row in enumerate(before):
                now = master.row(number)
                assert row is not None
                assert now is not None
                assert now.same_as(row)
            host.runtime.list_limit = None
            await master.first(Relisted, after=reports)

    simulate(main)


@simulated
async def test_a_look_at_one_pod_that_lacks_what_exists_is_made_again() -> None:
    host = Host()
    for number in range(20):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        await follow(master)
        before = len(master.reports)
        host.runtime.list_limit = 0
        master.send(to_list("u1"))
        await asyncio.sleep(5)
        assert {type(report) for report in master.reports[before:]} == {ObservationFailed}
        host.runtime.list_limit = None
        seen = await master.observation("u1", after=before)
        assert not seen.changed


@simulated
async def test_what_a_list_rightly_does_not_show_is_gone() -> None:
    host = Host()
    containers = [host.running(f"u{number}") for number in range(10)]
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(*(Track(uid=f"u{number}", row=number) for number in range(10)))
        host.podman.mute = True
        for container in containers[:5]:
            host.podman.remove_pod(host.podman.container(container).pod_id)
        before = len(master.reports)
        master.send(Relist())
        relisted = await master.first(Relisted, after=before)
        assert {seen.uid for seen in relisted.changed if master.status(seen).is_empty()} == {f"u{n}" for n in range(5)}


@simulated
async def test_a_container_that_podman_has_forgotten_is_ended() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        await follow(master)
        await asyncio.sleep(1)
        looked = host.calls("end_leftovers")
        host.podman.forget(container)
        assert host.podman.lost
        master.send(to_list("u1"))
        await news(master, lambda status: not status.containers)
        await asyncio.sleep(1)
        assert host.calls("end_leftovers") == looked + 1
        assert not host.podman.lost


# --- and the pod comes right ---------------------------------------------------------------------------------------


class Seen(FakeHost):
    """Looked at as the node worker does."""

    def __init__(self, logs_dir: Path) -> None:
        super().__init__(logs_dir)
        known = KnownContainers(
            self._eyes,
            self.clock,
            ownership=ownership(self.INSTANCE),
            pod_logs_dir=str(self.logs_dir),
            pods_dir=str(self.pods_dir),
            on_exit=lambda uid: None,
        )
        self.observer = Observer(self._eyes, self.clock, known)

    async def observe(self, uid: str) -> RuntimePodStatus:
        return await self.observer.observe(uid)

    async def observe_long(self, uid: str) -> RuntimePodStatus:
        """As long as the exit watch goes on asking."""
        for _ in range(3):
            await self.observe(uid)
            await asyncio.sleep(PATIENCE_S)
        return await self.observe(uid)


def lied_to(tmp_path: Path, test: Callable[[Seen], Awaitable[None]]) -> None:
    async def main() -> None:
        host = Seen(tmp_path / "logs")
        await test(host)
        host.observer.close()
        host.podman.close()

    simulate(main)


@pytest.mark.parametrize(("policy", "again"), [("Always", True), ("OnFailure", True), ("Never", False)])
def test_after_an_end_that_nobody_saw_its_policy_decides(tmp_path: Path, policy: str, again: bool) -> None:
    async def test(host: Seen) -> None:
        pod = pods.pod("main", restart_policy=policy)
        await host.settle(pod)
        first = host.running()["main"]
        host.podman.kill_monitor(first)
        host.podman.exit(first)
        await host.observe_long(pod.metadata.uid)
        await host.settle(pod)
        assert ("main" in host.running()) is again
        status = await host.observe(pod.metadata.uid)
        newest = status.newest("main")
        assert newest is not None
        assert newest.attempt == int(again)
        # A container that everybody else would take for a twin goes as soon as it is not needed any more.
        assert len(status.containers) == 1

    lied_to(tmp_path, test)


def test_a_dead_infra_container_under_living_ones_brings_another_sandbox(tmp_path: Path) -> None:
    async def test(host: Seen) -> None:
        pod = pods.pod("a", "b")
        await host.settle(pod)
        before = host.running()
        infra = next(c.id for c in host.podman.containers.values() if c.is_infra)
        host.podman.kill_monitor(infra)
        host.podman.exit(infra)
        await host.observe_long(pod.metadata.uid)
        await host.settle(pod)
        status = await host.observe(pod.metadata.uid)
        assert next((s.attempt, s.state) for s in status.sandboxes) == (1, SandboxState.READY)
        assert host.running().keys() == {"a", "b"}
        assert not set(before.values()) & set(host.running().values())

    lied_to(tmp_path, test)


@pytest.mark.parametrize("state", ["stopping", "removing"])
def test_what_is_between_two_states_for_ever_is_replaced(tmp_path: Path, state: str) -> None:
    async def test(host: Seen) -> None:
        pod = pods.pod("main")
        await host.settle(pod)
        first = host.running()["main"]
        host.podman.abandon(first, state)
        await host.observe(pod.metadata.uid)
        await asyncio.sleep(30 + STUCK_SLACK_S)
        await host.settle(pod)
        assert host.running().keys() == {"main"}
        assert host.running()["main"] != first
        assert first not in host.podman.containers or host.podman.container(first).state == "exited"

    lied_to(tmp_path, test)


def test_a_pod_whose_every_process_podman_lost_sight_of_goes_down(tmp_path: Path) -> None:
    async def test(host: Seen) -> None:
        pod = pods.pod("a", "b")
        await host.settle(pod)
        for container in list(host.podman.containers.values()):
            host.podman.kill_monitor(container.id)
            if not container.is_infra:
                host.podman.exit(container.id)
        await host.observe_long(pod.metadata.uid)
        await host.settle(pod, WorkType.TERMINATING, grace_period_s=1)
        await host.settle(pod, WorkType.TERMINATED, remove=True)
        assert not host.podman.containers
        assert not host.podman.pods

    lied_to(tmp_path, test)


@pytest.mark.parametrize("major", [4, 5])
def test_after_a_reboot_a_pod_runs_again_and_a_job_is_not_done_for_it(tmp_path: Path, major: int) -> None:
    async def test(host: Seen) -> None:
        host.podman.major = major
        pod = pods.pod("main", restart_policy="OnFailure")
        await host.settle(pod)
        host.podman.reboot()
        status = await host.observe(pod.metadata.uid)
        assert is_lost(status)
        await host.settle(pod)
        assert host.running().keys() == {"main"}
        again = await host.observe(pod.metadata.uid)
        assert [s.attempt for s in again.sandboxes if s.state is SandboxState.READY] == [1]

    lied_to(tmp_path, test)


@pytest.mark.parametrize("jump_s", [-3 * 3600.0, 3 * 3600.0])
def test_a_clock_that_jumps_keeps_no_crashed_container_waiting(tmp_path: Path, jump_s: float) -> None:
    async def test(host: Seen) -> None:
        pod = pods.pod("main")
        await host.settle(pod)
        for _ in range(3):  # into the back-off
            host.podman.exit(host.running()["main"], 1)
            await host.settle(pod)
        host.podman.exit(host.running()["main"], 1)
        assert isinstance(host.clock, SimClock)
        host.clock.wall_offset_s += jump_s
        done = await host.sync(pod)
        waits = [result.retry_at - host.clock.now().wall for result in done.results if result.retry_at]
        assert all(wait <= 300.0 for wait in waits)
        assert host.running().keys() == {"main"} or waits

    lied_to(tmp_path, test)
