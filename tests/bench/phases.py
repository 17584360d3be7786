"""How each figure is measured: phases of a round, raw libpod calls and Rootlet in turns on the agent's own service.

A container's first act is a line of output, which its monitor stamps in the log: so the end of a start is what the new
process did, not what anybody says of it. The begin is the user's: the request that applies the manifests, the signal
that kills.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any, Final

import msgspec
import psutil

from ipc.host.clock import monotonic, parse_rfc3339, wall
from ipc.host.libpod import endpoints
from ipc.k8s.api.v1.pod import Pod
from ipc.link.metrics import rootlet as metrics
from supervisor.client.http import AgentClient, pods_path
from supervisor.doctor import podman_database
from supervisor.load_test.processes import read_usage, take_snapshot
from tests.bench.budgets import ALL
from tests.bench.counts import Counts, counted_between, counted_by_any, counts_of
from tests.bench.idle import spent_by_name
from tests.bench.memory import PREFIX, taken_by
from tests.bench.own_storage import graph_root
from tests.bench.raw_pods import (
    FORCE,
    BodyPatch,
    as_it_is,
    first_place,
    in_flight,
    make_pods,
    pods_of,
    remove_pod,
    start_pod,
    with_filter,
)
from tests.bench.schedule import Phase, Step
from tests.bench.simulated import text_of
from tests.bench.sleepers import CONTAINER, sleepers
from tests.bench.table import OPERATIONS, PROCESSES, Plan, Side
from tests.bench.yardstick import yardstick
from tests.e2e.agent import MOMENT_POLL_S, START_DEADLINE_S, Agent, is_ready, restart_count
from tests.support.kubectl import kubectl_at
from tests.support.podman_service import IMAGE, wait_until
from tests.support.raw_libpod import Libpod
from workers.kubecontainer.labels import INSTANCE
from workers.kubecontainer.naming import sandbox_name
from workers.podman_files.seccomp_filters import FILTER_FILE
from workers.specgen.spec import container_spec

IN_FLIGHT: Final = 4
"""Raw calls at a time: as many as Rootlet's default."""
DELETIONS_IN_FLIGHT: Final = 8
DEADLINE_S: Final = 600.0
LINE_DEADLINE_S: Final = 30.0
RESTART_DEADLINE_S: Final = 120.0
COUNT_EVERY_S: Final = 2.5
"""Longer than a worker's heartbeat: calls that were counted by then are on the board."""
MAX_COUNTS: Final = 24
CALLS: Final = re.compile(r'^kubelet_runtime_operations_total\{operation_type="(\w+)"\} (\S+)$', re.MULTILINE)
RESTS: Final = re.compile(rf"^{re.escape(metrics.RESTS.name)} (\S+)$", re.MULTILINE)
COUNTS_PATH: Final = f"/metrics?name[]=kubelet_runtime_operations_total&name[]={metrics.RESTS.name}"
"""Starts no statistics, which would be in what is measured next."""
FREE_PAGES_OF_A_POD: Final = 10
"""Lower limit of the pages that a pod leaves in Podman's database: 14 on 4.3."""
NAMESPACE: Final = "default"
PROGRAM: Final = ("/bin/sh", "-c", "echo up; trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done")
"""A program whose first instruction of its own is that line; it ends at once when told to."""


class Windows(msgspec.Struct, frozen=True):
    """How long is waited, in seconds, and how often is asked."""

    idle_timeout_s: float = 15.0
    """``workers.idleTimeout`` of the agent: after it processes that are there on demand have left."""
    idle_s: float = 30.0
    resync_s: float = 120.0
    """How long the first round waits for a periodic sync of as many pods as there are; 0 for no wait."""
    restarts: int = 20
    """Containers that are killed in a round, at most: each waits until Podman has cleaned up after the one before."""
    gets: int = 5


class Services(msgspec.Struct, frozen=True):
    """Sockets of Podman's services beside the agent's own."""

    plain: str
    """Without the settings that ours has."""
    default_store: str = ""
    """With them on the default store, where ours has the transient one; else empty."""

    @property
    def other_rates(self) -> tuple[str, ...]:
        """Rates that are of interest beside those of the other store."""
        return ("default_store_rate",) if self.default_store else ()


