"""The node worker on a fake Podman, in simulated time."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ipc.messages import (
    CancelPull,
    LookFailed,
    Observe,
    Observed,
    PullEnded,
    PullProgress,
    Ready,
    Relist,
    Relisted,
    RuntimeHealth,
    ServiceSilent,
    StartPull,
    Track,
    Untrack,
)
from ipc.runtime import ContainerState, RuntimePodStatus, SandboxState
from tests.fakes.clock import SimClock, simulate
from tests.fakes.runtime import FakePodman, FakeRuntime, Flavour
from tests.unit.workers.node_worker_harness import SLOT, Master, node_worker
from workers import labels, pod_logs, start_error
from workers.doubts import STUCK_SLACK_S
from workers.node_worker import HINTS, KNOWN_END_S, LIVENESS_PERIOD_S, RETRY_MAX_S, ROUND_S, retry_delay_s
from workers.runtime import ErrorKind, InspectedContainer, ListedContainer, RuntimeCallError, RuntimeEvent

IMAGE = "localhost/x:latest"
NEVER_S = 1e9
GROWN = 6
"""After so many quiet relists they are as rare as they get."""
FOREVER = ("sleep", "1000000")


class Host:
    """A fake Podman, the runtime that the node worker uses, and hands that make pods behind its back."""

    def __init__(self, latency_s: float = 0.001) -> None:
        self.clock = SimClock()
        self.podman = FakePodman(self.clock, images=[IMAGE])
        self.runtime = FakeRuntime(self.podman, "one", latency_s=latency_s)

    def now(self) -> float:
        return self.clock.now().mono

    def pod(self, uid: str, attempt: int = 0, **more: str) -> str:
        own = {**self.labels(uid), labels.ATTEMPT: str(attempt), **more}
        return self.podman.create_pod({"name": f"{uid}_{attempt}", "labels": own})

    def container(self, pod: str, uid: str, name: str = "main", command: Sequence[str] = FOREVER, **more: str) -> str:
        own = {**self.labels(uid), labels.CONTAINER_NAME: name, **more}
        count = len(self.podman.containers)
        spec = {"name": f"{uid}-{name}-{count}", "image": IMAGE, "pod": pod, "labels": own, "command": list(command)}
        return self.podman.create_container(spec)

    def running(self, uid: str, attempt: int = 0, command: Sequence[str] = FOREVER) -> str:
        """A pod with one running container: the container's id."""
        id = self.container(self.pod(uid, attempt), uid, command=command)
        self.podman.start_container(id)
        return id

    def labels(self, uid: str) -> dict[str, str]:
        return {
            labels.INSTANCE: "one",
            labels.POD_UID: uid,
            labels.POD_NAME: f"name-{uid}",
            labels.POD_NAMESPACE: "default",
        }

    def calls(self, verb: str) -> int:
        return list(self.runtime.calls).count(verb)

    @asynccontextmanager
    async def worker(self, **settings: Any) -> AsyncIterator[Master]:
        """Booted: the first relist is over."""
        async with node_worker(self.runtime, self.clock, **settings) as master:
            await master.first(Relisted)
            yield master
        await self.runtime.close()


