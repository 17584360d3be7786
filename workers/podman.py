"""The Runtime protocol spoken to Podman: libpod calls on the event loop (`workers.libpod.client`), and those of
images (`workers.libpod.images`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import orjson

from ipc.host import network_addresses
from ipc.host.clock import wall
from ipc.host.libpod import endpoints
from ipc.host.libpod.endpoints import Endpoint
from ipc.host.text.json_types import Json
from ipc.host.text.lines import LineSplitter
from ipc.k8s.network.ports import PortMapping
from ipc.k8s.podobjects.registry_login import RegistryLogin
from ipc.k8s.podresources.node_resources import PodCgroups
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from workers.cm.user_slices import UserSlices
from workers.exec import tags
from workers.exec.runner import Execs
from workers.exec.sessions import ExecSessions
from workers.kubecontainer import labels
from workers.kubecontainer.convert import as_inspected
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
from workers.libpod import decode as libpod
from workers.libpod.client import PING, USUAL_LIMITS, CallLimits, LibpodClient, Request, decoded, transport_error
from workers.libpod.connection import Connection
from workers.libpod.health import Listener
from workers.libpod.images import LibpodImages
from workers.network.host_ports import port_problem
from workers.oci_runtimes import OciRuntimes, RuntimeServices, acts_on_runtime
from workers.podman_files import container_process, orphaned_monitors
from workers.podman_files.bundle import read_user
from workers.podman_files.event_log import EventLog, find_log
from workers.podman_files.monitor import dismiss_monitor, has_monitor, recorded_end, will_record
from workers.podman_files.seccomp_filters import SeccompFilters
from workers.podman_files.started_look import StartedLook
from workers.proc import cgroups, procfs
from workers.proc.pidfd import wait_ended
from workers.proc.process_limit import own_limit, with_process_limit
from workers.userns.id_ranges import IdRanges

NO_SLICES: Final = PodCgroups()
NO_SERVICES: Final = RuntimeServices()
ID_CHARS: Final = 64
REMOVING: Final = "removing"
UNSETTLED_STATES: Final = frozenset({"configured", "created", "initialized", REMOVING})
"""In which a monitor is a sign of something under way or interrupted."""
T = TypeVar("T")

log = logging.getLogger(__name__)


class PodmanRuntime:
    """`workers.kubecontainer.runtime.Runtime` on a libpod socket, for one event loop of one process.

    To be made after fork: a client that two processes share would give each the other's answers.
    """

    def __init__(
        self,
        socket_path: str,
        instance: str,
        *,
        limits: CallLimits = USUAL_LIMITS,
        pull_timeout_s: float = 1800.0,
        auth_file: str = "",
        listener: Listener | None = None,
        runtime_services: RuntimeServices = NO_SERVICES,
        pod_cgroups: PodCgroups = NO_SLICES,
        starting_s: float = 0.0,
        is_own_service: bool = False,
        limits_processes: bool = False,
    ) -> None:
        """Connects to nothing yet. ``instance`` is the label value of what is ours.

        ``auth_file`` holds registry logins for the pulls, instead of those that the service finds by itself. The
        listener gets changes of the service's health. ``starting_s``: how long a service may take until it listens.
        ``is_own_service``: it is the agent's, so nobody else's idea of when it is idle matters.
        ``limits_processes``: new containers leave some of the user's processes to it.
        """
        self._client = LibpodClient(socket_path, limits, listener or Listener(), starting_s=starting_s)
        self._oci_runtimes = OciRuntimes(runtime_services, lambda socket: LibpodClient(socket, limits, Listener()))
        self.slices = UserSlices(pod_cgroups)
        self._execs = Execs(ExecSessions(self._client), self.inspect_container)
        self._images = LibpodImages(
            self._client, socket_path, instance, pull_timeout_s=pull_timeout_s, auth_file=auth_file
        )
        self._filters = SeccompFilters()
        self._look = StartedLook(self._images.store.learn, self._filters)
        self._is_own_service = is_own_service
        self._limits_processes = limits_processes
        self._instance = instance
        self._our_label = f"{labels.INSTANCE}={instance}"
        self._tasks = BackgroundTasks()
        self._id_ranges: asyncio.Task[IdRanges] | None = None
        """Under way or answered; all who ask meanwhile wait for one answer, and none takes it from the others."""

    # --- looking ---

    async def version(self) -> str:
        answer = await self._client.call(PING)
        return answer.headers.get("libpod-api-version", "")

    async def list_pods(self, uid: str = "") -> tuple[ListedPod, ...]:
        return await self._list(endpoints.LIST_PODS, self._ours(*_labelled(uid)), libpod.decode_pods)

    async def list_empty_pods(self) -> tuple[ListedPod, ...]:
        filters = self._ours(**{"ctr-number": ["0"]})
        return await self._list(endpoints.LIST_EMPTY_PODS, filters, libpod.decode_pods)

    async def list_containers(self, uid: str = "") -> tuple[ListedContainer, ...]:
        params = {"all": "true", **self._ours(*_labelled(uid))}
        return await self._list(endpoints.LIST_CONTAINERS, params, libpod.decode_containers)

    async def inspect_pod(self, id: str) -> InspectedPod:
        return await self._inspect(endpoints.INSPECT_POD, id, libpod.decode_pod)

    async def inspect_container(self, id: str) -> InspectedContainer:
        try:
            found = await self._inspect(endpoints.INSPECT_CONTAINER, id, libpod.decode_container)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.INTERNAL:
                raise
            found = await self._find_listed(id, error)
        started = msgspec.structs.replace(found, start_ticks=container_process.start_ticks_of(found))
        return msgspec.structs.replace(started, ips=_ips(started), user=read_user(found.config_path))

    async def _find_listed(self, reference: str, why: RuntimeCallError) -> InspectedContainer:
        """The container as a list shows it, where Podman's own answer about it is too large, of another shape, or an
        error: what cannot be inspected is observed and removed all the same. Raises ``why`` where the list has no
        container of that id or name."""
        named = {"id" if len(reference) == ID_CHARS else "name": [reference]}
        params = {"all": "true", **self._ours(**named)}
        containers = await self._list(endpoints.LIST_CONTAINERS, params, libpod.decode_containers)
        listed = next((container for container in containers if reference in (container.id, container.name)), None)
        if listed is None or listed.state in ("", REMOVING):
            raise why
        log.info("container %s is known by a list alone: %s", listed.name, why.message)
        return as_inspected(listed, procfs.parent_of(listed.pid) if listed.pid else 0)

    async def inspect_volume(self, name: str) -> VolumeInfo | None:
        try:
            return await self._inspect(endpoints.INSPECT_VOLUME, name, libpod.decode_volume)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    async def id_ranges(self) -> IdRanges:
        if self._id_ranges is None:
            self._id_ranges = self._tasks.spawn(
                self._inspect(endpoints.INFO, "", libpod.decode_id_ranges), name="info", expected=(RuntimeCallError,)
            )
            self._id_ranges.add_done_callback(self._keep_id_ranges)
        return await asyncio.shield(self._id_ranges)

    async def network_programs(self) -> NetworkPrograms:
        return await self._inspect(endpoints.INFO, "", libpod.decode_network_programs)

    def _keep_id_ranges(self, asked: asyncio.Task[IdRanges]) -> None:
        """Forget ID ranges whose query failed, so that they are asked for again."""
        if asked.cancelled() or asked.exception() is not None:
            self._id_ranges = None

    # --- images ---

    async def inspect_image(self, reference: str) -> ImageInfo | None:
        return await self._images.inspect_image(reference)

    async def list_images(self) -> tuple[ListedImage, ...]:
        return await self._images.list_images()

    async def list_image_users(self) -> tuple[ImageUser, ...]:
        return await self._images.list_image_users()

    async def remove_image(self, image: ListedImage) -> None:
        await self._images.remove_image(image)

    async def image_usage(self, layer: str) -> ImageUsage | None:
        return await self._images.image_usage(layer)

    def image_stamp(self, having: str = "") -> ImageStamp | None:
        return self._images.image_stamp(having)

    async def pull_image(
        self, reference: str, on_progress: Callable[[str], None], login: RegistryLogin | None = None
    ) -> str:
        return await self._images.pull_image(reference, on_progress, login)

    # --- acting ---

    async def create_volume(self, name: str, labels: Mapping[str, str], options: Mapping[str, str]) -> VolumeInfo:
        body = orjson.dumps({"Name": name, "Labels": dict(labels), "Options": dict(options)})
        request = Request(endpoint=endpoints.CREATE_VOLUME, body=body)
        return await self._client.ask(request, libpod.decode_volume)

    async def remove_volume(self, name: str) -> None:
        await self._client.call(Request(endpoint=endpoints.REMOVE_VOLUME, name=name, accept=frozenset({404})))

    async def create_pod(self, spec: SpecDict) -> str:
        return await self._create(endpoints.CREATE_POD, spec)

    def with_filter(self, spec: SpecDict, image: ImageInfo) -> SpecDict:
        # The settings of another's service may change while this process lives, and filters with them.
        return self._filters.with_filter(spec, image.id) if self._is_own_service else spec

    async def create_container(self, spec: SpecDict) -> str:
        limited = with_process_limit(spec, own_limit() if self._limits_processes else None)
        oci_runtime = spec.get("oci_runtime", "")
        if oci_runtime and self._is_own_service and acts_on_runtime(await self.version()):
            oci_runtime = ""  # the service itself acts on the specification
        return await self._create(endpoints.CREATE_CONTAINER, limited, oci_runtime)

    async def start_container(self, id: str) -> None:
        await self._client.call(Request(endpoint=endpoints.START_CONTAINER, name=id))

    async def kill_container(self, id: str, signal: str) -> None:
        request = Request(
            endpoint=endpoints.KILL_CONTAINER,
            name=id,
            params={"signal": signal},
            accept=frozenset({404, 409}),
        )
        try:
            await self._client.call(request)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.WRONG_STATE:  # Not running: a 500 before 4.6.1.
                raise

    async def update_container(self, id: str, resources: Json) -> None:
        body = orjson.dumps(dict(resources))
        await self._client.call(Request(endpoint=endpoints.UPDATE_CONTAINER, name=id, body=body))

    async def pause_pod(self, id: str) -> None:
        await self._freeze(endpoints.PAUSE_POD, id)

    async def resume_pod(self, id: str) -> None:
        await self._freeze(endpoints.RESUME_POD, id)

    async def _freeze(self, endpoint: Endpoint[object], id: str) -> None:
        """A report says what went wrong with each container, with the status 409, or with 200 before."""
        answer = await self._client.call(Request(endpoint=endpoint, name=id, accept=frozenset({409})))
        if failures := decoded(endpoint.call, answer.body, libpod.decode_freeze_errors):
            others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
            raise RuntimeCallError(ErrorKind.INTERNAL, endpoint.call, f"{failures[0]}{others}")

    def read_cgroup(self, process: ContainerProcess) -> CgroupReading:
        return cgroups.read_cgroup(self.cgroup_of(process))

    def cgroup_of(self, process: ContainerProcess) -> str:
        return cgroups.own_cgroup(process.pid, process.container_id)

    def oom_kills(self, directory: str) -> int | None:
        return cgroups.oom_kills(directory)

    async def remove_container(self, id: str) -> None:
        params = {"force": "true", "volumes": "true", "timeout": "0"}
        try:
            await self._remove(endpoints.REMOVE_CONTAINER, id, params)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:  # Another call was quicker.
                raise

    async def remove_pod(self, id: str) -> None:
        await self._remove(endpoints.REMOVE_POD, id, {"force": "true", "timeout": "0"})

    async def end_leftovers(self, pod_logs_dir: str) -> Leftovers:
        await asyncio.to_thread(tags.kill, (), (), wall())
        monitors = await asyncio.to_thread(orphaned_monitors.find_monitors, pod_logs_dir)
        states = {container.id: container.state for container in await self.list_containers()} if monitors else {}
        unlisted = [monitor for monitor in monitors if monitor.container_id not in states]
        # Asked after the monitor was seen: Podman knows a container before it has a monitor.
        unknown = [monitor for monitor in unlisted if not await self._exists(monitor.container_id)]
        ended = await asyncio.gather(*(orphaned_monitors.end(monitor, pod_logs_dir) for monitor in unknown))
        return Leftovers(
            ended=tuple(monitor.name for monitor, ours in zip(unknown, ended, strict=True) if ours),
            unsettled=any(states.get(monitor.container_id) in UNSETTLED_STATES for monitor in monitors),
        )

    async def _exists(self, id: str) -> bool:
        try:
            await self.inspect_container(id)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return False
        return True

    async def exec_container(self, id: str, command: Sequence[str], timeout_s: float) -> ExecResult:
        return await self._execs.run(id, command, timeout_s)

    # --- waiting ---

    async def wait_exit(self, process: ContainerProcess, timeout_s: float) -> bool:
        pidfd = await self._open(process)
        if pidfd is None:
            return True
        try:
            return await wait_ended(pidfd, timeout_s)
        finally:
            os.close(pidfd)

    async def _open(self, process: ContainerProcess) -> int | None:
        """A pidfd; None when the process has ended."""
        if process.pid and not procfs.exists(process.pid):
            return None
        if process.start_ticks:
            return container_process.open_known_process(process)
        found = await self._find(process.container_id)
        if found is None or not found.pid or (process.pid and found.pid != process.pid):
            return None
        return container_process.open_process(found)

    def signal_process(self, process: ContainerProcess, signal: str) -> bool:
        return container_process.send_signal(process, signal)

    def dismiss_monitor(self, process: ContainerProcess) -> None:
        dismiss_monitor(process)

    def host_port_problem(self, ports: Iterable[PortMapping], *, both_families: bool) -> str:
        return port_problem(ports, both_families=both_families)

    def look_at_infra(
        self, name: str, pod_id: str, pid_file: Path, labels: Mapping[str, str], *, host_network: bool
    ) -> InspectedContainer | None:
        return self._look.at_infra(name, pod_id, pid_file, labels, host_network=host_network)

    def look_at_container(self, id: str, spec: SpecDict, image: ImageInfo) -> InspectedContainer | None:
        # Another OCI runtime need not keep to what Podman's own one does with the process.
        return None if spec.get("oci_runtime") else self._look.at_container(id, spec, image)

    def learn_from(self, process: ContainerProcess) -> None:
        self._look.learn(process)

    def open_process(self, container: InspectedContainer) -> int | None:
        return container_process.open_process(container)

    def has_monitor(self, process: ContainerProcess) -> bool:
        return has_monitor(process)

    def will_record(self, process: ContainerProcess) -> bool:
        return will_record(process)

    def is_exiting(self, container: InspectedContainer) -> bool:
        return container_process.is_exiting(container)

    def recorded_end(self, process: ContainerProcess) -> RecordedEnd | None:
        return recorded_end(process)

    async def _find(self, id: str) -> InspectedContainer | None:
        try:
            return await self.inspect_container(id)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        # Podman 6 writes labels to the events of pods, too: a look for a container of a pod's id would find none.
        request = Request(endpoint=endpoints.EVENTS, params={"stream": "true", **self._ours(type=["container"])})
        asked_at = wall()
        with contextlib.ExitStack() as stack:
            async with self._client.stream(request) as stream:
                METERS.counter(metrics.EVENT_STREAMS).inc()
                written = await self._event_log(stream, asked_at) if self._is_own_service else None
                if written is None:
                    async for line in _lines(stream):
                        yield decoded(request.call, line, libpod.decode_event)
                    return
                stack.callback(written.close)
            try:
                async for event in written.events():
                    yield event
            except OSError as error:
                raise transport_error(request, error) from None

    async def _event_log(self, stream: Connection, since: float) -> EventLog | None:
        """The file that is behind the stream, where it can be read here."""
        try:
            service = stream.service_pid
            path = await find_log(service)
            return EventLog(path, service, self._instance, since) if path else None
        except OSError as error:
            log.info("Podman's file of events cannot be followed, its stream is: %s", error)
            return None

    # --- the client itself ---

    def counts(self) -> CallCounts:
        return self._client.counts

    async def close(self) -> None:
        await self._execs.close()
        await self._images.close()
        await self._oci_runtimes.close()
        await self._client.close()

    def _ours(self, *more_labels: str, **filters: list[str]) -> dict[str, str]:
        return {"filters": orjson.dumps({"label": [self._our_label, *more_labels], **filters}).decode()}

    async def _list(self, endpoint: Endpoint[object], params: Mapping[str, str], decode: Callable[[bytes], T]) -> T:
        return await self._client.ask(Request(endpoint=endpoint, params=params), decode)

    async def _inspect(self, endpoint: Endpoint[object], name: str, decode: Callable[[bytes], T]) -> T:
        return await self._client.ask(Request(endpoint=endpoint, name=name), decode)

    async def _create(self, endpoint: Endpoint[object], spec: SpecDict, oci_runtime: str = "") -> str:
        request = Request(endpoint=endpoint, body=orjson.dumps(dict(spec)))
        if oci_runtime:
            answer = await self._oci_runtimes.call(oci_runtime, request)
            return decoded(endpoint.call, answer.body, libpod.decode_created_id)
        return await self._client.ask(request, libpod.decode_created_id)

    async def _remove(self, endpoint: Endpoint[object], id: str, params: Mapping[str, str]) -> None:
        """A 404 is a success: it is gone. A 200 carries a report for each container, which may be a failure."""
        answer = await self._client.call(Request(endpoint=endpoint, name=id, params=params, accept=frozenset({404})))
        failures = decoded(endpoint.call, answer.body, libpod.decode_removal_errors) if answer.status < 400 else ()
        if failures:
            raise RuntimeCallError(ErrorKind.INTERNAL, endpoint.call, "; ".join(failures))


async def _lines(stream: Connection) -> AsyncIterator[bytes]:
    splitter = LineSplitter()
    async for part in stream.parts():
        for line in splitter.feed(part):
            yield line


def _ips(container: InspectedContainer) -> tuple[str, ...]:
    """Addresses of the pod's network; Podman shows none of slirp4netns and pasta."""
    has_own = container.is_infra and container.start_ticks and not labels.read_sandbox(container.labels).host_network
    return container.ips or (network_addresses.addresses_of(container.pid) if has_own else ())


def _labelled(uid: str) -> tuple[str, ...]:
    """Filter of labels for what carries that UID; empty: everything."""
    return (f"{labels.POD_UID}={uid}",) if uid else ()
