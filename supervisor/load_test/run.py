"""One run: apply, wait for Ready, measure, delete. Whatever happens, what it made is taken away again."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import msgspec
import psutil

from ipc.host import clock
from ipc.host.text.json_types import Json, JsonObject
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.link.shm.trace import Trace
from supervisor.client.errors import RequestFailed
from supervisor.client.http import NODES_PATH, AgentClient, pods_path
from supervisor.client.reflector import Reflector
from supervisor.load_test.floor import Floor, Progress, podman_socket
from supervisor.load_test.generate import Batch, Load, batches, command
from supervisor.load_test.measure import Tracker, percentiles
from supervisor.load_test.processes import Snapshot, pids_by_command, started_between, take_snapshot, used_between
from supervisor.load_test.report import Report
from supervisor.load_test.trace_file import as_chrome_trace

APPLIES_IN_FLIGHT: Final = 2
DELETIONS_IN_FLIGHT: Final = 8
DELETE_TIMEOUT_S: Final = 300.0
_NOT_FOUND: Final = 404


class Run:
    """The state of one run."""

    def __init__(
        self, client: AgentClient, load: Load, progress: Progress, *, traced: bool = False, floored: bool = False
    ) -> None:
        """``traced``: each pod is restarted once too, and `trace` has what the agent's processes did meanwhile.
        ``floored``: the same pods are started by bare calls first."""
        self._client = client
        self._traced = traced
        self._floored = floored
        self.trace = b""
        """In Chrome's format, from the end of the run on."""
        self._load = load
        self._progress = progress
        self._pods = Reflector(client, pods_path(load.namespace), {"labelSelector": load.selector})
        self._tracker = Tracker(load.names())
        self._problems: list[str] = []
        self._floor_s: float | None = None
        self.cleaned = False
        """Nothing of this run is left."""

    def refusal(self) -> str:
        """Why this load does not fit on the node; empty when it does."""
        nodes = self._client.get(NODES_PATH)["items"]
        pods = self._client.get(pods_path(None))["items"]
        return refusal(nodes[0] if nodes else {}, pods, self._load.pods, psutil.virtual_memory().available)

    def execute(self, timeout_s: float) -> Report:
        """Raises AgentError when the agent goes, KeyboardInterrupt when it is told to; cleans up before."""
        about = self._client.get("/version")
        if self._floored:
            self._floor_s = Floor(podman_socket(self._client.socket), self._load, self._progress).measure()
        before = after = self._snapshot(about)
        deleted_s: float | None = None
        self._pods.list()
        if self._traced:
            self._client.start_trace()
        try:
            self._start_all(timeout_s)
            after = self._snapshot(about)
            self._problems += self._causes()
            if self._traced:
                self._restart_each(timeout_s)
        finally:
            deleted_s = self._delete_all()
            if self._traced:
                self._take_trace()
        return self._report(about, before, after, deleted_s)

    # --- phases ---

    def _start_all(self, timeout_s: float) -> None:
        with _pool(APPLIES_IN_FLIGHT) as pool:
            applying = [pool.submit(self._apply, batch) for batch in batches(self._load)]
            self._follow(applying, lambda: self._tracker.settled, timeout_s, "Ready", lambda: self._tracker.ready)

    def _apply(self, batch: Batch) -> None:
        self._tracker.applied(batch.names, clock.monotonic())
        result = self._client.apply(batch.body, f"load-test {self._load.run}")
        if result.failed:
            raise RequestFailed(result.code, result.reason, result.message)

    def _restart_each(self, timeout_s: float) -> None:
        """kill -9 of each pod's first container, one after the other: the next one when a pod is Ready again."""
        pids = pids_by_command({tuple(command(name)): name for name in self._load.names()})
        waiting = sorted(pids.keys() - self._tracker.failed.keys())
        restarted: list[str] = []

        def all_restarted() -> bool:
            if restarted and not self._tracker.has_restarted(restarted[-1]):
                return False
            if not waiting:
                return True
            restarted.append(waiting.pop())
            self._tracker.killed(restarted[-1], clock.monotonic())
            with contextlib.suppress(ProcessLookupError):
                os.kill(pids[restarted[-1]], signal.SIGKILL)
            return False

        self._follow((), all_restarted, timeout_s, "restarts", lambda: len(restarted))
        if len(restarted) < self._load.pods or waiting or not all(map(self._tracker.has_restarted, restarted)):
            self._problems.append(f"{len(restarted)} pods of {self._load.pods} were killed, not all came back in time")

    def _take_trace(self) -> None:
        found = msgspec.json.decode(self._client.take_trace(), type=Trace)
        spans = (*found.spans, *self._tracker.spans("load-test"))
        self.trace = as_chrome_trace(spans, self._tracker.names, found.dropped)

    def _delete_all(self) -> float | None:
        """Every pod that there is of this run; the time it took, or None when some are left."""
        begin = clock.monotonic()
        self._pods.list()
        names = self._tracker.asked_for | {pod["metadata"]["name"] for pod in self._pods.objects.values()}
        with _pool(DELETIONS_IN_FLIGHT) as pool:
            deleting = [pool.submit(self._delete, name) for name in sorted(names)]

            def all_gone() -> bool:
                return not self._pods.objects and all(request.done() for request in deleting)

            self._follow(deleting, all_gone, DELETE_TIMEOUT_S, "gone", lambda: self._tracker.gone)
        left = sorted(pod["metadata"]["name"] for pod in self._pods.objects.values())
        self.cleaned = not left
        self._problems += [f"{name}: not gone {DELETE_TIMEOUT_S:g} s after its deletion" for name in left]
        return None if left else clock.monotonic() - begin

    def _delete(self, name: str) -> None:
        self._tracker.deleted(name, clock.monotonic())
        try:
            self._client.delete_pod(self._load.namespace, name)
        except RequestFailed as error:
            if error.code != _NOT_FOUND:
                raise

    def _follow(
        self,
        requests: Sequence[Future[None]],
        reached: Callable[[], bool],
        timeout_s: float,
        phase: str,
        count: Callable[[], int],
    ) -> None:
        """Take in what the watch tells until it is reached, the time is over, or a request has failed."""
        deadline = clock.monotonic() + timeout_s
        events = self._pods.events()
        while not reached() and clock.monotonic() < deadline and not _failed(requests):
            self._tracker.see(next(events), clock.monotonic())
            self._progress.show(phase, count(), self._load.pods)
        self._problems += [str(error) for error in _failed(requests)]

    # --- figures ---

    def _causes(self) -> list[str]:
        not_ready = self._tracker.not_ready()
        events = f"/api/v1/namespaces/{self._load.namespace}/events"
        return causes(not_ready, self._client.get(events)["items"]) if not_ready else []

    def _snapshot(self, about: JsonObject) -> Snapshot:
        return take_snapshot(int(about["pid"]), self._client.get("/rootlet/v1/workers")["items"])

    def _report(self, about: JsonObject, before: Snapshot, after: Snapshot, deleted_s: float | None) -> Report:
        load, tracker = self._load, self._tracker
        all_ready_s = tracker.all_ready_s()
        return Report(
            run=load.run,
            pods=load.pods,
            containers=load.containers,
            image=load.image,
            agent_version=about["gitVersion"],
            podman_version=about["runtimeVersion"],
            ready=tracker.ready,
            all_ready_s=all_ready_s,
            pods_per_second=_per_second(load.pods, all_ready_s),
            time_to_ready_s=percentiles(tracker.time_to_ready_s()),
            observe_to_status_s=percentiles(tracker.observe_to_status_s),
            delete_s=deleted_s,
            deleted_per_second=_per_second(load.pods, deleted_s),
            agent=used_between(before.agent, after.agent),
            podman=used_between(before.service, after.service) + started_between(before.helpers, after.helpers),
            floor_s=self._floor_s,
            ready_at_s=tracker.ready_at_s(),
            times_to_ready_s=sorted(tracker.time_to_ready_s()),
            problems=self._problems,
        )


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Thread pool whose calls that have not begun when the body ends, however it ends, are not begun any more."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _failed(requests: Sequence[Future[None]]) -> list[BaseException]:
    done = (request.exception() for request in requests if request.done() and not request.cancelled())
    return [error for error in done if error is not None]


