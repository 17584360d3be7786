"""Health checks, all together and one by one (pkg/kubelet/server/server.go, InstallAuthNotRequiredHandlers).

Different on purpose: the reason of a failure is told, because everybody who is let in may know it; the sync loop's
window is twice syncFrequency, where the kubelet waits for five minutes at least; a master that is stopped or gone is
seen at once, without waiting for the window's end; and there are checks of Podman, of the relist and of each worker,
which somebody who only wants to know whether a restart would help leaves out by ``exclude``.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from aiohttp import web

from ipc.link.messages.api_server import AgentChanged, WorkerInfo
from ipc.link.metrics import kubelet as metrics
from ipc.link.metrics.reasons import OTHER
from ipc.link.shm.metric_cells import METERS
from workers.api_server.core.route import NOT_FOUND
from workers.api_server.core.status_errors import ApiError
from workers.api_server.store.site import AppState
from workers.nodestatus.readiness import relist_problem
from workers.proc import procfs

MIN_WINDOW_S: Final = 10.0
"""Shortest time without an iteration of the sync loop that is taken for a failure: it ticks each second."""
RUNNING: Final = "Running"
WORKER: Final = "worker-"
"""Begins the name of a worker's check."""
_STDERR: Final = 2
_NO_READER: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL

_NOT_RUNNING: Final[Mapping[str, str]] = {
    "": "is gone",
    "X": "is gone",
    "Z": "has ended",
    "T": "is stopped",
    "t": "is stopped by a debugger",
}
"""Words for a master whose process is in that state (proc(5))."""

Check = Callable[[], str]
"""Tells the problem; empty when there is none."""


class Health:
    """The handlers."""

    def __init__(self, site: AppState, only: Sequence[str] = ()) -> None:
        """``only`` these checks, where not all are meant."""
        self._site = site
        self._only = only

    def problems(self, excluded: Set[str] = frozenset()) -> dict[str, str]:
        """Problems by the name of the check, empty where there is none; each is counted as a check (/metrics/slis)."""
        found = {name: check() for name, check in self.checks().items() if name not in excluded}
        for name, problem in found.items():
            count_check(name, problem)
        return found

    async def all(self, request: web.Request) -> web.Response:
        excluded = set(request.query.getall("exclude", []))
        problems = self.problems(excluded)
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in problems.items()]
        lines += [f"[+]{name} excluded: ok" for name in sorted(excluded & self.checks().keys())]
        if any(problems.values()):
            return web.Response(status=500, text="\n".join((*lines, "healthz check failed\n")))
        passed = "\n".join((*lines, "healthz check passed\n"))
        return web.Response(text=passed if "verbose" in request.query else "ok")

    async def one(self, request: web.Request) -> web.Response:
        check = self.checks().get(request.match_info["check"])
        if check is None:
            raise ApiError(404, NOT_FOUND)
        problem = check()
        count_check(request.match_info["check"], problem)
        if problem:
            return web.Response(status=500, text=f"internal server error: {problem}\n")
        return web.Response(text="ok")

    def checks(self) -> Mapping[str, Check]:
        """By their names. Of a master that has just been born of nothing is known but that it lives."""
        agent = self._site.store.agent
        checks: dict[str, Check] = {"ping": lambda: "", "log": log_problem, "syncloop": lambda: self._sync_loop(agent)}
        if agent is not None:
            checks["relist"] = lambda: pleg_problem(self._site)
            checks["podman"] = lambda: podman_problem(agent)
            checks |= {WORKER + info.name: lambda info=info: self._worker(info) for info in agent.workers}  # type: ignore[misc]
        return {name: checks[name] for name in self._only} if self._only else checks

    def _sync_loop(self, agent: AgentChanged | None) -> str:
        site = self._site
        if agent is None:
            return ""  # This process has just been born, of a master that lives.
        age_s = site.clock.now().mono - site.board.last_iteration
        return sync_loop_problem(agent, procfs.state_of(agent.pid), age_s)

    def _worker(self, info: WorkerInfo) -> str:
        site = self._site
        row = site.board.read_worker(info.slot) if 0 <= info.slot < site.board.worker_slots else None
        beat = row.heartbeat if row is not None and row.incarnation == info.incarnation else 0.0
        return worker_problem(info, site.clock.now().mono - beat if beat else None, site.heartbeat_timeout_s)


def count_check(name: str, problem: str) -> None:
    """ObserveHealthcheck (component-base/metrics/prometheus/slis)."""
    name = "workers" if name.startswith(WORKER) else name
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


def pleg_problem(site: AppState) -> str:
    """Why the observation of Podman is not healthy now."""
    last = site.board.last_relist
    return relist_problem(site.clock.now().mono - last if last else None, site.quiet_relist_period_s)


def podman_problem(agent: AgentChanged) -> str:
    """Why Podman is of no use now."""
    return "" if agent.runtime_healthy else f"Podman does not answer: {agent.runtime_message}"


def worker_problem(info: WorkerInfo, age_s: float | None, timeout_s: float) -> str:
    """Why a worker is not healthy, ``age_s`` seconds after its last heartbeat; None: it has none. One that is being
    replaced, or has nothing to do, is."""
    if info.state != RUNNING or age_s is None or age_s <= timeout_s:
        return ""
    return f"its last heartbeat was {age_s:.0f} s ago, more than {timeout_s:g} s"


def log_problem() -> str:
    """Why nobody reads what we log: the reader of a pipe is gone."""
    poll = select.poll()
    poll.register(_STDERR, 0)
    return "standard error has no reader" if any(event & _NO_READER for _, event in poll.poll(0)) else ""