def simulated(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A test in simulated time."""

    def run() -> None:
        async def main() -> None:
            await test()

        simulate(main)

    run.__name__ = test.__name__
    return run


@simulated
async def test_boot_is_ready_then_healthy_then_everything() -> None:
    host = Host()
    began = host.now()
    container = host.running("u1")
    async with host.worker() as master:
        ready, health, relisted = master.reports[:3]
        assert isinstance(ready, Ready)
        assert health == RuntimeHealth(healthy=True, version="4.3.1")
        assert isinstance(relisted, Relisted)
        assert began <= relisted.started_at < began + 0.01
        (orphan,) = relisted.changed
        assert (orphan.uid, orphan.row, orphan.changed) == ("u1", -1, True)
        assert orphan.status is not None
        assert (orphan.status.name, orphan.status.namespace) == ("name-u1", "default")
        assert [(c.id, c.state) for c in orphan.status.containers] == [(container, ContainerState.RUNNING)]
        assert [s.state for s in orphan.status.sandboxes] == [SandboxState.READY]


@simulated
async def test_a_tracked_pods_view_goes_to_its_row() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        container = host.running("u1")
        asked_at = host.now()
        master.send(Track(uid="u1", row=3), Observe(uids=("u1",)))
        seen = await master.observation("u1", lambda status: bool(status.containers))
        assert (seen.row, seen.status, seen.changed) == (3, None, True)
        status = master.row(3)
        assert status is not None
        assert status.observed_at == seen.observed_at >= asked_at
        assert [(c.id, c.state) for c in status.containers] == [(container, ContainerState.RUNNING)]


@simulated
async def test_the_same_again_moves_only_the_date() -> None:
    host = Host()
    host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        first = master.row(0)
        assert first is None  # The command is still on its way.
        for _ in range(3):
            before = len(master.reports)
            await asyncio.sleep(1)
            asked_at = host.now()
            master.send(Observe(uids=("u1",)))
            seen = await master.observation("u1", after=before)
            assert (seen.changed, seen.row) == (False, 0)
            status = master.row(0)
            assert status is not None
            assert status.observed_at == seen.observed_at >= asked_at


@simulated
async def test_a_relist_dates_every_tracked_row() -> None:
    host = Host()
    for number in range(5):
        host.running(f"u{number}")
    async with host.worker() as master:
        master.send(*(Track(uid=f"u{number}", row=number) for number in range(6)))
        before = len(master.reports)
        relisted = await master.first(Relisted, after=before)
        assert [seen.uid for seen in relisted.changed] == ["u5"]
        for number in range(6):
            status = master.row(number)
            assert status is not None
            assert status.observed_at == relisted.started_at


@simulated
async def test_what_does_not_fit_its_row_travels_in_the_message() -> None:
    host = Host()
    pod = host.pod("u1")
    for number in range(10):
        host.container(pod, "u1", f"c{number}")
    async with host.worker(pod_row_bytes=1024) as master:
        master.send(Track(uid="u1", row=0), Observe(uids=("u1",)))
        seen = await master.observation("u1", after=len(master.reports))
        assert seen.row == -1
        assert seen.status is not None
        assert len(seen.status.containers) == 10
        assert master.row(0) is None
        for container in seen.status.containers[1:]:
            host.podman.remove_container(container.id)
        seen = await _asked(master, "u1")
        assert (seen.row, seen.status) == (0, None)
        status = master.row(0)
        assert status is not None
        assert len(status.containers) == 1


async def _asked(master: Master, uid: str) -> Any:
    """Ask for a pod and get the answer."""
    before = len(master.reports)
    master.send(Observe(uids=(uid,)))
    return await master.observation(uid, after=before)


@simulated
async def test_a_tracked_pod_that_is_not_there_is_empty() -> None:
    host = Host()
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        seen = await _asked(master, "u1")
        assert master.status(seen) == RuntimePodStatus(uid="u1", observed_at=seen.observed_at)


@simulated
async def test_a_pod_that_vanishes_becomes_empty() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        host.podman.remove_pod(host.podman.container(container).pod_id)
        await master.observation("u1", lambda status: status.is_empty())


@simulated
async def test_an_observe_sees_a_sandbox_that_is_new() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        for number in range(20):
            host.running(f"other{number}")
        master.send(Track(uid="u1", row=0), Relist())
        await master.first(Relisted, after=len(master.reports))
        for attempt in range(3):
            host.running("u1", attempt)
            status = master.status(await _asked(master, "u1"))
            assert [s.attempt for s in status.sandboxes] == list(range(attempt, -1, -1))
            assert len(status.containers) == attempt + 1


@simulated
async def test_the_end_of_a_process_is_noticed_without_events_and_relist() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await _asked(master, "u1")
        host.podman.mute = True
        before, ended_at = len(master.reports), host.now()
        host.podman.exit(container, 3)
        seen = await master.observation("u1", lambda s: s.containers[0].state is ContainerState.EXITED, before)
        assert ended_at < seen.observed_at < ended_at + 0.1
        assert master.status(seen).containers[0].exit_code == 3


@simulated
async def test_the_event_of_an_end_that_was_seen_waits_for_the_start_of_the_successor() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await _asked(master, "u1")
        host.podman.mute = True
        before = len(master.reports)
        host.podman.exit(container, 3)
        await master.observation("u1", lambda s: s.containers[0].state is ContainerState.EXITED, before)
        await asyncio.sleep(0.1)
        before, told_at = len(master.reports), host.now()
        found = dict(host.podman.container(container).labels)
        died = RuntimeEvent(action="died", container_id=container, labels=found, time=host.clock.now().wall)
        for listener in host.podman.listeners:
            listener.put_nowait(died)
        seen = await master.observation("u1", after=before)
        assert told_at + KNOWN_END_S <= seen.observed_at < told_at + KNOWN_END_S + 0.1


@simulated
async def test_the_end_of_an_infra_container_is_noticed() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        await _asked(master, "u1")
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
async def test_the_relist_period_grows_while_nothing_is_new_and_varies_by_a_fifth() -> None:
    host = Host()
    async with host.worker() as master:
        gaps = await _gaps_between_relists(master, 40)
        for gap, period_s in zip(gaps, (10, 20, 40, 80, 160, *[300] * 35), strict=True):
            assert 0.8 * period_s <= gap <= 1.2 * period_s + 0.01
        assert max(gaps[5:]) - min(gaps[5:]) > 60.0


async def _gaps_between_relists(master: Master, count: int) -> list[float]:
    """Of so many from now on."""
    before = len(master.reports)
    while sum(isinstance(report, Relisted) for report in master.reports[before:]) < count:
        await master.first(Relisted, after=len(master.reports))
    times = [report.started_at for report in master.reports if isinstance(report, Relisted)][-count - 1 :]
    return [later - earlier for earlier, later in pairwise(times)]


@simulated
async def test_what_was_missed_makes_the_next_relist_come_sooner() -> None:
    host = Host()
    container = host.running("u1")
    host.running("u2")
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0), Track(uid="u2", row=1))
        await _gaps_between_relists(master, GROWN)
        host.podman.mute = True
        host.running("u1", 1)
        missed, sooner, *later = await _gaps_between_relists(master, GROWN + 2)
        assert missed >= 240.0
        assert sooner <= 12.01
        assert 16.0 <= later[0] <= 24.01
        host.podman.mute = False
        host.podman.exit(container)  # told by its pidfd: no reason for doubt
        assert min(await _gaps_between_relists(master, 4)) >= 240.0


@simulated
async def test_relists_that_somebody_asks_for_say_nothing_of_quiet() -> None:
    host = Host()
    async with host.worker() as master:
        for _ in range(10):
            before = len(master.reports)
            master.send(Relist())
            await master.first(Relisted, after=before)
        assert (await _gaps_between_relists(master, 1))[0] <= 12.01


@simulated
async def test_what_stops_for_ever_is_looked_at_alone_until_its_time_is_over() -> None:
    host = Host()
    container = host.container(host.pod("u1"), "u1", **{labels.GRACE_PERIOD_S: "20"})
    host.podman.start_container(container)
    for number in range(9):
        host.running(f"other{number}")
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        await _gaps_between_relists(master, GROWN)
        host.podman.abandon(container, "stopping")
        before, began, relists = len(master.reports), host.now(), host.calls("list_containers")
        master.send(Observe(uids=("u1",)))  # as after a sync that could not end it
        await master.observation("u1", lambda s: s.containers[0].state is ContainerState.UNKNOWN, before)
        assert host.now() < began + 20 + STUCK_SLACK_S + 10.1
        assert host.calls("list_containers") == relists


@simulated
async def test_a_podman_that_hangs_while_nothing_happens_is_missed_soon() -> None:
    host = Host()
    host.running("u1")
    async with host.worker() as master:
        await _gaps_between_relists(master, GROWN)
        before, began = len(master.reports), host.now()
        host.runtime.fail(1, Flavour.TIMED_OUT, "version")
        sick = await master.first(RuntimeHealth, after=before)
        assert not sick.healthy
        assert host.now() <= began + LIVENESS_PERIOD_S + 1.0
        await master.first(RuntimeHealth, lambda health: health.healthy, after=before)
        assert (await _gaps_between_relists(master, 1))[0] <= 24.01


@simulated
async def test_a_container_that_cannot_be_watched_any_more_brings_the_next_relist_forward() -> None:
    host = Host()
    host.running("u1")
    async with host.worker() as master:
        await _gaps_between_relists(master, GROWN)

        def fail(container: InspectedContainer) -> int | None:
            raise OSError("too many open files")

        host.runtime.open_process = fail  # type: ignore[method-assign]
        before, began = len(master.reports), host.now()
        host.running("u2")
        master.send(Observe(uids=("u2",)))
        relisted = await master.first(Relisted, after=before)
        assert relisted.started_at <= began + 10.1


@simulated
async def test_a_state_that_does_not_last_is_looked_at_often() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker() as master:
        await _gaps_between_relists(master, GROWN)
        host.podman.abandon(container, "removing")
        await _gaps_between_relists(master, 1)
        assert max(await _gaps_between_relists(master, 5)) <= 12.01


@simulated
async def test_what_cannot_be_watched_is_found_by_relists_that_stay_frequent() -> None:
    host = Host()
    container = host.running("u1")

    def fail(container: InspectedContainer) -> int | None:
        raise OSError("too many open files")

    open_process = host.runtime.open_process
    host.runtime.open_process = fail  # type: ignore[method-assign]
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        assert max(await _gaps_between_relists(master, 5)) <= 12.01
        host.podman.kill_monitor(container)
        host.podman.exit(container)
        host.runtime.open_process = open_process  # type: ignore[method-assign]
        await master.observation("u1", lambda s: s.containers[0].state is ContainerState.EXITED, len(master.reports))
        assert min((await _gaps_between_relists(master, GROWN + 3))[GROWN:]) >= 240.0


async def _quiet_calls(pods: int, minutes: int) -> dict[str, int]:
    """How often each verb is called in that time of a node worker that knows everything already."""
    host = Host()
    for number in range(pods):
        host.running(f"u{number}")
    async with host.worker(pod_rows=pods) as master:
        master.send(*(Track(uid=f"u{number}", row=number) for number in range(pods)))
        await _gaps_between_relists(master, GROWN)
        before = Counter(host.runtime.calls)
        await asyncio.sleep(60 * minutes)
        return dict(Counter(host.runtime.calls) - before)


def test_when_nothing_happens_the_number_of_calls_does_not_depend_on_the_number_of_pods() -> None:
    minutes = 60
    few, many = (simulate(partial(_quiet_calls, pods, minutes)) for pods in (60, 300))
    assert few.keys() == many.keys() == {"list_containers", "list_empty_pods", "version"}
    for calls in (few, many):
        assert 1.8 * minutes <= calls.pop("version") <= 2.0 * minutes
        # A relist every 4 to 6 minutes.
        assert all(minutes / 6 - 1 <= count <= minutes / 4 + 1 for count in calls.values())


@simulated
async def test_a_relist_inspects_only_what_has_changed() -> None:
    host = Host()
    for number in range(60):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        await asyncio.sleep(1)
        host.running("new")
        before = Counter(host.runtime.calls)
        master.send(Relist())
        await master.first(Relisted, after=len(master.reports))
        calls = dict(Counter(host.runtime.calls) - before)
        assert calls == {"list_containers": 1, "list_empty_pods": 1, "inspect_container": 2}


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


@simulated
async def test_few_are_looked_at_one_by_one_and_many_by_one_list() -> None:
    host = Host()
    for number in range(20):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(*(Track(uid=f"u{number}", row=number) for number in range(20)))
        lists, looks, inspects = (host.calls(verb) for verb in ("list_containers", "list_pods", "inspect_container"))
        before = len(master.reports)
        master.send(Observe(uids=("u1", "u2", "u3")))
        for uid in ("u1", "u2", "u3"):
            await master.observation(uid, after=before)
        assert (host.calls("list_containers"), host.calls("list_pods")) == (lists, looks + 3)
        before = len(master.reports)
        master.send(Observe(uids=tuple(f"u{number}" for number in range(20))))
        observed = await master.first(Observed, after=before)
        assert len(observed.observations) == 20
        assert (host.calls("list_containers"), host.calls("list_pods")) == (lists + 1, looks + 3)
        # Nothing had changed: what runs under a watched process needs no inspect.
        assert host.calls("inspect_container") == inspects


@simulated
async def test_requests_that_wait_are_answered_together() -> None:
    host = Host(latency_s=0.1)
    for number in range(40):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        looks = host.calls("list_pods")
        for _ in range(10):
            master.send(Observe(uids=("u1",)))
        await asyncio.sleep(2)
        assert host.calls("list_pods") - looks <= 2


@simulated
async def test_a_request_during_a_look_gets_a_look_of_its_own() -> None:
    host = Host(latency_s=0.5)
    for number in range(20):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        before = len(master.reports)
        master.send(Observe(uids=("u1",)))
        await asyncio.sleep(0.2)
        asked_at = host.now()
        master.send(Observe(uids=("u1",)))
        first = await master.observation("u1", after=before)
        assert first.observed_at < asked_at
        second = await master.observation("u1", lambda status: status.observed_at >= asked_at, after=before)
        assert second.observed_at >= asked_at


@simulated
async def test_a_relist_asked_for_during_a_relist_is_made() -> None:
    host = Host(latency_s=0.5)
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Relist())
        await asyncio.sleep(0.2)
        asked_at = host.now()
        master.send(Relist())
        await master.first(Relisted, lambda report: report.started_at >= asked_at)


@simulated
async def test_a_pod_that_cannot_be_looked_at_holds_up_no_other() -> None:
    host = Host()
    for number in range(40):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.runtime.fail(1, Flavour.FAILED, "list_pods")
        before, asked_at = len(master.reports), host.now()
        master.send(Observe(uids=("u1", "u2")))
        await master.observation("u2", after=before)
        assert host.now() < asked_at + 0.1
        failed = await master.first(LookFailed, after=before)
        assert (failed.uid, "list_pods" in failed.message) == ("u1", True)
        seen = await master.observation("u1", after=before)
        assert asked_at + retry_delay_s(1) <= seen.observed_at < asked_at + retry_delay_s(1) + 0.1
        assert (master.count(RuntimeHealth), master.count(LookFailed)) == (1, 1)


@simulated
async def test_a_look_that_hangs_is_given_up_and_repeated() -> None:
    host = Host()
    for number in range(40):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        list_pods = host.runtime.list_pods
        hung: list[str] = []

        async def hang_once(uid: str = "") -> Any:
            if uid == "u1" and not hung:
                hung.append(uid)
                await asyncio.sleep(NEVER_S)
            return await list_pods(uid)

        host.runtime.list_pods = hang_once  # type: ignore[method-assign]
        before, asked_at = len(master.reports), host.now()
        master.send(Observe(uids=("u1", "u2")))
        await master.observation("u2", after=before)
        assert host.now() < asked_at + 0.1
        seen = await master.observation("u1", after=before)
        assert asked_at + ROUND_S < seen.observed_at < asked_at + ROUND_S + 1
        assert master.count(LookFailed) == 0, "late is not wrong"


@simulated
async def test_a_service_that_goes_and_comes_back_is_told_once_each() -> None:
    host = Host()
    host.running("u1")
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        await _asked(master, "u1")
        before = len(master.reports)
        host.runtime.down = True
        host.podman.break_events()
        master.send(Observe(uids=("u1",)))
        sick = await master.first(RuntimeHealth, after=before)
        assert (sick.healthy, sick.version) == (False, "")
        assert "nobody answers" in sick.message
        calls = len(host.runtime.calls)
        await asyncio.sleep(100)
        tries = list(host.runtime.calls)[calls:].count("version")
        assert 100 / RETRY_MAX_S - 2 <= tries <= 100 / RETRY_MAX_S + 8
        host.podman.remove_pod(next(iter(host.podman.pods)))
        host.runtime.down = False
        came_back_at = host.now()
        well = await master.first(RuntimeHealth, lambda health: health.healthy, after=before)
        assert well.version == "4.3.1"
        seen = await master.observation("u1", lambda status: status.is_empty(), after=before)
        assert came_back_at <= seen.observed_at <= came_back_at + RETRY_MAX_S
        await master.first(Relisted, after=before)
        assert [r.healthy for r in master.reports[before:] if isinstance(r, RuntimeHealth)] == [False, True]
        assert master.count(LookFailed) == 0, "it is no pod's fault"


@simulated
async def test_a_relist_names_the_pod_that_it_could_not_look_at_and_is_soon_repeated() -> None:
    host = Host()
    host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        host.running("u2")
        host.running("u3")
        master.send(Track(uid="u2", row=2), Track(uid="u3", row=3))
        host.runtime.fail(1, Flavour.TIMED_OUT, "inspect_container")
        before, asked_at = len(master.reports), host.now()
        master.send(Relist())
        relisted = await master.first(Relisted, after=before)
        assert (relisted.unseen, {seen.uid for seen in relisted.changed}) == (("u2",), {"u1", "u3"})
        await master.observation("u2", lambda status: bool(status.containers), after=before)
        relisted = await master.first(Relisted, lambda report: not report.unseen, after=before)
        assert asked_at + retry_delay_s(1) / 2 < relisted.started_at < asked_at + 1.0
        assert "u1" in {seen.uid for seen in relisted.changed}


@pytest.mark.parametrize("is_infra_gone", [False, True])
def test_a_pod_that_can_never_be_looked_at_keeps_no_relist_from_succeeding(is_infra_gone: bool) -> None:
    async def main() -> None:
        host = Host()
        bad = host.podman.container(host.running("bad"))
        if is_infra_gone:
            del host.podman.containers[host.podman.pods[bad.pod_id].infra_id]
        host.podman.unreadable.add(bad.pod_id if is_infra_gone else bad.id)
        host.running("good")
        async with host.worker() as master:
            relisted = await master.first(Relisted, after=len(master.reports) - 1)
            for _ in range(3):
                assert (relisted.unseen, [seen.uid for seen in relisted.changed]) == (("bad",), ["good"])
                relisted = await master.first(Relisted, after=len(master.reports))
            assert master.count(RuntimeHealth) == 1, "it is no matter of Podman's as a whole"
            await asyncio.sleep(100)
            before = master.count(Relisted)
            await asyncio.sleep(100)
            assert master.count(Relisted) - before <= 100 / RETRY_MAX_S + 2
            host.podman.unreadable.clear()
            await master.observation("bad", after=len(master.reports))
            relisted = await master.first(Relisted, lambda report: not report.unseen, after=len(master.reports))
            assert {seen.uid for seen in relisted.changed} == {"bad", "good"}

    simulate(main)


@simulated
async def test_a_podman_that_goes_away_during_a_relist_is_no_pod_s_fault() -> None:
    host = Host(latency_s=0.1)
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        host.running("u1")
        before = len(master.reports)
        master.send(Relist())
        await asyncio.sleep(0.15)
        assert host.calls("inspect_container") == 2, "under way"
        host.runtime.down = True
        assert not (await master.first(RuntimeHealth, after=before)).healthy
        host.runtime.down = False
        relisted = await master.first(Relisted, after=before)
        assert ([seen.uid for seen in relisted.changed], relisted.unseen) == (["u1"], ())
        assert master.count(LookFailed) == 0


@simulated
async def test_when_the_breaker_closes_nobody_waits_for_the_next_try() -> None:
    host = Host()
    host.running("u1")
    answers = asyncio.Event()
    async with host.worker(answers=answers) as master:
        host.runtime.down = True
        master.send(Observe(uids=("u1",)))
        await master.first(RuntimeHealth, lambda health: not health.healthy)
        await asyncio.sleep(100)
        tries = host.calls("version")
        async with asyncio.timeout(RETRY_MAX_S + 1):
            while host.calls("version") == tries:  # noqa: ASYNC110 - simulated time
                await asyncio.sleep(0.1)
        host.runtime.down = False
        came_back_at, before = host.now(), len(master.reports)
        answers.set()
        await master.first(Relisted, after=before)
        assert host.now() < came_back_at + 0.5
        calls = len(host.runtime.calls)
        answers.set()
        await asyncio.sleep(1.0)
        assert len(host.runtime.calls) == calls, "only who was away comes back"


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
            await asyncio.sleep(RETRY_MAX_S)
            host.runtime.down = True
            host.podman.break_events()
            await asyncio.sleep(60.0)
            assert told() == 1, "once, however often it is tried"
        await host.runtime.close()

    simulate(main)


@simulated
async def test_a_podman_that_lists_nothing_for_ever_is_told_of_now_and_then() -> None:
    """It answers `version`, so that the breaker stays closed, and pings. One that is only slow is left alone."""
    host = Host()
    host.running("u1")
    slow_s = 0.0

    async def list_containers() -> tuple[ListedContainer, ...]:
        await asyncio.sleep(min(slow_s, 30.0))
        if slow_s >= 30.0:
            raise RuntimeCallError(ErrorKind.TIMEOUT, "list_containers", "no answer within 30 s")
        return await FakeRuntime.list_containers(host.runtime)

    host.runtime.list_containers = list_containers  # type: ignore[method-assign]
    async with host.worker() as master:
        slow_s = 25.0
        await asyncio.sleep(1000)
        assert master.count(ServiceSilent) == 0
        slow_s = 60.0
        await asyncio.sleep(80)
        assert master.count(ServiceSilent) == 0
        await asyncio.sleep(1000)
        assert 1080 / 200 - 1 <= master.count(ServiceSilent) <= 1080 / 150
        slow_s, told = 0.0, master.count(ServiceSilent)
        await master.first(Relisted, after=len(master.reports))
        await asyncio.sleep(1000)
        assert master.count(ServiceSilent) == told


@simulated
async def test_track_brings_what_is_known_to_the_row_and_untrack_empties_it() -> None:
    host = Host()
    host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0), Track(uid="u2", row=1))
        await asyncio.sleep(0.1)
        status = master.row(0)
        assert status is not None
        assert (status.uid, len(status.containers)) == ("u1", 1)
        assert master.row(1) is None
        master.send(Track(uid="u1", row=5))
        await asyncio.sleep(0.1)
        assert master.row(0) is None
        assert master.row(5) == status
        master.send(Untrack(uid="u1"), Untrack(uid="never heard of"))
        await asyncio.sleep(0.1)
        assert master.row(5) is None
        master.send(Track(uid="u3", row=5), Observe(uids=("u3",)))
        await master.observation("u3", after=len(master.reports))
        reused = master.row(5)
        assert reused is not None
        assert (reused.uid, reused.is_empty()) == ("u3", True)


@simulated
async def test_every_relist_tells_of_every_orphan_until_it_is_gone() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker() as master:
        for _ in range(3):
            relisted = await master.first(Relisted, after=len(master.reports))
            (orphan,) = relisted.changed
            assert (orphan.uid, orphan.changed, orphan.row) == ("u1", False, -1)
            assert orphan.status is not None
        host.podman.remove_pod(host.podman.container(container).pod_id)
        await asyncio.sleep(1)
        relisted = await master.first(Relisted, after=len(master.reports))
        assert relisted.changed == ()


@simulated
async def test_a_stray_is_found_by_a_relist_and_followed_from_then_on() -> None:
    host = Host()
    for number in range(20):
        host.running(f"other{number}")
    host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        stray = host.container("", "u1", "main")
        master.send(Track(uid="u1", row=0), Relist())
        await master.observation("u1", lambda status: len(status.containers) == 2)
        host.podman.start_container(stray)
        status = master.status(await _asked(master, "u1"))
        assert {c.id: c.state for c in status.containers}[stray] is ContainerState.RUNNING
        host.podman.remove_container(stray)
        status = master.status(await _asked(master, "u1"))
        assert len(status.containers) == 1


@simulated
async def test_a_stranger_in_our_pod_is_not_shown() -> None:
    host = Host()
    container = host.running("u1")
    pod = host.podman.container(container).pod_id
    host.podman.create_container({"name": "stranger", "image": IMAGE, "pod": pod, "command": list(FOREVER)})
    twin = {"name": "twin", "image": IMAGE, "pod": pod, "command": list(FOREVER)}
    host.podman.create_container({**twin, "labels": {**host.labels("u1"), labels.INSTANCE: "two"}})
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0), Relist())
        await asyncio.sleep(1)
        for status in (master.row(0), master.status(await _asked(master, "u1"))):
            assert status is not None
            assert [c.id for c in status.containers] == [container]


@simulated
async def test_a_pod_without_its_infra_container_is_still_seen() -> None:
    host = Host()
    container = host.running("u1")
    pod = host.podman.pods[host.podman.container(container).pod_id]
    del host.podman.containers[pod.infra_id]
    empty = host.podman.create_pod({"name": "half-made", "labels": host.labels("u2"), "no_infra": True})
    async with host.worker() as master:
        relisted = await master.first(Relisted)
        found = {seen.uid: seen.status for seen in relisted.changed}
        one, two = found["u1"], found["u2"]
        assert one is not None
        assert [(s.id, s.state) for s in one.sandboxes] == [(pod.id, SandboxState.NOT_READY)]
        assert [c.id for c in one.containers] == [container]
        assert two is not None
        assert [(s.id, s.state) for s in two.sandboxes] == [(empty, SandboxState.NOT_READY)]
        assert not two.is_empty()


@simulated
async def test_both_ways_of_looking_show_the_same() -> None:
    host = Host()
    for number in range(30):
        host.running(f"other{number}")
    pod = host.pod("u1", 1, **{labels.SANDBOX_HASH: "h", labels.GRACE_PERIOD_S: "5"})
    host.pod("u1", 0)
    for attempt, command in enumerate((["false"], ["true"], FOREVER)):
        id = host.container(pod, "u1", command=command, **{labels.ATTEMPT: str(attempt)})
        host.podman.start_container(id)
        await asyncio.sleep(1)
    async with host.worker(relist_period_s=NEVER_S) as master:
        (relisted,) = [report for report in master.reports if isinstance(report, Relisted)]
        (listed,) = [seen.status for seen in relisted.changed if seen.uid == "u1"]
        assert listed is not None
        looks = host.calls("list_pods")
        seen = await _asked(master, "u1")
        assert host.calls("list_pods") == looks + 1
        assert seen.status is not None
        assert seen.status.same_as(listed)
        assert not seen.changed
        assert len(listed.containers) == 3


@pytest.mark.parametrize("is_infra", [False, True])
def test_a_removal_that_podman_died_over_is_finished(is_infra: bool) -> None:
    """Without its layer Podman can list and remove it, but not show it."""

    async def main() -> None:
        host = Host()
        id = host.running("u1")
        host.running("u2")
        pod = host.podman.containers[id].pod_id
        begun = host.podman.pods[pod].infra_id if is_infra else id
        host.podman.cut_remove_container(begun)
        async with host.worker() as master:
            master.send(Track(uid="u1", row=0), Track(uid="u2", row=1), Relist())
            await master.observation("u1", lambda status: all(c.id != begun for c in status.containers))
        assert begun not in host.podman.containers
        assert (pod in host.podman.pods) is not is_infra
        assert len(host.podman.pods) == 2 - is_infra

    simulate(main)


def test_a_failed_start_is_shown_as_an_end(tmp_path: Path) -> None:
    async def main() -> None:
        host = Host()
        container = host.container(host.pod("u1"), "u1", **{labels.ATTEMPT: "2"})
        directory = pod_logs.pod_directory(str(tmp_path), "default", "name-u1", "u1")
        async with host.worker(pod_logs_dir=tmp_path) as master:
            master.send(Track(uid="u1", row=0))
            status = master.status(await _asked(master, "u1"))
            assert status.containers[0].state is ContainerState.CREATED
            start_error.write(pod_logs.log_file(directory, "main", 2), "no such file")
            status = master.status(await _asked(master, "u1"))
            (found,) = status.containers
            assert (found.id, found.state, found.error) == (container, ContainerState.EXITED, "no such file")

    simulate(main)


@simulated
async def test_what_it_does_and_counts_is_on_the_board() -> None:
    host = Host()
    async with host.worker() as master:
        await asyncio.sleep(1)
        row = master.board.read_worker(SLOT)
        assert row is not None
        assert row.step == "waiting"
        # Leftovers are looked for beside the looks at pods, and counted with the next one.
        assert row.counters.runtime_calls == len(host.runtime.calls) - host.calls("end_leftovers") > 0
        assert row.counters.runtime_errors == 0


@simulated
async def test_a_pull_goes_on_beside_all_looking() -> None:
    host = Host()
    host.podman.registry.add("quay.io/a:1")
    host.podman.pull_s = 100.0
    async with host.worker() as master:
        begun_at = host.now()
        master.send(StartPull(reference="quay.io/a:1"))
        host.running("u1")
        master.send(Track(uid="u1", row=0), Observe(uids=("u1",)))
        await master.observation("u1", lambda s: bool(s.containers))
        assert host.now() - begun_at < 1.0
        ended = await master.first(PullEnded)
        assert (ended.image_id, ended.error) == (host.podman.images["quay.io/a:1"].id, "")
        assert 100.0 <= ended.took_s < 101.0
        assert master.count(PullProgress) > 5


@simulated
async def test_a_pull_is_broken_off_on_demand_and_at_the_end() -> None:
    host = Host()
    host.podman.pull_s = 100.0
    async with host.worker() as master:
        master.send(StartPull(reference="quay.io/a:1"), StartPull(reference="quay.io/b:1"))
        await asyncio.sleep(10)
        master.send(CancelPull(reference="quay.io/a:1"))
        assert (await master.first(PullEnded)).reference == "quay.io/a:1"
        assert host.podman.broken_off == ["quay.io/a:1"]
    assert host.podman.broken_off == ["quay.io/a:1", "quay.io/b:1"]


@simulated
async def test_the_end_of_the_link_ends_the_worker() -> None:
    host = Host()
    async with host.worker() as master:
        master.channel.close()
        await master.channel.wait_closed()


@pytest.mark.parametrize("flavour", list(Flavour))
@pytest.mark.parametrize("nth", range(1, 13))
def test_whichever_call_fails_the_view_comes_right(nth: int, flavour: Flavour) -> None:
    async def main() -> None:
        host = Host()
        host.running("u1")
        host.running("u2")
        host.runtime.fail(nth, flavour)
        async with host.worker() as master:
            master.send(Track(uid="u1", row=0), Track(uid="u3", row=1), Observe(uids=("u1", "u3")))
            ended = host.running("u3", command=["sh", "-c", "sleep 2; exit 4"])
            await master.observation("u3", lambda s: any(c.exit_code == 4 for c in s.containers))
            await asyncio.sleep(30)
            one, three = master.row(0), master.row(1)
            assert one is not None
            assert one.containers[0].state is ContainerState.RUNNING
            assert three is not None
            assert [(c.id, c.state) for c in three.containers] == [(ended, ContainerState.EXITED)]
            assert master.count(Relisted) >= 2

    simulate(main)


def test_delays_double_up_to_their_maximum() -> None:
    assert [retry_delay_s(failures) for failures in (1, 2, 3, 6, 7, 1000)] == [0.25, 0.5, 1.0, 8.0, 10.0, 10.0]
