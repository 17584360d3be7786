"""Errors that make a node not ready, in words."""

from __future__ import annotations

from typing import Final

from ipc.host.text.durations import format_duration

SHUTTING_DOWN: Final = "node is shutting down"
"""pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go, ShutdownStatus."""
MIN_RELIST_WINDOW_S: Final = 180.0
"""Shortest time without a relist that is taken for a failure (pkg/kubelet/pleg/generic.go, RelistThreshold)."""


def ready_errors(
    *,
    runtime_problem: str,
    network_problem: str,
    going_down: str,
    relist_age_s: float | None,
    quiet_period_s: float,
) -> tuple[str, ...]:
    """Errors of runtime, network, shutdown and observation. ``going_down``: the cause, as the agent tells it."""
    shutdown = SHUTTING_DOWN if going_down == "shutdown" else ""
    relist = relist_problem(relist_age_s, quiet_period_s)
    observation = f"PLEG is not healthy: {relist}" if relist else ""
    return tuple(filter(None, (runtime_problem, network_problem, shutdown, observation)))


def relist_problem(age_s: float | None, quiet_period_s: float) -> str:
    """Why the observation of Podman is not healthy, ``age_s`` seconds after the last relist that succeeded; None: there
    was none yet (pkg/kubelet/pleg/generic.go, Healthy)."""
    window_s = max(2 * quiet_period_s, MIN_RELIST_WINDOW_S)
    if age_s is None:
        return "pleg has yet to be successful"
    if age_s <= window_s:
        return ""
    return f"pleg was last seen active {format_duration(round(age_s))} ago; threshold is {format_duration(window_s)}"
