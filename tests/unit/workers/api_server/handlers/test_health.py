"""Words of the health check of the sync loop, and when it says them."""

from __future__ import annotations

import msgspec
import pytest

from ipc.link.messages.api_server import WorkerInfo
from tests.support.api_server import agent_changed
from workers.api_server.handlers.health import (
    MIN_WINDOW_S,
    podman_problem,
    sync_loop_problem,
    worker_problem,
)
from workers.nodestatus.readiness import relist_problem

AGENT = agent_changed(pid=7)


@pytest.mark.parametrize("state", ["R", "S", "D", "I"])
def test_a_master_that_runs_is_healthy_within_twice_the_period(state: str) -> None:
    assert sync_loop_problem(AGENT, state, 120.0) == ""
    assert sync_loop_problem(AGENT, state, 120.6) == "the sync loop's last iteration was 121 s ago, more than 120 s"


@pytest.mark.parametrize(("state", "is_"), [("T", "is stopped"), ("t", "is stopped by a debugger"), ("", "is gone")])
def test_a_master_that_does_not_run_is_not_healthy(state: str, is_: str) -> None:
    problem = sync_loop_problem(AGENT, state, 0.4)
    assert problem == f"the master (pid 7) {is_}; the sync loop's last iteration was 0 s ago"


def test_a_short_period_gives_no_shorter_window_than_the_tick_needs() -> None:
    often = msgspec.structs.replace(AGENT, sync_frequency_s=1.0)
    assert sync_loop_problem(often, "S", MIN_WINDOW_S) == ""
    assert sync_loop_problem(often, "S", MIN_WINDOW_S + 1) != ""


def test_a_relist_that_is_long_ago() -> None:
    assert relist_problem(180.0, 20.0) == ""
    assert relist_problem(181.0, 20.0) == "pleg was last seen active 3m1s ago; threshold is 3m0s"
    assert relist_problem(590.0, 300.0) == ""
    assert relist_problem(None, 300.0) == "pleg has yet to be successful"


def test_podman_that_does_not_answer() -> None:
    assert podman_problem(AGENT) == ""
    silent = msgspec.structs.replace(AGENT, runtime_healthy=False, runtime_message="no answer within 10 s")
    assert podman_problem(silent) == "Podman does not answer: no answer within 10 s"


@pytest.mark.parametrize(
    ("state", "age_s", "problem"),
    [
        ("Running", 14.0, ""),
        ("Running", 16.0, "its last heartbeat was 16 s ago, more than 15 s"),
        ("Running", None, ""),
        ("Idle", 1000.0, ""),
        ("Starting", 16.0, ""),
    ],
)
def test_a_worker_that_is_silent(state: str, age_s: float | None, problem: str) -> None:
    info = WorkerInfo(slot=4, role="pod-worker", name="pods-0", pid=1, incarnation=1, state=state, pods=0, deaths=0)
    assert worker_problem(info, age_s, 15.0) == problem
