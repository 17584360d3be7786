"""A container runtime in memory: the verbs of `workers.kubecontainer.runtime.Runtime` on a FakePodman, and faults at
will.

The contract suite holds it to what Podman does.
"""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ipc.k8s.network.ports import PortMapping
from ipc.k8s.podobjects.registry_login import RegistryLogin
from ipc.k8s.podresources.cgroup_config import CgroupConfig
from tests.fakes.podman import KILLED, FakeContainer, FakePod, FakePodman, refuse, start_ticks
from tests.fakes.slices import FakeSlices
from workers.kubecontainer import labels
from workers.kubecontainer.image_service import ImageInfo, ImageStamp, ImageUsage, ImageUser, ListedImage
from workers.kubecontainer.runtime import (
    CallCounts,
    ContainerProcess,
    ErrorKind,
    ExecResult,
    InspectedContainer,
    InspectedPod,
    Leftovers,
    ListedContainer,
    ListedPod,
    NetworkPrograms,
    RecordedEnd,
    RuntimeCallError,
    RuntimeEvent,
    SpecDict,
    VolumeInfo,
)
from workers.kubecontainer.slices import CgroupReading
from workers.proc.signal_names import signal_number
from workers.userns.id_ranges import IdRange, IdRanges

VERSION = "4.3.1"
ID_RANGES = IdRanges(users=(IdRange(0, 65537),), groups=(IdRange(0, 65537),))
PROGRESS_PERIOD_S = 10.0

T = TypeVar("T")


class Flavour(enum.Enum):
    """How an injected fault looks to the caller, and what it did."""

    FAILED = "an error, without effect"
    TIMED_OUT = "a timeout, without effect"
    TIMED_OUT_WITH_EFFECT = "a timeout, and yet it happened"
    CUT_SHORT = "a timeout, and half of it happened: Podman was killed over it"


