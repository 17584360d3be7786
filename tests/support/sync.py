"""A host for the tests of syncs: a runtime, fresh looks at it, and the requests that a master would make."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.link.messages.base import EventReport
from ipc.link.messages.pod_worker import SyncDone, SyncPod, WorkType
from ipc.link.shm.board import Board
from tests.fakes.clock import SimClock, simulate
from tests.fakes.dialer import FakeDialer
from tests.fakes.ownership import ownership
from tests.fakes.podman import FakeContainer, FakePodman
from tests.fakes.pulls import LocalPulls
from tests.fakes.runtime import FakeRuntime
from tests.support.pods import IMAGE
from workers.compute.crash_loop_backoff import crash_loop_limits
from workers.compute.types import ContainerStart
from workers.images.manager import ImageManager
from workers.images.pull_records import PullRecords
from workers.kubecontainer import labels
from workers.kubecontainer.convert import container_state, pod_status
from workers.kubecontainer.runtime import Runtime, SpecDict
from workers.kuberuntime.container_config import PodInputs
from workers.kuberuntime.container_images import PodImages
from workers.kuberuntime.context import NodeConfig, SyncContext
from workers.kuberuntime.sandbox import create_sandbox, use_sandbox
from workers.kuberuntime.start_container import ContainerStarter
from workers.lifecycle.handlers import HandlerRunner
from workers.lifecycle.http_hook import HttpHookClient
from workers.logs.start_error import with_start_errors
from workers.logs.termination_message import read_termination_message, with_termination_messages
from workers.pod_worker import answer
from workers.podhttp.pod_network import Dialer
from workers.sync.mutation_limiter import MutationLimiter, OwnSlots
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.record import SyncRecord
from workers.sync.removal_gate import RemovalGate
from workers.sync.run import PodRef, SyncRun, SyncServices
from workers.userns.steps.first_owner import look_into_image
from workers.userns.unshare import DEFAULT, Step, Unshare
from workers.volumemanager.plugins.volume_host import VolumeHost

MUTATIONS = 4
MAX_ROUNDS = 8
ROUND_S = 301.0
"""Between two rounds of `FakeHost.settle`, in simulated seconds: longer than any back-off."""


class Host:
    """One pod's world."""

    unshare: Unshare = DEFAULT

    def __init__(
        self,
        logs_dir: Path,
        clock: Clock,
        new_runtime: Callable[[], Runtime],
        instance: str,
        dialer: Dialer | None = None,
        host_ips: tuple[str, ...] = (),
    ) -> None:
        self.clock = clock
        self.logs_dir = logs_dir
        self.pods_dir = logs_dir.with_name(f"{logs_dir.name}.pods")
        self.memory_dir = logs_dir.with_name(f"{logs_dir.name}.memory")
        self.events: list[EventReport] = []
        self._new_runtime = new_runtime
        self._runtimes: list[Runtime] = []
        self._instance = instance
        self._dialer = dialer or FakeDialer()
        self._host_ips = host_ips
        self._eyes = self._made_runtime()
        self._board = Board.create(worker_slots=1, pod_rows=1)
        self._generations = itertools.count(1)
        self.next_worker()

    def next_worker(self) -> None:
        """The worker's next life: nothing is remembered, and no fault is due any more."""
        runtime = self._made_runtime()
        owner = ownership(self._instance)

        def host_ips() -> tuple[str, ...]:
            return self._host_ips

        self.context = SyncContext(
            services=SyncServices(
                runtime=runtime,
                clock=self.clock,
                mutations=MutationLimiter(OwnSlots(MUTATIONS)),
                removals=RemovalGate(2 * MUTATIONS),
                order=itertools.count(),
                report=self._take_event,
                step=lambda text: None,
            ),
            images=ImageManager(runtime, self.clock, PullRecords(""), LocalPulls(runtime, self.clock).pull),
            handlers=HandlerRunner(http=HttpHookClient(dialer=self._dialer, ownership=owner, host_ips=host_ips)),
            volumes=VolumeHost(
                pods_dir=str(self.pods_dir),
                memory_dir=str(self.memory_dir),
                instance=self._instance,
                unshare=self.unshare,
            ),
            node=NodeConfig(
                ownership=owner,
                pod_logs_dir=str(self.logs_dir),
                host_ips=host_ips,
                limits=crash_loop_limits(300.0),
            ),
        )

    def _made_runtime(self) -> Runtime:
        self._runtimes.append(self._new_runtime())
        return self._runtimes[-1]

    async def aclose(self) -> None:
        """Close the clients of all of its workers' lives."""
        for runtime in self._runtimes:
            await runtime.close()

    def configure(self, part: str, **changes: Any) -> None:
        """Change fields of that part of the worker's context: ``services``, ``volumes`` or ``node``."""
        changed = msgspec.structs.replace(getattr(self.context, part), **changes)
        self.context = msgspec.structs.replace(self.context, **{part: changed})

    def new_run(self, request: SyncPod, cancel: asyncio.Event | None = None) -> SyncRun:
        """A sync of that request, none of whose steps has begun."""
        metadata = request.pod.metadata if request.pod is not None else ObjectMeta(namespace="default", name="web")
        pod = PodRef(metadata.namespace, metadata.name, request.uid)
        spec = request.pod.spec if request.pod is not None else None
        return SyncRun(self.context.services, pod, SyncRecord(request), cancel or asyncio.Event(), spec)

    async def observe(self, uid: str) -> RuntimePodStatus:
        """A fresh look, through a client that never fails."""
        started_at = self.clock.now().mono
        pods = await self._eyes.list_pods(uid)
        containers = [await self._eyes.inspect_container(c.id) for c in await self._eyes.list_containers()]
        mine = [c for c in containers if c.labels.get(labels.POD_UID) == uid]
        seen = pod_status(uid, pods, mine, started_at)
        messages = {
            c.id: read_termination_message(c, str(self.pods_dir), str(self.logs_dir))
            for c in mine
            if container_state(c.state) is ContainerState.EXITED
        }
        return with_start_errors(with_termination_messages(seen, messages), str(self.logs_dir))

    async def sync(
        self,
        pod: Pod | None,
        kind: WorkType = WorkType.SYNC,
        *,
        view: RuntimePodStatus | None = None,
        cancel: asyncio.Event | None = None,
        **request: Any,
    ) -> SyncDone:
        """One request, answered. Without a ``view`` on a fresh look at ``pod`` (or at ``uid``)."""
        uid = pod.metadata.uid if pod is not None else request.pop("uid")
        status = view if view is not None else await self.observe(uid)
        made = SyncPod(
            uid=uid,
            generation=next(self._generations),
            incarnation=1,
            kind=kind,
            pod=pod,
            row=-1,
            status=status,
            **{"min_observed_at": status.observed_at, **request},
        )
        done = await answer(self.context, self._board, made, cancel or asyncio.Event())
        assert (done.uid, done.generation, done.kind) == (uid, made.generation, kind)
        assert done.error != "Internal", done.message
        return done

    async def start(self, pod: Pod, name: str, attempt: int = 0) -> tuple[bool, SyncDone]:
        """Start that container alone, in the sandbox there or in a new one: what the step says, and its record."""
        view = await self.observe(pod.metadata.uid)
        request = SyncPod(
            uid=pod.metadata.uid,
            generation=next(self._generations),
            incarnation=1,
            kind=WorkType.SYNC,
            pod=pod,
            row=-1,
            min_observed_at=0.0,
        )
        run, node, pods_dir = self.new_run(request), self.context.node, self.context.volumes.pods_dir
        of = PodSnapshot(pod=pod, status=view)
        if view.sandboxes:
            sandbox = use_sandbox(run, node, pods_dir, of, view.sandboxes[0].id)
        else:
            sandbox = await create_sandbox(run, node, pods_dir, of, 0)
        images = PodImages(run, self.context.images, of)
        starter = ContainerStarter(run, self.context, PodInputs(of=of, volumes={}, sandbox=sandbox), images)
        started = await starter.start(ContainerStart(name=name, attempt=attempt, backoff_s=0.0))
        return started, run.record.done(self.clock.now().wall)

    def reasons(self) -> list[str]:
        """Reasons of the events so far; they are forgotten."""
        seen = [f"{event.reason} {event.field_path}".strip() for event in self.events]
        self.events.clear()
        return seen

    async def _take_event(self, event: EventReport) -> None:
        self.events.append(event)