class _Restart(msgspec.Struct, frozen=True):
    """A container that was started in a sandbox that runs."""

    first_s: float
    """Until its first instruction."""
    service_s: float
    """CPU time of Podman's service."""


class _Calls(msgspec.Struct, frozen=True):
    """Calls of Podman until one moment."""

    every: Counts
    by_operation: Mapping[str, int]


class Recorder:
    """The samples of one plan."""

    def __init__(self) -> None:
        self.samples: dict[Side, dict[str, list[list[float]]]] = {side: {} for side in Side}

    def record(self, side: Side, figure: str, *samples: float) -> None:
        """The samples of this round."""
        self.samples[side].setdefault(figure, []).append(list(samples))


class Bench:
    """One plan on an agent that was started. Its phases are called in the order of `tests.bench.schedule`."""

    def __init__(
        self, agent: Agent, services: Services, plan: Plan, windows: Windows, run_name: str, recorder: Recorder
    ) -> None:
        self._database = graph_root() / podman_database.FILE
        self._agent = agent
        self._client = AgentClient(agent.socket)
        self._services = services
        self._plan = plan
        self._name = plan.name.replace(" ", "-")
        self._windows = windows
        self._run_name = run_name
        self._round = 0
        self._wanted: Mapping[str, Any] = {}
        """The plan's pods that run, by name."""
        self.warnings: list[str] = []
        """Warnings of starts that have failed: then the figures have a pause in them."""
        self._recorder = recorder

    def run(self, step: Step) -> None:
        """One step of this plan."""
        self._round = step.round
        _MEASURES[step.phase](self)

    # --- raw ---

    def grow(self) -> None:
        """Nothing where the plan's pods, or as many, have left their pages; or where a database has none."""
        free = podman_database.free_pages(self._database)
        if free is None or free >= FREE_PAGES_OF_A_POD * self._plan.pods:
            return
        instance = f"{self._run_name}-grow"
        with _directory() as logs:
            self._start_raw(self._pods(f"grow-{self._name}", self._plan.pods), instance, logs)
            self._remove_raw(instance)

    def raw(self) -> None:
        """The plan's pods by raw calls: started, and removed."""
        instance = f"{self._run_name}-raw"
        pods = self._pods(f"raw-{self._name}-{self._round}", self._plan.pods)
        with _directory() as logs:
            with self._service_beside(Side.RAW, "start"):
                begun = wall()
                self._start_raw(pods, instance, logs)
                self._record_starts(Side.RAW, begun, [_first_line(file) for file in logs.glob("*.log")])
            self._record_raw_calls("start", run_podsandbox=1, create_container=1, start_container=2)
            with self._service_beside(Side.RAW, "stop"):
                began = monotonic()
                self._remove_raw(instance)
                self._record(Side.RAW, "stop.rate", self._plan.pods / (monotonic() - began))
            self._record_raw_calls("stop", remove_podsandbox=1)

    def plain(self) -> None:
        """As `raw` on a service whose monitors have no late clean-up, from the start on: the removal counts."""
        instance = f"{self._run_name}-plain"
        pods = self._pods(f"plain-{self._name}-{self._round}", self._plan.pods)
        with _directory() as logs:
            self._start_raw(pods, instance, logs, self._services.plain)
            began = monotonic()
            self._remove_raw(instance, self._services.plain)
            self._record(Side.RAW, "stop.plain_rate", self._plan.pods / (monotonic() - began))

    def default_store(self) -> None:
        """As `raw` on a service with our settings and Podman's default store."""
        instance = f"{self._run_name}-default-store"
        pods = self._pods(f"default-{self._name}-{self._round}", self._plan.pods)
        with _directory() as logs:
            begun = wall()
            self._start_raw(pods, instance, logs, self._services.default_store)
            stamps = [_first_line(file) for file in logs.glob("*.log")]
            self._record(Side.RAW, "start.default_store_rate", len(stamps) / (max(stamps) - begun))
            began = monotonic()
            self._remove_raw(instance, self._services.default_store)
            self._record(Side.RAW, "stop.default_store_rate", self._plan.pods / (monotonic() - began))

    def filtered(self) -> None:
        """As `raw`, with the seccomp filters that Rootlet's containers have: the start counts. One pod more, started
        before, shows the filter that the OCI runtime makes of the profile."""
        instance = f"{self._run_name}-filtered"
        first, *pods = self._pods(f"filtered-{self._name}-{self._round}", self._plan.pods + 1)
        with _directory() as logs:
            self._start_raw([first], instance, logs)
            begun, earlier = wall(), set(logs.glob("*.log"))
            self._start_raw(pods, instance, logs, patch=with_filter(self._filter_of(instance)))
            stamps = [_first_line(file) for file in set(logs.glob("*.log")) - earlier]
            self._record(Side.RAW, "start.filtered_rate", len(stamps) / (max(stamps) - begun))
            self._remove_raw(instance)

    def _filter_of(self, instance: str) -> bytes:
        """Filter of the only container of that instance; empty where the runtime has a cache of its own."""
        with contextlib.closing(Libpod(self._service)) as libpod:
            listed = libpod.ask(endpoints.LIST_CONTAINERS, query="?all=true")
        (id,) = (c["Id"] for c in listed if c["Labels"].get(INSTANCE) == instance and not c["IsInfra"])
        file = Path(os.environ["XDG_RUNTIME_DIR"], "crun", id, FILTER_FILE)
        return file.read_bytes() if file.exists() and file.stat().st_nlink == 1 else b""

    def _start_raw(
        self, pods: Sequence[Pod], instance: str, logs: Path, service: str = "", patch: BodyPatch = as_it_is
    ) -> None:
        in_flight([start_pod(pod, instance, logs, patch) for pod in pods], IN_FLIGHT, service or self._service)

    def _remove_raw(self, instance: str, service: str = "") -> None:
        path = service or self._service
        in_flight([remove_pod(id) for id in pods_of(path, instance)], IN_FLIGHT, path)

    def _pods(self, prefix: str, count: int) -> list[Pod]:
        return make_pods(count, prefix, IMAGE, PROGRAM)

    # --- Rootlet ---

    def start(self) -> None:
        """The plan's pods by one request."""
        wanted = self._wanted = sleepers(f"{self._name}-{self._round}", self._plan.pods, PROGRAM, IMAGE)
        body = _manifests(wanted)
        calls, before = self._calls(), self._cpu_s()
        with self._service_beside(Side.ROOTLET, "start"):
            begun = wall()
            ready_s = self._start(body, set(wanted), begun)
        used = self._cpu_s()
        stamps = [_first_line(self._log(name, 0)) for name in wanted]
        self._record_starts(Side.ROOTLET, begun, stamps)
        self._record_cpu(Side.ROOTLET, _used_between(before, used))
        self._record(Side.ROOTLET, "start.ready_s", *ready_s)
        self._record_calls("start", calls)
        self._record_memory("looked")

    def stop(self) -> None:
        """All of them, by one request each."""
        self.warnings = sorted({event["message"] for event in self._agent.events() if event["reason"] == "Failed"})
        names = list(self._wanted)
        calls = self._calls()
        with self._service_beside(Side.ROOTLET, "stop"):
            took_s = self._stop(names)
        self._wanted = {}
        for figure in ("rate", "plain_rate", *self._services.other_rates):
            self._record(Side.ROOTLET, f"stop.{figure}", len(names) / took_s)
        self._record_calls("stop", calls)

    def _start(self, body: bytes, names: set[str], begun: float) -> list[float]:
        """Seconds until each of these pods was told to be Ready, which one request states."""
        result = self._client.apply(body, "bench")
        assert not result.failed, result
        return _until_ready(self._client, names, begun)

    def _stop(self, names: Sequence[str]) -> float:
        """Seconds until the watch has told that all are gone."""
        events = self._client.watch(pods_path(NAMESPACE), {})
        left = set(names)
        with ThreadPoolExecutor(DELETIONS_IN_FLIGHT) as pool:
            began = monotonic()
            deletions = [pool.submit(self._client.delete_pod, NAMESPACE, name) for name in names]
            while left:
                event = next(events)
                if event.type == "DELETED":
                    left.discard(event.object["metadata"]["name"])
                assert monotonic() < began + DEADLINE_S, f"{len(left)} pods are left"
            took_s = monotonic() - began
        for deletion in deletions:
            deletion.result()
        return took_s

    def restarts(self) -> None:
        """Containers are killed, each pod's once; before each kill one is created and started raw in a sandbox that
        runs, and removed. A pod's first restart knows no back-off. Podman cleans up after an end a while later
        (`podman.cleanupDelay`): both clean-ups are over before anything else is begun. The pods are there for this
        alone, because each keeps its ended container (`MaxPerPodContainerCount`), which removal of the plan's pods
        would have to remove, too, and that of raw pods has not."""
        count = min(self._windows.restarts, self._plan.pods)
        wanted = sleepers(f"{self._name}-restart-{self._round}", count, PROGRAM, IMAGE)
        self._start(_manifests(wanted), set(wanted), wall())
        self._measure_restarts(list(wanted))
        self._stop(list(wanted))

    def _measure_restarts(self, killed: Sequence[str]) -> None:
        pids = {pod: c.pid for (pod, name), c in self._agent.eye.running().items() if name == CONTAINER}
        calls = self._calls()
        taken: dict[Side, list[_Restart]] = {side: [] for side in Side}
        with _directory() as logs, contextlib.closing(Libpod(self._service)) as libpod:
            instance = f"{self._run_name}-restarts"
            (pod,) = self._pods(f"s{self._round}", 1)
            self._start_raw([pod], instance, logs)
            for number, name in enumerate(killed, start=1):
                with contextlib.ExitStack() as clean_ups:
                    taken[Side.RAW].append(self._start_another(libpod, pod, instance, number, logs, clean_ups))
                    clean_ups.enter_context(_cleaned_up_after(pids[name]))
                    taken[Side.ROOTLET].append(self._kill(name, pids[name]))
            self._remove_raw(instance)
        for side, samples in taken.items():
            self._record(side, "restart.first_s", *(sample.first_s for sample in samples))
            self._record(side, "restart.service_ms", 1000 * statistics.mean(sample.service_s for sample in samples))
        self._record_raw_calls("restart", create_container=1, start_container=1)
        self._record_calls("restart", calls, len(killed))

    def _kill(self, name: str, pid: int) -> _Restart:
        """kill -9, and wait until the successor runs and the status says so."""
        before_s, begun = self._service_s(), wall()
        os.kill(pid, signal.SIGKILL)
        first = self._successor_appears(name, begun)
        self._agent.until(lambda: self._restarted([name]), "the restart is told", RESTART_DEADLINE_S, MOMENT_POLL_S)
        return _Restart(first - begun, self._service_s() - before_s)

    def _start_another(
        self, libpod: Libpod, pod: Pod, instance: str, number: int, logs: Path, clean_ups: contextlib.ExitStack
    ) -> _Restart:
        """Create and start a container beside those that run in the pod, and remove it."""
        (container,) = pod.spec.containers
        log_file = logs / f"another-{number}.log"
        place = msgspec.structs.replace(
            first_place(container, instance, sandbox_name(pod, 0), logs), attempt=number, log_file=log_file
        )
        before_s, begun = self._service_s(), wall()
        id = libpod.ask(endpoints.CREATE_CONTAINER, body=container_spec(pod, container, place))["Id"]
        libpod.ask(endpoints.START_CONTAINER, id)
        taken = _Restart(_appears(log_file) - begun, self._service_s() - before_s)
        clean_ups.enter_context(_cleaned_up_after(libpod.ask(endpoints.INSPECT_CONTAINER, id)["State"]["Pid"]))
        libpod.ask(endpoints.REMOVE_CONTAINER, id, query=FORCE)
        return taken

    def get(self) -> None:
        """`rootlet get pods`, as a user runs it, in turns with a Python that does nothing, and with kubectl where there
        is one."""
        taken = asyncio.run(self._gets())
        for prefix, other in (("", "python"), ("kubectl_", "kubectl")):
            for side, name in ((Side.RAW, other), (Side.ROOTLET, "rootlet")) if other in taken else ():
                self._record(side, f"get.{prefix}wall_s", *(each.wall_s for each in taken[name]))
                self._record(side, f"get.{prefix}cpu_s", *(each.cpu_s for each in taken[name]))

    async def _gets(self) -> dict[str, list[_Command]]:
        """By what ran. The first run of each does not count: kubectl's has the discovery to cache."""
        commands = {"rootlet": self._agent.command("get", "pods"), "python": [sys.executable, "-c", "pass"]}
        taken: dict[str, list[_Command]] = {}
        with _directory() as home:
            async with kubectl_at(self._agent.socket, home) as kubectl:
                if shutil.which("kubectl") is not None:
                    commands["kubectl"] = [*kubectl.command, "get", "pods"]
                for _ in range(1 + self._windows.gets):
                    for name, words in commands.items():
                        done = await asyncio.to_thread(_run, words, {**os.environ, **kubectl.environment({})})
                        assert name == "python" or len(done.output.splitlines()) == 1 + len(self._wanted), done.output
                        taken.setdefault(name, []).append(done)
        return {name: runs[1:] for name, runs in taken.items()}

    def idle(self) -> None:
        """Begins when the processes have left that are there on demand: in the first minute after the starts. Nothing
        is asked of the agent meanwhile. The first round then waits for as many syncs as there are pods, those that were
        passed over among them."""
        calls, syncs, rests = self._calls(), self._count("syncs"), self._rests()
        names = self._names()
        sleep(self._windows.idle_timeout_s + COUNT_EVERY_S)
        before, began = self._run_s(), monotonic()
        sleep(self._windows.idle_s)
        after, took_s = self._run_s(), monotonic() - began
        percent = {name: 100 * used_s / took_s for name, used_s in _used_between(before, after).items()}
        self._record(Side.ROOTLET, "idle.rootlet", sum(percent.values()) - percent["service"])
        self._record(Side.ROOTLET, "idle.service", percent["service"])
        self._record_memory("idle", names)
        if self._round == 1 and self._windows.resync_s:
            self._agent.until(
                lambda: counted_between(syncs, self._count("syncs")) + self._rests() - rests >= len(self._wanted),
                "resyncs",
                self._windows.resync_s,
                COUNT_EVERY_S,
            )
            self._record_calls("idle", calls, counted_between(syncs, self._count("syncs")) + self._rests() - rests)

    def respawn(self) -> None:
        """kill -9 of the agent and its service, and the next start. Readiness is watched: who asks for all pods again
        and again takes a CPU of the two from those who are to find out."""
        agent = self._agent
        for process in agent.marked_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        assert agent.wait_end() == -signal.SIGKILL
        began, begun = monotonic(), wall()
        agent.respawn()
        agent.until(lambda: self._shown() == len(self._wanted), "the first answer", DEADLINE_S, MOMENT_POLL_S)
        self._record(Side.ROOTLET, "respawn.answer_s", monotonic() - began)
        _until_ready(self._client, set(self._wanted), begun)
        self._record(Side.ROOTLET, "respawn.ready_s", monotonic() - began)
        agent.until(lambda: agent.is_up(sources_ready=True), "the agent is up", START_DEADLINE_S)

    def _shown(self) -> int:
        """Number of pods in an answer; 0 without one."""
        try:
            return len(self._agent.pods())
        except (OSError, http.client.HTTPException):
            return 0

    def _restarted(self, names: Sequence[str]) -> bool:
        pods = self._agent.pods()
        return all(restart_count(pods[name], CONTAINER) >= 1 and is_ready(pods[name]) for name in names)

    def _successor_appears(self, name: str, begun: float) -> float:
        """The stamp of its first line. A start that fails is tried again as the next attempt, after a pause."""
        logs = self._log(name, 0).parent
        wait_until(lambda: bool(_lines_after(begun, logs)), RESTART_DEADLINE_S, MOMENT_POLL_S)
        return _lines_after(begun, logs)[0]

    # --- figures ---

    def _record(self, side: Side, figure: str, *samples: float) -> None:
        self._recorder.record(side, figure, *samples)

    def _record_starts(self, side: Side, begun: float, stamps: Sequence[float]) -> None:
        assert len(stamps) == self._plan.pods
        rate = len(stamps) / (max(stamps) - begun)
        self._record(side, "start.rate", rate)
        if side is Side.ROOTLET:
            for figure in ("filtered_rate", *self._services.other_rates):
                self._record(side, f"start.{figure}", rate)
        self._record(side, "start.first_s", *(stamp - begun for stamp in stamps))

    @contextlib.contextmanager
    def _service_beside(self, side: Side, phase: str) -> Iterator[None]:
        """A block for which the CPU time of Podman's service is recorded, and what it depends on beside the work: how
        fast the machine was meanwhile, and the free pages that Podman's database had before."""
        free = podman_database.free_pages(self._database)
        if free is not None:
            self._record(side, f"{phase}.free_pages", free)
        before_s = self._service_s()
        with yardstick() as measured:
            yield
        used_s = self._service_s() - before_s
        self._record(side, f"{phase}.service_s", used_s)
        self._record(side, f"{phase}.yardstick_ms", measured.median_ms)
        self._record(side, f"{phase}.service_yards", 1000 * used_s / measured.median_ms)

    def _record_cpu(self, side: Side, used_s: Mapping[str, float]) -> None:
        for process in PROCESSES:
            if process in used_s:
                self._record(side, f"start.cpu_ms.{process}", 1000 * used_s[process] / self._plan.pods)

    def _record_raw_calls(self, phase: str, **operations: int) -> None:
        """Calls that a raw pod takes, by operation."""
        self._record(Side.RAW, f"{phase}.calls", sum(operations.values()))
        for operation, made in operations.items():
            self._record(Side.RAW, f"{phase}.calls.{operation}", made)

    def _record_calls(self, phase: str, before: _Calls, pods: int = 0) -> None:
        """For each of the plan's pods, or of so many."""
        after, each = self._calls(), pods or self._plan.pods
        self._record(Side.ROOTLET, f"{phase}.calls", counted_between(before.every, after.every) / each)
        for operation, count in after.by_operation.items():
            if made := count - before.by_operation[operation]:
                self._record(Side.ROOTLET, f"{phase}.calls.{operation}", made / each)

    def _calls(self) -> _Calls:
        """Calls of Podman that the workers have made, once they stay the same."""
        every = self._counted("runtime_calls")
        counts = {name: int(float(count)) for name, count in CALLS.findall(text_of(self._agent.socket, COUNTS_PATH))}
        return _Calls(every, {operation: counts.get(operation, 0) for operation in OPERATIONS})

    def _counted(self, counter: str) -> Counts:
        """By worker, once it stays the same for a heartbeat. Fails where it does not."""
        found = self._count(counter)
        for _ in range(MAX_COUNTS):
            sleep(COUNT_EVERY_S)
            before, found = found, self._count(counter)
            if counted_by_any(before) == counted_by_any(found):
                return found
        raise AssertionError(f"{counter} still rises: {before} to {found}")

    def _count(self, counter: str) -> Counts:
        return counts_of(self._agent.workers().values(), counter)

    def _rests(self) -> int:
        """Periodic syncs that were passed over so far."""
        found = RESTS.search(text_of(self._agent.socket, COUNTS_PATH))
        return int(float(found.group(1))) if found is not None else 0

    def _names(self) -> list[Any]:
        return list(self._agent.workers().values())

    def _cpu_s(self) -> dict[str, float]:
        """CPU seconds so far, by `PROCESSES`."""
        snapshot = take_snapshot(self._agent.process.pid, self._names())
        used: dict[str, float] = {}
        for usage in snapshot.agent:
            used[_kind(usage.name)] = used.get(_kind(usage.name), 0.0) + usage.cpu_seconds
        return used | {"service": self._service_s()}

    def _run_s(self) -> dict[str, float]:
        """CPU seconds so far of each process of the agent and of its service, as the scheduler counts them: a window in
        which nothing happens has five clock ticks of the service's."""
        spent = spent_by_name(self._agent.process.pid)
        own = {name: each.cpu_s for name, each in spent.items() if name.startswith(PREFIX)}
        service = self._service_process()
        return own | {"service": spent[f"{service.name()} {service.pid}"].cpu_s}

    def _record_memory(self, phase: str, workers: Sequence[Any] | None = None) -> None:
        """By process, and of all; none for what has just left. Asks nothing of the agent when the workers are given."""
        snapshot = take_snapshot(self._agent.process.pid, self._names() if workers is None else workers)
        found: dict[str, float] = {}
        for usage in snapshot.agent:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                taken = taken_by(usage.pid)
                for what, mib in (("pss", taken.pss), ("anonymous", taken.anonymous)):
                    for role in (_kind(usage.name), ALL):
                        figure = f"{phase}.{what}.{role}"
                        found[figure] = found.get(figure, 0.0) + mib
        for figure, mib in found.items():
            self._record(Side.ROOTLET, figure, mib)

    def _service_s(self) -> float:
        usage = read_usage(self._service_process(), "service")
        assert usage is not None
        return usage.cpu_seconds

    def _service_process(self) -> psutil.Process:
        family = psutil.Process(self._agent.process.pid).children(recursive=True)
        (service,) = (p for p in family if p.name() == "podman" and "system service" in " ".join(p.cmdline()[1:4]))
        return service

    @property
    def _service(self) -> str:
        return str(self._agent.socket.with_suffix(".podman.sock"))

    def _log(self, name: str, attempt: int) -> Path:
        (directory,) = Path(self._agent.settings["podLogsDir"]).glob(f"{NAMESPACE}_{name}_*")
        return directory / CONTAINER / f"{attempt}.log"


