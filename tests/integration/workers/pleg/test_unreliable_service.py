"""Observation through the real client of a service that answers badly: it goes on, and believes no part of a list."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipc.host.clock import SystemClock, monotonic
from ipc.k8s.kubecontainer.pod_status import ContainerState, SandboxState
from ipc.link.messages.node_worker import Observe, Relist, Relisted, Track
from tests.fakes.unreliable_podman import Lie, lying_podman
from tests.support.node_worker import Master, node_worker
from workers.libpod.client import CallLimits
from workers.podman import PodmanRuntime

UIDS = tuple(f"u{number}" for number in range(8))
REQUEST_TIMEOUT_S = 0.4
TRIES = 2
"""Looks at a service that lies."""
DEADLINE_S = 20.0
ADDED = frozenset({Lie.TWO_BODIES})
"""Mistakes that may be read as if the rest were not there: the first document is whole and true."""


def assert_all_run(master: Master) -> None:
    for row in range(len(UIDS)):
        status = master.row(row)
        assert status is not None
        assert [c.state for c in status.containers] == [ContainerState.RUNNING]
        assert [s.state for s in status.sandboxes] == [SandboxState.READY]


@pytest.mark.parametrize("lie", [lie for lie in Lie if lie is not Lie.NONE])
async def test_no_bad_answer_makes_a_pod_absent_or_ends_the_worker(tmp_path: Path, lie: Lie) -> None:
    async with lying_podman(tmp_path, "one", UIDS) as (service, socket):
        runtime = PodmanRuntime(socket, "one", limits=CallLimits(request_timeout_s=REQUEST_TIMEOUT_S))
        async with node_worker(runtime, SystemClock(), relist_period_s=1e9) as master:
            await master.first(Relisted)
            asked_at = monotonic()
            master.send(*(Track(uid=uid, row=row) for row, uid in enumerate(UIDS)), Relist())
            await master.first(Relisted, lambda report: report.started_at >= asked_at)
            assert_all_run(master)
            service.lie, before, lied_at = lie, len(master.reports), SystemClock().now().mono
            for uids in (UIDS, UIDS[:1]):
                asked = service.asked
                master.send(Relist(), Observe(uids=uids))
                async with asyncio.timeout(DEADLINE_S):
                    while service.asked < asked + TRIES:  # noqa: ASYNC110 - what a thread of the client does
                        await asyncio.sleep(0.02)
                assert_all_run(master)
            lied = master.reports[before:]
            assert lie in ADDED or not any(
                isinstance(report, Relisted) and report.started_at > lied_at for report in lied
            )
            service.lie, before = Lie.NONE, len(master.reports)
            service.let_go()
            await master.first(Relisted, after=before)
            assert_all_run(master)
        await runtime.close()


async def test_a_service_that_answers_slowly_delays_and_nothing_else(tmp_path: Path) -> None:
    async with lying_podman(tmp_path, "one", UIDS) as (service, socket):
        runtime = PodmanRuntime(socket, "one", limits=CallLimits(request_timeout_s=REQUEST_TIMEOUT_S))
        service.lie = Lie.SILENCE
        async with node_worker(runtime, SystemClock(), relist_period_s=1e9) as master:
            master.send(*(Track(uid=uid, row=row) for row, uid in enumerate(UIDS)))
            async with asyncio.timeout(DEADLINE_S):
                while service.asked < TRIES:  # noqa: ASYNC110 - what a thread of the client does
                    await asyncio.sleep(0.02)
            assert not any(isinstance(report, Relisted) for report in master.reports)
            assert all(master.row(row) is None for row in range(len(UIDS)))
            service.lie = Lie.NONE
            service.let_go()
            await master.first(Relisted)
            assert_all_run(master)
        await runtime.close()