class WatchedPodman(FakePodman):
    """Fails the test at the very moment at which two containers of one name run. Begins a log for each that starts."""

    def __init__(self, clock: Clock, *, images: Iterable[str], registry: Iterable[str]) -> None:
        super().__init__(clock, images=images, registry=registry)
        self._log_files: dict[str, Path] = {}

    def create_container(self, spec: SpecDict) -> str:
        id = super().create_container(spec)
        if "log_configuration" in spec:
            self._log_files[id] = Path(spec["log_configuration"]["path"])
        return id

    def start_container(self, id: str) -> None:
        super().start_container(id)
        if id in self._log_files:
            self._log_files[id].touch()
        names = Counter(c.labels.get(labels.CONTAINER_NAME, "") for c in self.running())
        assert max(names.values(), default=0) <= 1, f"twice at once: {names}"

    def running(self) -> list[FakeContainer]:
        """Containers of pods that run, without infra containers."""
        return [c for c in self.containers.values() if c.state == "running" and not (c.is_infra or c.is_dead)]


class EmptyImages(Unshare, frozen=True):
    """Knows that images have no users and no directories; all else fails, as without Podman."""

    def run(self, steps: Sequence[Step]) -> tuple[Any, ...]:
        if [name for name, _ in steps] == [look_into_image.__name__]:
            return (("", "", None),)
        return super().run(steps)


