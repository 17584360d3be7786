"""Services that are ours to end when they answer no ping."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.link.messages.zygote import Exited
from ipc.link.wire.boot import Role
from supervisor.processes.podman_service import START_S, PodmanService
from supervisor.processes.worker_pool import PODMAN_SLOT, ChildSpec, WorkerPool

OURS = PodmanService(Path("/s"), ("podman", "system", "service"))


@pytest.mark.parametrize(
    ("service", "age_s", "hung"),
    [
        (OURS, START_S + 1, True),
        (OURS, START_S - 1, False),
        (OURS, 0.0, False),
        (PodmanService(Path("/users")), 1e6, False),
    ],
)
def test_ours_once_it_had_time_to_start(service: PodmanService, age_s: float, hung: bool) -> None:
    assert service.is_hung(age_s) is hung


def test_the_age_is_that_of_the_incarnation_that_lives() -> None:
    spec = ChildSpec(PODMAN_SLOT, Role.EXEC, "podman", OURS.argv, heartbeat=False)
    pool = WorkerPool([spec], heartbeat_timeout_s=15, max_deaths=1, period_s=60)
    pool.start(100.0)
    pool.spawned(PODMAN_SLOT, 1, 7)
    assert pool.age_s(PODMAN_SLOT, 130.0) == 30.0
    pool.exited(Exited(slot=PODMAN_SLOT, incarnation=1, pid=7, exit_code=-9), 130.0)
    assert pool.age_s(PODMAN_SLOT, 135.0) == 5.0
    pool.stop(15)
    pool.exited(Exited(slot=PODMAN_SLOT, incarnation=2, pid=8, exit_code=0), 140.0)
    assert pool.age_s(PODMAN_SLOT, 150.0) == 0.0
    assert pool.age_s(99, 150.0) == 0.0