_MEASURES: Final[Mapping[Phase, Callable[[Bench], None]]] = {
    Phase.GROW: Bench.grow,
    Phase.RAW: Bench.raw,
    Phase.PLAIN: Bench.plain,
    Phase.DEFAULT_STORE: Bench.default_store,
    Phase.FILTERED: Bench.filtered,
    Phase.START: Bench.start,
    Phase.GET: Bench.get,
    Phase.IDLE: Bench.idle,
    Phase.RESTART: Bench.restarts,
    Phase.RESPAWN: Bench.respawn,
    Phase.STOP: Bench.stop,
}


def _kind(process: str) -> str:
    """Pod workers count together."""
    return process.partition("-")[0]


def _used_between(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """CPU seconds by process. A successor of one that was there on demand has begun at nothing."""
    return {name: used - before[name] if used >= before.get(name, used + 1) else used for name, used in after.items()}


def _manifests(pods: Mapping[str, Any]) -> bytes:
    """Documents of one request."""
    return "".join(f"---\n{json.dumps(pod)}\n" for pod in pods.values()).encode()


def _until_ready(client: AgentClient, names: set[str], begun: float) -> list[float]:
    """Seconds until each pod was told to be Ready."""
    taken: dict[str, float] = {}
    for event in client.watch(pods_path(NAMESPACE), {}):
        name = event.object.get("metadata", {}).get("name")
        if name in names and is_ready(event.object):
            taken.setdefault(name, wall() - begun)
        if len(taken) == len(names):
            break
        assert wall() < begun + DEADLINE_S, f"{len(names) - len(taken)} pods are not Ready"
    return list(taken.values())


class _Command(msgspec.Struct, frozen=True):
    """A command that ended well."""

    wall_s: float
    cpu_s: float
    output: str


def _run(words: Sequence[str], environment: Mapping[str, str]) -> _Command:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), monotonic()
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=LINE_DEADLINE_S, check=True, env=dict(environment)
    )
    wall_s, after = monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return _Command(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout)


