"""Reasons of the node worker to look at a pod that nobody asked about. On a fake Podman, in simulated time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus, SandboxState
from ipc.link.messages.node_worker import Observe, Relist, Relisted, Track
from ipc.link.messages.pod_worker import SyncEffects
from tests.fakes.clock import simulate, simulated
from tests.fakes.ownership import ownership
from tests.support.node_worker import NEVER_S, Host, asked, node_worker
from workers.containers.exit_watch import RECORD_HOLDS_S, SETTLE_S
from workers.containers.known_containers import KnownContainers
from workers.kubecontainer.runtime import RuntimeEvent
from workers.pleg.evented import HINTS, SYNC_S
from workers.pleg.observer import Observer
from workers.pleg.relist_schedule import RETRIES


@simulated
async def test_the_end_of_a_process_is_told_as_its_monitor_has_noted_it_and_podman_is_not_asked() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        before = len(master.reports)
        master.send(Observe(uids=("u1",)))
        looked_at = (await master.observation("u1", after=before)).observed_at
        await asyncio.sleep(1)
        host.podman.mute = True
        before, calls, ended_at = len(master.reports), len(host.runtime.calls), host.now()
        host.podman.exit(container, 3, oom_killed=True)
        seen = await master.observation("u1", is_over, before)
        assert host.now() - ended_at < SETTLE_S
        assert len(host.runtime.calls) == calls
        # Nobody has looked whether there is anything new: the view is as old as it was.
        assert seen.observed_at == looked_at
        (told,) = master.status(seen).containers
        assert (told.exit_code, told.oom_killed, told.pid, told.reason) == (3, True, 0, "")
        assert told.finished_at == pytest.approx(host.clock.wall_offset_s + ended_at, abs=0.001)
        before = len(master.reports)
        master.send(Observe(uids=("u1",)))
        assert (await master.observation("u1", is_over, before)).observed_at > ended_at
        assert len(host.runtime.calls) == calls, "the record stands for what Podman would say"
        before = len(master.reports)
        master.send(Relist())
        await master.first(Relisted, after=before)
        assert "inspect_container" not in list(host.runtime.calls)[calls:], "beside a list as well"
        confirmed = await master.observation("u1", is_over, len(master.reports))
        assert confirmed.observed_at >= ended_at + RECORD_HOLDS_S
        assert "inspect_container" not in list(host.runtime.calls)[calls:], "the record is what Podman says of the end"
        (shown,) = master.status(confirmed).containers
        assert shown == told
        inspects, before = list(host.runtime.calls).count("inspect_container"), len(master.reports)
        master.send(Relist())
        await master.first(Relisted, after=before)
        assert list(host.runtime.calls).count("inspect_container") == inspects, "the list shows the same run"


@simulated
async def test_pods_whose_ends_rest_on_records_are_observed_again_in_their_order() -> None:
    """Not in that of the hashes of their names: a simulated seed comes out the same in every process."""
    host, uids = Host(), [f"u{number}" for number in range(8)]
    containers = [host.running(uid) for uid in uids]
    observer = Observer(host.runtime, host.clock, known_to(host))
    await observer.relist(await observer.list_all())
    for container in containers:
        host.podman.exit(container, 3)
    await asyncio.sleep(1)
    assert list(observer.known.relying_on_records()) == uids
    observer.close()


def known_to(host: Host) -> KnownContainers:
    return KnownContainers(
        host.runtime,
        host.clock,
        ownership=ownership("one"),
        pod_logs_dir="/nonexistent",
        pods_dir="/nonexistent",
        on_exit=lambda uid: None,
        on_record=lambda uid: None,
    )


@simulated
async def test_a_container_that_was_touched_since_its_end_is_inspected() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        before = len(master.reports)
        master.send(Observe(uids=("u1",)))
        await master.observation("u1", after=before)
        await asyncio.sleep(1)
        before = len(master.reports)
        host.podman.exit(container, 3)
        await master.observation("u1", is_over, before)
        calls = len(host.runtime.calls)
        master.send(Observe(uids=(), effects={"u1": SyncEffects((container,))}))
        await asyncio.sleep(RECORD_HOLDS_S + 1)
        assert list(host.runtime.calls)[calls:].count("inspect_container") == 1


def is_over(status: RuntimePodStatus) -> bool:
    return status.containers[0].state is ContainerState.EXITED


@simulated
async def test_an_end_that_nobody_has_noted_is_looked_at() -> None:
    host = Host()
    container = host.running("u1")
    host.podman.recorded_end = lambda process: None  # type: ignore[method-assign]
    await it_is_looked_at_when_it_ends(host, container)


@simulated
async def test_where_the_sandboxs_end_is_everybodys_an_end_is_looked_at() -> None:
    host = Host()
    container = host.running("u1", leaves=True)
    await it_is_looked_at_when_it_ends(host, container)


async def it_is_looked_at_when_it_ends(host: Host, container: str) -> None:
    """The view that tells of it is newer than the end, and no event was needed."""
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await asked(master, "u1")
        host.podman.mute = True
        before, ended_at = len(master.reports), host.now()
        host.podman.exit(container, 3)
        seen = await master.observation("u1", is_over, before)
        assert ended_at < seen.observed_at < ended_at + 0.1
        assert master.status(seen).containers[0].exit_code == 3


@simulated
async def test_an_older_answer_does_not_bring_back_what_has_ended() -> None:
    """The inspect was answered when the process lived, and arrives when its end was told."""
    host = Host(latency_s=0.05)
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await asked(master, "u1")
        host.podman.mute = True
        alive = host.podman.inspected(container)
        before = len(master.reports)
        host.podman.exit(container, 3)
        await master.observation("u1", is_over, before)
        host.podman.inspected = lambda id: alive  # type: ignore[method-assign]
        late = await asked(master, "u1")
        (told,) = master.status(late).containers
        assert (told.state, told.exit_code) == (ContainerState.EXITED, 3)


@simulated
async def test_the_end_of_a_container_of_which_nobody_was_told_yet_is_looked_at() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        container = host.running("u1")
        master.send(Relist())
        await master.observation("u1", after=len(master.reports))
        before, ended_at = len(master.reports), host.now()
        host.podman.exit(container, 3)
        seen = await master.observation("u1", is_over, before)
        assert ended_at < seen.observed_at < ended_at + 0.1


@simulated
async def test_the_event_of_an_end_that_was_told_brings_no_look_of_its_own() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await asked(master, "u1")
        host.podman.mute = True
        before, ended_at = len(master.reports), host.now()
        host.podman.exit(container, 3)
        await master.observation("u1", is_over, before)
        await asyncio.sleep(0.1)
        found = dict(host.podman.container(container).labels)
        died = RuntimeEvent(action="died", container_id=container, labels=found, time=host.clock.now().wall)
        for listener in host.podman.listeners:
            listener.put_nowait(died)
        seen = await master.observation("u1", after=len(master.reports))
        assert seen.observed_at >= ended_at + RECORD_HOLDS_S


@simulated
async def test_the_end_of_an_infra_container_is_noticed() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await asked(master, "u1")
        host.podman.mute = True
        pod = host.podman.pods[host.podman.container(container).pod_id]
        host.podman.exit(pod.infra_id, 137)
        await master.observation("u1", lambda status: status.sandboxes[0].state is SandboxState.NOT_READY)


@simulated
async def test_a_start_is_noticed_by_its_event() -> None:
    host = Host()
    id = host.container(host.pod("u1"), "u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await asyncio.sleep(1)
        before, started_at = len(master.reports), host.now()
        host.podman.start_container(id)
        seen = await master.observation("u1", lambda s: s.containers[0].state is ContainerState.RUNNING, before)
        assert seen.observed_at < started_at + HINTS["start"] + 0.1


@simulated
async def test_the_start_of_what_nobody_knows_waits_for_the_end_of_its_sync() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await asked(master, "u1")
        before, calls, started_at = len(master.reports), len(host.runtime.calls), host.now()
        host.running("u1")
        await asyncio.sleep(SYNC_S - 0.1)
        assert len(host.runtime.calls) == calls
        seen = await master.observation("u1", lambda s: bool(s.containers), before)
        assert seen.observed_at < started_at + SYNC_S + 0.1


@simulated
async def test_lost_hints_only_delay() -> None:
    host = Host()
    id = host.container(host.pod("u1"), "u1")
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        await asyncio.sleep(1)
        host.podman.mute = True
        before, started_at = len(master.reports), host.now()
        host.podman.start_container(id)
        seen = await master.observation("u1", lambda s: s.containers[0].state is ContainerState.RUNNING, before)
        assert seen.observed_at < started_at + 12.1


@simulated
async def test_a_broken_stream_of_events_leads_to_a_relist() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        await asyncio.sleep(1)
        before = len(master.reports)
        host.podman.break_events()
        host.running("u1")
        broken_at = host.now()
        relisted = await master.first(Relisted, after=before)
        assert relisted.started_at < broken_at + 1
        assert [seen.uid for seen in relisted.changed] == ["u1"]


def test_a_stream_of_events_that_breaks_before_podman_has_ever_answered_is_no_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def told() -> int:
        return sum("stream of events" in record.getMessage() for record in caplog.records)

    caplog.set_level(logging.INFO)

    async def main() -> None:
        host = Host()
        host.runtime.down = True
        async with node_worker(host.runtime, host.clock) as master:
            await asyncio.sleep(60.0)
            assert told() == 0
            host.runtime.down = False
            await master.first(Relisted)
            await asyncio.sleep(RETRIES.max_s)
            host.runtime.down = True
            host.podman.break_events()
            await asyncio.sleep(60.0)
            assert told() == 1, "once, however often it is tried"
        await host.runtime.close()

    simulate(main)


@pytest.mark.parametrize("jump_s", [0.0, -10_800.0, 10_800.0])
def test_a_wall_clock_that_jumps_makes_no_event_old(jump_s: float) -> None:
    async def main() -> None:
        host = Host()
        container = host.running("u1")
        observer = Observer(host.runtime, host.clock, known_to(host))
        await observer.relist(await observer.list_all())
        await asyncio.sleep(2)
        host.clock.wall_offset_s += jump_s
        now = host.clock.now().wall
        assert not observer.known.has_inspected_since(container, now - 0.1)
        assert observer.known.has_inspected_since(container, now - 2.1)
        assert not observer.known.has_inspected_since("another", now - 2.1)
        observer.close()

    simulate(main)
