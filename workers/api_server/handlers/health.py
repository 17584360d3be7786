"""Health checks, all together and one by one (pkg/kubelet/server/server.go, InstallAuthNotRequiredHandlers).

Different on purpose: the reason of a failure is told, because nobody but the agent's own user asks; the sync loop's
window is twice syncFrequency, where the kubelet waits for five minutes at least; and a master that is stopped or gone
is seen at once, without waiting for the window's end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from ipc.messages.api_server import AgentChanged
from ipc.metrics import kubelet as metrics
from ipc.metrics.reasons import OTHER
from ipc.shm.metric_cells import METERS
from workers.api_server.core.status_errors import not_found
from workers.api_server.store.site import AppState
from workers.proc import procfs

MIN_WINDOW_S: Final = 10.0
"""Shortest time without an iteration of the sync loop that is taken for a failure: it ticks each second."""

_NOT_RUNNING: Final[Mapping[str, str]] = {
    "": "is gone",
    "X": "is gone",
    "Z": "has ended",
    "T": "is stopped",
    "t": "is stopped by a debugger",
}
"""Words for a master whose process is in that state (proc(5))."""


class Health:
    """The handlers. Each check is a function to what is wrong, empty when nothing is."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._checks: Mapping[str, Callable[[], str]] = {"ping": lambda: "", "syncloop": self._sync_loop}

    def problems(self) -> dict[str, str]:
        """Problems by the name of the check, empty where there is none; each is counted as a check (/metrics/slis)."""
        found = {name: check() for name, check in self._checks.items()}
        for name, problem in found.items():
            count_check(name, problem)
        return found

    async def all(self, request: web.Request) -> web.Response:
        problems = self.problems()
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in problems.items()]
        if any(problems.values()):
            return web.Response(status=500, text="\n".join((*lines, "healthz check failed\n")))
        passed = "\n".join((*lines, "healthz check passed\n"))
        return web.Response(text=passed if "verbose" in request.query else "ok")

    async def one(self, request: web.Request) -> web.Response:
        name = request.match_info["check"]
        check = self._checks.get(name)
        if check is None:
            raise not_found("checks", name)
        problem = check()
        count_check(name, problem)
        if problem:
            return web.Response(status=500, text=f"internal server error: {problem}\n")
        return web.Response(text="ok")

    def _sync_loop(self) -> str:
        agent, site = self._site.store.agent, self._site
        if agent is None:
            return ""  # This process has just been born, of a master that lives.
        age_s = site.clock.now().mono - site.board.last_iteration
        return sync_loop_problem(agent, procfs.state_of(agent.pid), age_s)


def count_check(name: str, problem: str) -> None:
    """ObserveHealthcheck (component-base/metrics/prometheus/slis)."""
    known = name if name in metrics.HEALTH_CHECKS else OTHER
    METERS.counter(metrics.HEALTH_CHECKS_TOTAL, known, "error" if problem else "success", "healthz").inc()


def sync_loop_problem(agent: AgentChanged, process_state: str, age_s: float) -> str:
    """Why the sync loop is not healthy, ``age_s`` seconds after its last iteration (pkg/kubelet/kubelet.go,
    syncLoopHealthCheck). Empty when it is."""
    if what := _NOT_RUNNING.get(process_state):
        return f"the master (pid {agent.pid}) {what}; the sync loop's last iteration was {age_s:.0f} s ago"
    window_s = max(2 * agent.sync_frequency_s, MIN_WINDOW_S)
    if age_s > window_s:
        return f"the sync loop's last iteration was {age_s:.0f} s ago, more than {window_s:g} s"
    return ""
