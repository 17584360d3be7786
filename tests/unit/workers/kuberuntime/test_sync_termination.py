"""Pods that go down: in order, in time, completely."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from pathlib import Path

import pytest

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.pod_worker import NO_EFFECTS, SyncDone, WorkType
from ipc.link.messages.sync_error import SyncError
from tests.fakes.runtime import Flavour
from tests.support.pods import UID, container, pod
from tests.support.sync import MUTATIONS, FakeHost, on_host, targets
from workers.kubecontainer.runtime import ContainerProcess
from workers.logs import layout
from workers.sync.removal_gate import REMOVED_WITHIN_S, RemovalGate

POLITE = 'trap "exit 7" TERM; sleep 1000000'
"""Leaves at once on SIGTERM."""


def polite(name: str) -> Container:
    return container(name, args=("sh", "-c", POLITE))


async def took_s(host: FakeHost, work: Awaitable[SyncDone]) -> float:
    started = host.clock.now().mono
    await work
    return round(host.clock.now().mono - started, 3)


@pytest.mark.parametrize(("grace_period_s", "expected_s"), [(None, 30), (5, 5), (0, 2)])
def test_the_stubborn_are_killed_when_the_grace_period_ends_all_at_once(
    tmp_path: Path, grace_period_s: int | None, expected_s: float
) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a", "b", "c")
        await host.sync(of)
        assert await took_s(host, host.sync(of, WorkType.TERMINATING, grace_period_s=grace_period_s)) == expected_s
        status = await host.observe(UID)
        assert not status.is_running()
        assert {c.exit_code for c in status.containers} == {137}

    on_host(tmp_path, scenario)


def test_the_polite_leave_at_once_with_their_own_exit_code(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(polite("a"), polite("b"))
        await host.sync(of)
        host.reasons()
        done = await host.sync(of, WorkType.TERMINATING)
        assert targets(done) == [("KillContainer", ""), ("KillContainer", ""), ("KillPodSandbox", "")]
        assert sorted(host.reasons()) == ["Killing spec.containers{a}", "Killing spec.containers{b}"]
        assert {c.exit_code for c in (await host.observe(UID)).containers} == {7}
        assert (await host.sync(of, WorkType.TERMINATING)).changed is False

    on_host(tmp_path, scenario)


def test_the_sandbox_goes_last(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        await host.sync(of)
        (infra,) = [c for c in host.podman.containers.values() if c.is_infra]
        task = asyncio.ensure_future(host.sync(of, WorkType.TERMINATING))
        await asyncio.sleep(29)
        assert infra.state == "running", "the network stays while a container says goodbye"
        await task
        assert infra.state == "exited"

    on_host(tmp_path, scenario)


def test_the_sandbox_of_an_unwanted_pod_is_left_to_its_removal(tmp_path: Path) -> None:
    """One call takes the pod away, with its sandbox that still runs; nothing is asked of single containers."""

    async def scenario(host: FakeHost) -> None:
        of = pod("a", "b")
        await host.sync(of)
        done = await host.sync(of, WorkType.TERMINATING, grace_period_s=0, remove=True)
        assert targets(done) == [("KillContainer", ""), ("KillContainer", "")]
        status = await host.observe(UID)
        assert (status.has_running_containers(), status.is_running()) == (False, True)
        done = await host.sync(of, WorkType.TERMINATED, remove=True)
        assert targets(done) == [("RemovePodSandbox", "")]
        assert (await host.observe(UID)).is_empty()

    on_host(tmp_path, scenario)


def test_one_call_takes_an_unwanted_pod_away(tmp_path: Path) -> None:
    """The signals go past Podman, and what the call has answered says what is gone."""

    async def scenario(host: FakeHost) -> None:
        of = pod(polite("a"), "b")
        await host.sync(of)
        (sandbox,) = host.podman.pods
        host.runtime.calls.clear()
        stopped = await host.sync(of, WorkType.TERMINATING, grace_period_s=2, remove=True)
        assert (stopped.changed, stopped.effects) == (True, NO_EFFECTS)
        removed = await host.sync(of, WorkType.TERMINATED, remove=True)
        assert (removed.changed, removed.effects.touched, removed.effects.removed, removed.effects.unsure) == (
            True,
            (),
            (sandbox,),
            False,
        )
        acts = [verb for verb in host.runtime.calls if verb in ("kill_container", "wait_exit", "remove_pod")]
        assert acts == ["remove_pod"]

    on_host(tmp_path, scenario)


def test_the_infra_container_has_ended_when_the_call_that_takes_the_pod_away_begins(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        await host.sync(of)
        (infra,) = [c for c in host.podman.containers.values() if c.is_infra]
        await host.sync(of, WorkType.TERMINATING, grace_period_s=0, remove=True)
        assert infra.state == "running", "an unwanted pod's network stays until the status has told of its ends"
        host.runtime.fail(1, Flavour.FAILED, "remove_pod")
        host.runtime.fail(2, Flavour.FAILED, "remove_pod")
        done = await host.sync(of, WorkType.TERMINATED, remove=True)
        assert (done.error, infra.state, infra.exit_code) == (SyncError.REMOVE, "exited", 137)
        assert (await host.sync(of, WorkType.TERMINATED, remove=True)).error == ""
        assert not host.podman.pods

    on_host(tmp_path, scenario)


def test_no_monitor_of_a_pod_that_is_removed_stays_to_clean_up(tmp_path: Path) -> None:
    """Not before the status has told of the ends, which monitors' records are read for."""

    async def scenario(host: FakeHost) -> None:
        of = pod(polite("a"), polite("b"))
        await host.sync(of)
        podman = host.podman
        infra, others = (
            sorted(c.id for c in podman.containers.values() if c.is_infra is is_infra) for is_infra in (True, False)
        )
        await host.sync(of, WorkType.TERMINATING, remove=True)
        assert podman.dismissed == []
        host.runtime.fail(1, Flavour.FAILED, "remove_pod")
        host.runtime.fail(2, Flavour.FAILED, "remove_pod")
        await host.sync(of, WorkType.TERMINATED, remove=True)
        assert (sorted(podman.dismissed[:2]), podman.dismissed[2:]) == (others, infra)

    on_host(tmp_path, scenario)


