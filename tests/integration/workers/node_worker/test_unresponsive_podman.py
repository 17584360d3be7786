"""A Podman that does not answer the node worker, and comes back. On a fake Podman, in simulated time."""

from __future__ import annotations

import asyncio

from ipc.link.messages.node_worker import (
    ObservationFailed,
    Observe,
    Relist,
    Relisted,
    RuntimeHealth,
    ServiceSilent,
    Track,
)
from tests.fakes.clock import simulated
from tests.fakes.runtime import FakeRuntime, Flavour
from tests.support.node_worker import GROWN, NEVER_S, Host, asked, gaps_between_relists, to_list
from workers.kubecontainer.runtime import ErrorKind, ListedContainer, RuntimeCallError
from workers.pleg.relist_schedule import LIVENESS_PERIOD_S, RETRIES


@simulated
async def test_a_podman_that_hangs_while_nothing_happens_is_missed_soon() -> None:
    host = Host()
    host.running("u1")
    async with host.worker() as master:
        await gaps_between_relists(master, GROWN)
        before, began = len(master.reports), host.now()
        host.runtime.fail(1, Flavour.TIMED_OUT, "version")
        sick = await master.first(RuntimeHealth, after=before)
        assert not sick.healthy
        assert host.now() <= began + LIVENESS_PERIOD_S + 1.0
        await master.first(RuntimeHealth, lambda health: health.healthy, after=before)
        assert (await gaps_between_relists(master, 1))[0] <= 24.01


@simulated
async def test_a_service_that_goes_and_comes_back_is_told_once_each() -> None:
    host = Host()
    host.running("u1")
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        await asked(master, "u1")
        before = len(master.reports)
        host.runtime.down = True
        host.podman.break_events()
        master.send(to_list("u1"))
        sick = await master.first(RuntimeHealth, after=before)
        assert (sick.healthy, sick.version) == (False, "")
        assert "nobody answers" in sick.message
        calls = len(host.runtime.calls)
        await asyncio.sleep(100)
        tries = list(host.runtime.calls)[calls:].count("version")
        assert 100 / RETRIES.max_s - 2 <= tries <= 100 / RETRIES.max_s + 8
        host.podman.remove_pod(next(iter(host.podman.pods)))
        host.runtime.down = False
        came_back_at = host.now()
        well = await master.first(RuntimeHealth, lambda health: health.healthy, after=before)
        assert well.version == "4.3.1"
        seen = await master.observation("u1", lambda status: status.is_empty(), after=before)
        assert came_back_at <= seen.observed_at <= came_back_at + RETRIES.max_s
        await master.first(Relisted, after=before)
        assert [r.healthy for r in master.reports[before:] if isinstance(r, RuntimeHealth)] == [False, True]
        assert master.count(ObservationFailed) == 0, "it is no pod's fault"


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
        assert master.count(ObservationFailed) == 0


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
        async with asyncio.timeout(RETRIES.max_s + 1):
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


@simulated
async def test_a_podman_that_lists_nothing_for_ever_is_told_of_now_and_then() -> None:
    """The service answers `version`, so that the breaker stays closed, and pings. A slow one is left alone."""
    host = Host()
    host.running("u1")
    slow_s = 0.0

    async def list_containers(uid: str = "") -> tuple[ListedContainer, ...]:
        await asyncio.sleep(min(slow_s, 30.0))
        if slow_s >= 30.0:
            raise RuntimeCallError(ErrorKind.TIMEOUT, "list_containers", "no answer within 30 s")
        return await FakeRuntime.list_containers(host.runtime, uid)

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