class FakeRuntime:
    """`workers.kubecontainer.runtime.Runtime` on a FakePodman."""

    def __init__(self, podman: FakePodman, instance: str, *, latency_s: float = 0.0) -> None:
        """Every verb takes ``latency_s`` and then happens at once."""
        self.podman = podman
        self.down = False
        """No service answers."""
        self.image_list: ImageStamp | None = None
        """Stamp of the images: it has none unless a test gives it one."""
        self.list_limit: int | None = None
        """Lists show no more than so many, and do not say so."""
        self.calls: deque[str] = deque(maxlen=10_000)
        """The verbs called, newest last."""
        self.slices = FakeSlices(podman, lambda verb, effect: self._call(verb, effect))
        self._instance = instance
        self._latency_s = latency_s
        self._faults: list[tuple[str, int, Flavour]] = []
        self._counts = CallCounts()

    def fail(self, nth: int, flavour: Flavour, verb: str = "") -> None:
        """The ``nth`` call from now on (1 is the next), of one verb or of any, goes wrong."""
        self._faults.append((verb, nth, flavour))

    # --- Runtime ---

    async def version(self) -> str:
        return await self._call("version", lambda: VERSION)

    async def list_pods(self, uid: str = "") -> tuple[ListedPod, ...]:
        def listed() -> tuple[ListedPod, ...]:
            pods = (pod for pod in self.podman.pods.values() if self._is_ours(pod.labels))
            return tuple(self._listed_pod(pod) for pod in pods if not uid or pod.labels.get(labels.POD_UID) == uid)

        return (await self._call("list_pods", listed))[: self.list_limit]

    async def list_empty_pods(self) -> tuple[ListedPod, ...]:
        def listed() -> tuple[ListedPod, ...]:
            pods = (pod for pod in self.podman.pods.values() if self._is_ours(pod.labels))
            return tuple(self._listed_pod(pod) for pod in pods if not self.podman.members(pod))

        return (await self._call("list_empty_pods", listed))[: self.list_limit]

    async def list_containers(self, uid: str = "") -> tuple[ListedContainer, ...]:
        def listed() -> tuple[ListedContainer, ...]:
            containers = (c for c in self.podman.containers.values() if self._is_ours(c.labels))
            wanted = (c for c in containers if not uid or c.labels.get(labels.POD_UID) == uid)
            return tuple(self._listed_container(container) for container in wanted)

        return (await self._call("list_containers", listed))[: self.list_limit]

    async def inspect_pod(self, id: str) -> InspectedPod:
        def inspected() -> InspectedPod:
            if id in self.podman.unreadable:
                refuse(ErrorKind.INTERNAL, f"inspecting pod {id}: input/output error")
            pod = self._listed_pod(self.podman.pod(id))
            return msgspec.convert(pod, InspectedPod, from_attributes=True)

        return await self._call("inspect_pod", inspected)

    async def inspect_container(self, id: str) -> InspectedContainer:
        return await self._call("inspect_container", lambda: self.podman.inspected(id))

    async def inspect_image(self, reference: str) -> ImageInfo | None:
        return await self._call("inspect_image", lambda: self.podman.image(reference))

    async def list_images(self) -> tuple[ListedImage, ...]:
        return await self._call("list_images", self.podman.listed_images)

    async def list_image_users(self) -> tuple[ImageUser, ...]:
        def listed() -> tuple[ImageUser, ...]:
            mounted = self.podman.mounted_images
            return tuple(
                ImageUser(id=c.id, name=c.name, images=(c.image_id, *((mounted[c.id],) if c.id in mounted else ())))
                for c in self.podman.containers.values()
            )

        return await self._call("list_image_users", listed)

    async def remove_image(self, image: ListedImage) -> None:
        await self._call("remove_image", lambda: self.podman.remove_image(image))

    async def image_usage(self, layer: str) -> ImageUsage | None:
        return await self._call("image_usage", self.podman.image_usage)

    def image_stamp(self, having: str = "") -> ImageStamp | None:
        return self.image_list

    async def inspect_volume(self, name: str) -> VolumeInfo | None:
        return await self._call("inspect_volume", lambda: self.podman.volumes.get(name))

    async def create_volume(self, name: str, labels: Mapping[str, str], options: Mapping[str, str]) -> VolumeInfo:
        return await self._call("create_volume", lambda: self.podman.create_volume(name, labels, options))

    async def id_ranges(self) -> IdRanges:
        return await self._call("id_ranges", lambda: ID_RANGES)

    async def network_programs(self) -> NetworkPrograms:
        return await self._call("network_programs", lambda: self.podman.network_programs)

    async def create_pod(self, spec: SpecDict) -> str:
        cut = partial(self.podman.cut_create_pod, spec)
        return await self._call("create_pod", lambda: self.podman.create_pod(spec), cut)

    def with_filter(self, spec: SpecDict, image: ImageInfo) -> SpecDict:
        return spec

    async def create_container(self, spec: SpecDict) -> str:
        cut = partial(self.podman.cut_create_container, spec)
        return await self._call("create_container", lambda: self.podman.create_container(spec), cut)

    async def start_container(self, id: str) -> None:
        cut = partial(self.podman.cut_start_container, id)
        await self._call("start_container", lambda: self.podman.start_container(id), cut)

    async def kill_container(self, id: str, signal: str) -> None:
        await self._call("kill_container", lambda: self.podman.kill_container(id, signal))

    async def update_container(self, id: str, resources: Mapping[str, Any]) -> None:
        await self._call("update_container", lambda: self.podman.update_container(id, resources))

    async def pause_pod(self, id: str) -> None:
        await self._call("pause_pod", lambda: self.podman.pause_pod(id))

    async def resume_pod(self, id: str) -> None:
        await self._call("resume_pod", lambda: self.podman.resume_pod(id))

    def read_cgroup(self, process: ContainerProcess) -> CgroupReading:
        container = self.podman.containers.get(process.container_id)
        if container is None:
            return CgroupReading()
        cpu, memory = container.resources.get("cpu", {}), container.resources.get("memory", {})
        config = CgroupConfig(memory=memory.get("limit"), cpu_quota=cpu.get("quota"), cpu_period=cpu.get("period"))
        return CgroupReading(config=config, memory_usage=container.memory_usage)

    def cgroup_of(self, process: ContainerProcess) -> str:
        return ""

    def oom_kills(self, directory: str) -> int | None:
        return None

    async def exec_container(self, id: str, command: Sequence[str], timeout_s: float) -> ExecResult:
        container, program = await self._call("exec_container", lambda: self.podman.begin_exec(id, command))
        try:
            async with asyncio.timeout(min(program.runs_s, timeout_s)):
                await container.ended.wait()
        except TimeoutError:
            if program.runs_s > timeout_s:
                raise RuntimeCallError(ErrorKind.TIMEOUT, "exec", f"not ended within {timeout_s:g} s") from None
            if program.ends_container:
                self.podman.exit(id)
            return ExecResult(exit_code=program.exit_code, output=program.output)
        return ExecResult(exit_code=KILLED)

    async def remove_container(self, id: str) -> None:
        await self._call("remove_container", lambda: self.podman.remove_container(id))

    async def remove_volume(self, name: str) -> None:
        await self._call("remove_volume", lambda: self.podman.remove_volume(name))

    async def remove_pod(self, id: str) -> None:
        await self._call("remove_pod", lambda: self.podman.remove_pod(id))

    async def end_leftovers(self, pod_logs_dir: str) -> Leftovers:
        return await self._call("end_leftovers", lambda: self.podman.end_leftovers(self._instance))

    async def pull_image(
        self, reference: str, on_progress: Callable[[str], None], login: RegistryLogin | None = None
    ) -> str:
        on_progress(f"Trying to pull {reference}...")
        end = self.podman.clock.now().mono + self.podman.pull_s
        try:
            while (rest_s := end - self.podman.clock.now().mono) > 0:
                on_progress(f"Copying {reference}, {rest_s:g} s to go")
                await asyncio.sleep(min(rest_s, PROGRESS_PERIOD_S))
        except asyncio.CancelledError:
            self.podman.broken_off.append(reference)
            raise
        return await self._call("pull_image", lambda: self.podman.pull_image(reference, login))

    async def wait_exit(self, process: ContainerProcess, timeout_s: float) -> bool:
        id = process.container_id
        if process.start_ticks:
            container = self.podman.containers.get(id)
        else:
            container = await self._call("wait_exit", lambda: self.podman.containers.get(id))
        if container is None or not _is(container, process):
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await container.ended.wait()
        except TimeoutError:
            return False
        return True

    def signal_process(self, process: ContainerProcess, signal: str) -> bool:
        container = self.podman.containers.get(process.container_id)
        if container is None or not process.start_ticks or not container.monitored or not _is(container, process):
            return False
        try:
            signal_number(signal)
        except ValueError:
            return False
        self.podman.kill_container(container.id, signal)
        return True

    def dismiss_monitor(self, process: ContainerProcess) -> None:
        """Note it: clean-ups have no effect on anything here."""
        self.podman.dismissed.append(process.container_id)

    def host_port_problem(self, ports: Iterable[PortMapping], *, both_families: bool) -> str:
        """Report the first port that a stranger has here."""
        taken = (str(port.host_port) for port in ports if port.host_port in self.podman.taken_ports)
        return next((f"listen tcp :{number}: bind: address already in use" for number in taken), "")

    def look_at_infra(
        self, name: str, pod_id: str, pid_file: Path, labels: Mapping[str, str], *, host_network: bool
    ) -> InspectedContainer | None:
        """Report no process: monitors of this container have no files."""
        return None

    def look_at_container(self, id: str, spec: SpecDict, image: ImageInfo) -> InspectedContainer | None:
        """Report what an inspect would show while it runs."""
        container = self.podman.containers.get(id)
        if container is None or container.state != "running" or container.is_dead or id in self.podman.unreadable:
            return None
        return self.podman.inspected(id)

    def learn_from(self, process: ContainerProcess) -> None:
        """Files have no places here."""

    def open_process(self, container: InspectedContainer) -> int | None:
        return self.podman.open_process(container)

    def has_monitor(self, process: ContainerProcess) -> bool:
        return self.podman.has_monitor(process)

    def will_record(self, process: ContainerProcess) -> bool:
        return self.podman.has_monitor(process)

    def is_exiting(self, container: InspectedContainer) -> bool:
        return self.podman.is_exiting(container)

    def recorded_end(self, process: ContainerProcess) -> RecordedEnd | None:
        return self.podman.recorded_end(process)

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        await self._call("events", lambda: None)
        mine: asyncio.Queue[RuntimeEvent | None] = asyncio.Queue()
        self.podman.listeners.append(mine)
        try:
            while (event := await mine.get()) is not None:
                if self._is_ours(event.labels):
                    yield event
        finally:
            self.podman.listeners.remove(mine)

    def counts(self) -> CallCounts:
        return self._counts

    async def close(self) -> None:
        self.podman.break_events()
        self.podman.close()

    # --- faults ---

    async def _call(self, verb: str, effect: Callable[[], T], cut_short: Callable[[], object] | None = None) -> T:
        self.calls.append(verb)
        self._count(calls=1)
        await asyncio.sleep(self._latency_s)
        try:
            return self._perform(verb, self._due_fault(verb), effect, cut_short or effect)
        except RuntimeCallError as error:
            self._count(errors=int(error.kind is not ErrorKind.NOT_FOUND))
            raise

    def _perform(self, verb: str, fault: Flavour | None, effect: Callable[[], T], cut_short: Callable[[], object]) -> T:
        if self.down:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, verb, "nobody answers")
        if fault is Flavour.FAILED:
            raise RuntimeCallError(ErrorKind.INTERNAL, verb, "an injected failure")
        if fault is Flavour.TIMED_OUT:
            raise RuntimeCallError(ErrorKind.TIMEOUT, verb, "an injected timeout")
        if fault is Flavour.CUT_SHORT:
            cut_short()
            raise RuntimeCallError(ErrorKind.TIMEOUT, verb, "an injected death of Podman")
        result = effect()
        if fault is Flavour.TIMED_OUT_WITH_EFFECT:
            raise RuntimeCallError(ErrorKind.TIMEOUT, verb, "an injected timeout")
        return result

    def _due_fault(self, verb: str) -> Flavour | None:
        counted = [(v, n - 1 if v in ("", verb) else n, flavour) for v, n, flavour in self._faults]
        self._faults = [fault for fault in counted if fault[1] > 0]
        return next((flavour for _, n, flavour in counted if n == 0), None)

    def _count(self, *, calls: int = 0, errors: int = 0) -> None:
        old = self._counts
        self._counts = msgspec.structs.replace(old, calls=old.calls + calls, errors=old.errors + errors)

    # --- what is shown ---

    def _is_ours(self, found: Mapping[str, str]) -> bool:
        return found.get(labels.INSTANCE) == self._instance

    def _listed_pod(self, pod: FakePod) -> ListedPod:
        return ListedPod(
            id=pod.id,
            name=pod.name,
            infra_id=pod.infra_id,
            labels=dict(pod.labels),
            created_at=pod.created_at,
            containers=tuple((c.id, c.state) for c in self.podman.members(pod)),
        )

    def _listed_container(self, container: FakeContainer) -> ListedContainer:
        pod = self.podman.pods.get(container.pod_id)
        return ListedContainer(
            id=container.id,
            name=container.name,
            pod_id=container.pod_id,
            pod_name=pod.name if pod else "",
            is_infra=container.is_infra,
            state=container.state,
            pid=container.pid,
            has_end=container.has_end,
            exit_code=container.exit_code,
            created_at=container.created_at,
            started_at=float(int(container.started_at)),
            exited_at=float(int(container.finished_at)),
            image=container.image,
            image_id=container.image_id,
            labels=dict(container.labels),
        )


def _is(container: FakeContainer, process: ContainerProcess) -> bool:
    """Whether the container runs in that process, by as much as is known of it."""
    ticks = start_ticks(container)
    return (
        container.pid != 0
        and container.pid == (process.pid or container.pid)
        and ticks == (process.start_ticks or ticks)
    )