def test_monitors_of_a_pod_that_stays_clean_up(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(polite("a"))
        await host.sync(of)
        await host.sync(of, WorkType.TERMINATING)
        await host.sync(of, WorkType.TERMINATED)
        assert host.podman.dismissed == []

    on_host(tmp_path, scenario)


def test_where_nothing_can_be_signalled_past_podman_its_removal_ends_the_infra_container(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(polite("a"))
        await host.sync(of)
        await host.sync(of, WorkType.TERMINATING, remove=True)
        host.runtime.signal_process = lambda process, signal: False  # type: ignore[method-assign]
        host.runtime.calls.clear()
        assert (await host.sync(of, WorkType.TERMINATED, remove=True)).error == ""
        assert list(host.runtime.calls) == ["remove_pod"]
        assert not host.podman.pods

    on_host(tmp_path, scenario)


@pytest.mark.parametrize("why", ["unknown process", "not permitted"])
def test_what_cannot_be_signalled_past_podman_is_signalled_by_it(tmp_path: Path, why: str) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(polite("a"))
        await host.sync(of)
        host.runtime.signal_process = lambda process, signal: False  # type: ignore[method-assign]
        host.runtime.calls.clear()
        done = await host.sync(of, WorkType.TERMINATING, remove=True)
        assert list(host.runtime.calls).count("kill_container") == 1
        (killed,) = (await host.observe(UID)).containers
        assert (killed.exit_code, done.effects.touched) == (7, (killed.id,))

    on_host(tmp_path, scenario)


def test_the_pods_that_went_down_first_are_removed_before_others_are_stopped(tmp_path: Path) -> None:
    """Nor do the stops of many pods take the permits of removals."""

    async def scenario(host: FakeHost) -> None:
        host.configure("services", removals=RemovalGate(1))
        services = host.context.services
        first, second = pod(polite("a")), pod(polite("b"), uid="second", name="second")
        for of in (first, second):
            await host.sync(of)
        order: list[str] = []

        async def hurried(of: Pod, kind: WorkType) -> None:
            await host.sync(of, kind, remove=True)
            order.append(f"{of.metadata.name} {kind}")

        async with contextlib.AsyncExitStack() as stack:
            for _ in range(MUTATIONS):
                await stack.enter_async_context(services.mutations.permit(0))
            await hurried(first, WorkType.TERMINATING)
            stopping = asyncio.create_task(hurried(second, WorkType.TERMINATING))
            removing = asyncio.create_task(hurried(first, WorkType.TERMINATED))
            await asyncio.sleep(REMOVED_WITHIN_S / 2)
            assert len(host.podman.pods) == 2
        await asyncio.gather(stopping, removing)
        assert order == [
            f"{first.metadata.name} {WorkType.TERMINATING}",
            f"{first.metadata.name} {WorkType.TERMINATED}",
            f"second {WorkType.TERMINATING}",
        ]

    on_host(tmp_path, scenario)


def test_a_shorter_grace_period_cuts_the_wait(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a", termination_grace_period_seconds=600)
        await host.sync(of)
        cancel = asyncio.Event()
        first = asyncio.ensure_future(host.sync(of, WorkType.TERMINATING, cancel=cancel, grace_period_s=600))
        await asyncio.sleep(10)
        cancel.set()
        done = await first
        assert (done.cancelled, done.changed, list(host.running())) == (True, True, ["a"])
        assert await took_s(host, host.sync(of, WorkType.TERMINATING, grace_period_s=3)) == 3

    on_host(tmp_path, scenario)


def test_an_orphan_goes_by_its_labels(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a", termination_grace_period_seconds=12))
        assert await took_s(host, host.sync(None, WorkType.TERMINATING, uid=UID)) == 12
        host.reasons()
        await host.settle(None, WorkType.TERMINATED, uid=UID, remove=True)
        assert (await host.observe(UID)).is_empty()
        assert list(host.logs_dir.iterdir()) == []

    on_host(tmp_path, scenario)


def test_an_orphan_is_never_synced(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a"))
        with pytest.raises(AssertionError, match="can only be stopped"):
            await host.sync(None, uid=UID)

    on_host(tmp_path, scenario)


def test_events_of_an_orphan_name_its_pod(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a"))
        host.events.clear()
        await host.sync(None, WorkType.TERMINATING, uid=UID)
        assert {(e.namespace, e.name, e.message) for e in host.events} == {("default", "web", "Stopping container a")}

    on_host(tmp_path, scenario)


def test_a_terminated_pod_that_is_still_wanted_keeps_its_containers_and_logs(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        await host.sync(of)
        await host.sync(of, WorkType.TERMINATING, grace_period_s=0)
        done = await host.sync(of, WorkType.TERMINATED)
        assert (done.changed, done.error) == (False, "")
        assert len((await host.observe(UID)).containers) == 1
        assert (layout.pod_directory(str(host.logs_dir), "default", "web", UID) / "a").is_dir()

    on_host(tmp_path, scenario)


def test_what_cannot_be_removed_is_tried_again_and_the_logs_wait(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        await host.sync(of)
        await host.sync(of, WorkType.TERMINATING, grace_period_s=0)
        for nth in (1, 1):
            host.runtime.fail(nth, Flavour.FAILED, "remove_pod")
        host.runtime.fail(2, Flavour.FAILED, "remove_pod")
        done = await host.sync(of, WorkType.TERMINATED, remove=True)
        assert (done.error, targets(done)) == ("RemoveError", [("RemovePodSandbox", "RemoveError")])
        assert list(host.logs_dir.iterdir()) != []
        assert (await host.sync(of, WorkType.TERMINATED, remove=True)).error == ""
        assert list(host.logs_dir.iterdir()) == []

    on_host(tmp_path, scenario)


def test_a_container_whose_end_podman_missed_is_removed(tmp_path: Path) -> None:
    """The process is gone, and Podman shows it as running for ever."""

    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        await host.sync(of)
        (ghost,) = host.podman.running()

        async def gone(process: ContainerProcess, timeout_s: float) -> bool:
            return True

        host.podman.kill_container = lambda id, name: None  # type: ignore[method-assign]
        host.runtime.wait_exit = gone  # type: ignore[method-assign]
        await host.sync(of, WorkType.TERMINATING)
        assert ghost.id not in host.podman.containers

    on_host(tmp_path, scenario)


def test_a_container_of_a_pod_that_stays_and_does_not_die_ends_its_sync_and_is_told_of(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a"))
        host.podman.kill_container = lambda id, name: None  # type: ignore[method-assign]
        for tries in (1, 2):
            done = await host.sync(pod("b"))
            assert done.error == "KillContainerError"
            told = [e for e in host.events if (e.type, e.reason) == ("Warning", "FailedKillContainer")]
            assert len(told) == tries
            assert told[-1].message.startswith("error killing container a: still runs")

    on_host(tmp_path, scenario)


def test_what_does_not_die_is_reported(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        await host.sync(of)
        host.podman.kill_container = lambda id, name: None  # type: ignore[method-assign]
        done = await host.sync(of, WorkType.TERMINATING)
        assert done.error == "KillContainerError"
        assert [(e.type, e.reason) for e in host.events][-1] == ("Warning", "FailedKillPod")
        assert host.events[-1].message.startswith("error killing pod: container a: still runs")

    on_host(tmp_path, scenario)