def _per_second(count: int, duration_s: float | None) -> float | None:
    return count / duration_s if duration_s else None


def causes(not_ready: Mapping[str, str], events: Iterable[Json]) -> list[str]:
    """Why pods did not become Ready. A line for each, by name: what is known of it, and its newest warning."""
    newest: dict[str, Json] = {}
    for event in events:
        name = event.get("involvedObject", {}).get("name", "")
        if event.get("type") == "Warning" and name in not_ready and _seen(event) >= _seen(newest.get(name, {})):
            newest[name] = event
    return [f"{name}: {why}{_reported(newest.get(name))}" for name, why in sorted(not_ready.items())]


def _seen(event: Json) -> str:
    return str(event.get("lastTimestamp") or "")


def _reported(event: Json | None) -> str:
    return "" if event is None else f"; {event.get('reason')}: {event.get('message')}"


PROCESSES_BYTES: Final = 7 * 1024**2
"""Memory of a pod's conmon and network process, measured with 300 pods (2.1 GiB)."""


def refusal(node: Json, pods: Iterable[Json], wanted: int, available_bytes: int) -> str:
    """Why so many more pods cannot all run beside those that are there; empty when they can.

    ``available_bytes``: memory that the host has left.
    """
    if node.get("spec", {}).get("unschedulable"):
        return "the node takes no pods: it is drained; see 'rootlet uncordon'"
    most = int(node.get("status", {}).get("allocatable", {}).get("pods", wanted))
    there = sum(pod.get("status", {}).get("phase") not in TERMINAL_PHASES for pod in pods)
    if wanted > most - there:
        return (
            f"{wanted} pods do not fit: the node takes {most} pods, and {there} are there; "
            f"--pods {max(0, most - there)} fits, and maxPods in the agent's configuration is the limit"
        )
    if (needed := wanted * PROCESSES_BYTES) > available_bytes:
        return (
            f"{wanted} pods do not fit: their monitors and networks alone take {needed // 1024**2} MiB, "
            f"and {available_bytes // 1024**2} MiB of memory are left; --pods {available_bytes // PROCESSES_BYTES} fits"
        )
    return ""