@contextlib.contextmanager
def _cleaned_up_after(pid: int) -> Iterator[None]:
    """A block in which that first process of a container ends; left when the container's monitor has gone, which stays
    for the clean-up."""
    monitor = psutil.Process(pid).parent()
    assert monitor is not None
    yield
    monitor.wait(LINE_DEADLINE_S)


def _appears(file: Path) -> float:
    """The stamp of its first line, which is waited for."""
    wait_until(lambda: file.exists() and b"\n" in file.read_bytes(), LINE_DEADLINE_S, MOMENT_POLL_S)
    return _first_line(file)


def _lines_after(begun: float, logs: Path) -> list[float]:
    """The stamps of all attempts' first lines from then on."""
    texts = (file.read_text() for file in logs.glob("*.log"))
    stamps = (parse_rfc3339(text.split(" ", 1)[0]) for text in texts if "\n" in text)
    return sorted(stamp for stamp in stamps if stamp >= begun)


def _first_line(file: Path) -> float:
    """Epoch seconds at which the monitor took it."""
    wait_until(lambda: b"\n" in file.read_bytes(), LINE_DEADLINE_S, MOMENT_POLL_S)
    return parse_rfc3339(file.read_text().split(" ", 1)[0])


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rl-raw-", dir="/tmp") as path:
        yield Path(path)
