"""What the health check of the sync loop says, and when."""

from __future__ import annotations

import msgspec
import pytest

from tests.harness.api_server import agent_changed
from workers.api_server.handlers.health import MIN_WINDOW_S, sync_loop_problem

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