class FakeHost(Host):
    """In memory, in simulated time. Everything must happen inside `simulate`."""

    unshare: Unshare = EmptyImages(podman="/nonexistent/podman")

    INSTANCE = "test"

    def __init__(self, logs_dir: Path) -> None:
        clock = SimClock()
        self.podman = WatchedPodman(clock, images=[IMAGE], registry=["registry.test/app:1"])
        super().__init__(logs_dir, clock, lambda: FakeRuntime(self.podman, self.INSTANCE), self.INSTANCE)

    @property
    def runtime(self) -> FakeRuntime:
        """Runtime of the present worker."""
        runtime = self.context.services.runtime
        assert isinstance(runtime, FakeRuntime)
        return runtime

    async def settle(self, pod: Pod | None, kind: WorkType = WorkType.SYNC, **request: Any) -> SyncDone:
        """Sync again and again until nothing is left to do."""
        for _ in range(MAX_ROUNDS):
            done = await self.sync(pod, kind, **dict(request))
            if not (done.changed or done.error or any(result.error for result in done.results)):
                return done
            await asyncio.sleep(ROUND_S)
        raise AssertionError(f"not at rest after {MAX_ROUNDS} rounds: {done}")

    def running(self) -> dict[str, str]:
        """Container name -> id."""
        return {c.labels[labels.CONTAINER_NAME]: c.id for c in self.podman.running()}


def on_host(tmp_path: Path, scenario: Callable[[FakeHost], Awaitable[None]]) -> None:
    """Runs a scenario on a host of its own, in simulated time."""

    async def main() -> None:
        await scenario(FakeHost(tmp_path))

    simulate(main)


def results(done: SyncDone) -> list[tuple[str, str, str]]:
    """(action, target, error) of each step."""
    return [(result.action.value, result.target, result.error) for result in done.results]


def targets(done: SyncDone) -> list[tuple[str, str]]:
    """(action, error) of each step."""
    return [(result.action.value, result.error) for result in done.results]
