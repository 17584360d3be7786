"""A real API server on a real Unix socket in the test's own loop; the test plays the master at its link's other end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
import msgspec

from ipc.host.clock import SystemClock, monotonic, rfc3339
from ipc.k8s.api.decode import decode_pod
from ipc.k8s.api.v1.event import Event as V1Event
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages.api_server import (
    AgentChanged,
    ApiServerFeed,
    ApiServerRequest,
    EventChanged,
    FeedSynced,
    PodChanged,
    PodGone,
    ReadNextStep,
    Reply,
    WorkerInfo,
)
from ipc.link.messages.base import Ready, Shutdown
from ipc.link.messages.wait_reasons import WORDS, NextStep, WaitReason
from ipc.link.metrics.kubelet import HTTP_REQUESTS
from ipc.link.shm.board import Board
from ipc.link.shm.metric_cells import METERS
from ipc.link.wire.boot import ChildContext, Role, WorkerSettings
from ipc.link.wire.channel import Channel
from ipc.link.wire.server_settings import Port, ServerSettings
from tests.fakes.ownership import LABEL_KEY
from workers.api_server.server import run_api_server
from workers.podhttp.pod_network import Dialer

T = TypeVar("T")

DEADLINE_S: Final = 30.0
SLOT: Final = 1
IDLE_TIMEOUT_S: Final = 3600.0
"""Long enough for the API server to stay."""
PODMAN_SOCKET: Final = "podman.sock"
"""In the server's directory; nobody listens there unless a test does."""
STARTED: Final = 1_700_000_000.0
"""When everything in these tests began, in epoch seconds."""
NO_SERVER: Final = ServerSettings()
DONE: Final = {"terminated": {"exitCode": 0, "reason": "Completed", "containerID": "podman://done"}}


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Poll until it holds."""
    deadline = monotonic() + DEADLINE_S
    while not condition():
        assert monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        await asyncio.sleep(0.01)


def status_of(**fields: Any) -> PodStatus:
    """A v1 PodStatus from JSON names."""
    return msgspec.convert(fields, PodStatus)


def container_status(name: str, **fields: Any) -> dict[str, Any]:
    """A running, ready container unless told otherwise."""
    running = {"running": {"startedAt": rfc3339(STARTED)}}
    base = {"name": name, "ready": True, "restartCount": 0, "image": "busybox", "imageID": "", "state": running}
    return base | fields


def pod_changed(
    version: int,
    name: str,
    *,
    namespace: str = "default",
    uid: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    containers: tuple[str, ...] = ("app",),
    init: tuple[str, ...] = (),
    ephemeral: tuple[str, ...] = (),
    status: PodStatus | None = None,
    **fields: Any,
) -> PodChanged:
    """A pod that runs and is ready, unless ``status`` says otherwise."""
    pod = decode_pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": uid or f"uid-{name}",
                "labels": labels or {},
                "annotations": annotations or {},
                "creationTimestamp": rfc3339(STARTED),
            },
            "spec": {
                "nodeName": "node-1",
                "initContainers": [{"name": c, "image": "busybox"} for c in init],
                "containers": [{"name": c, "image": "busybox"} for c in containers],
                "ephemeralContainers": [{"name": c, "image": "busybox"} for c in ephemeral],
            },
        }
    )
    default = status_of(
        phase="Running",
        conditions=[{"type": "Ready", "status": "True"}],
        podIPs=[{"ip": "10.0.0.7"}],
        startTime=rfc3339(STARTED),
        initContainerStatuses=[container_status(c, state=DONE) for c in init],
        containerStatuses=[container_status(c) for c in containers],
        ephemeralContainerStatuses=[container_status(c) for c in ephemeral],
    )
    return PodChanged(resource_version=version, pod=pod, status=status or default, source="file", **fields)


def event_changed(
    version: int, name: str, about: str, *, reason: str = "Started", count: int = 1, type: str = "Normal"
) -> EventChanged:
    """An event about a pod in the default namespace."""
    event = V1Event(
        metadata=ObjectMeta(name=name, namespace="default", creation_timestamp=rfc3339(STARTED)),
        involved_object=ObjectReference(
            api_version="v1", kind="Pod", namespace="default", name=about, uid=f"uid-{about}"
        ),
        type=type,
        reason=reason,
        message=f"{reason} container app",
        first_timestamp=rfc3339(STARTED),
        last_timestamp=rfc3339(STARTED + 10),
        count=count,
    )
    return EventChanged(resource_version=version, event=event)


def agent_changed(*workers: WorkerInfo, pid: int = 4711) -> AgentChanged:
    """The agent about itself."""
    return AgentChanged(
        version="0.1.0",
        instance="test",
        node_name="node-1",
        pid=pid,
        started_at=STARTED,
        runtime_version="4.3.1",
        runtime_healthy=True,
        runtime_message="",
        sources_ready=True,
        workers=workers,
    )


def _done(request: Any) -> Reply:
    """Reply that all is done; a pod waits for its next sync."""
    step = NextStep(reason=WaitReason.NEXT_SYNC, message=WORDS[WaitReason.NEXT_SYNC])
    message = msgspec.json.encode(step).decode() if isinstance(request, ReadNextStep) else ""
    return Reply(request_id=request.request_id, code=200, message=message)


class Master:
    """The test's end of the link, a client of the socket, and the board between them."""

    def __init__(self, directory: Path, channel: Channel[ApiServerFeed, ApiServerRequest], board: Board) -> None:
        self.socket_path = directory / "rootlet.sock"
        self.logs_dir = directory / "logs"
        self.board = board
        self.requests: list[ApiServerRequest] = []
        self.introduced_as = 0
        """The pid in the API server's Ready."""
        self.server: asyncio.Task[int] | None = None
        """Life of the server; the result is its exit code."""
        self.answer: Callable[[Any], Reply | None] = _done
        self.ports: Mapping[Port, int] = {}
        """Numbers of the TCP ports that it serves."""
        self._channel = channel
        self._session: aiohttp.ClientSession | None = None

    def feed(self, *messages: ApiServerFeed) -> None:
        for message in messages:
            self._channel.post(message)

    def ready(self, *messages: ApiServerFeed) -> None:
        """Everything that existed when the API server started."""
        self.feed(agent_changed(), *messages, FeedSynced())

    def gone(self, version: int, name: str) -> None:
        self.feed(PodGone(resource_version=version, uid=f"uid-{name}"))

    async def serve(self) -> None:
        """Note every request and answer it."""
        async for request in self._channel:
            if isinstance(request, Ready):
                self.introduced_as = request.pid
                continue
            self.requests.append(request)
            reply = self.answer(request)
            if reply is not None:
                self._channel.post(reply)

    @property
    def http(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.UnixConnector(str(self.socket_path))
            timeout = aiohttp.ClientTimeout(total=DEADLINE_S)
            self._session = aiohttp.ClientSession("http://rootlet", connector=connector, timeout=timeout)
        return self._session

    async def get(self, path: str, **query: str) -> tuple[int, Any]:
        async with self.http.get(path, params=query) as response:
            return response.status, json.loads(await response.read())

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        self._channel.close()


class Watch:
    """Reads events of an open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    async def next(self) -> dict[str, Any] | None:
        """The next event, or None at the stream's end."""
        async with asyncio.timeout(DEADLINE_S):
            line = await self._response.content.readline()
        return json.loads(line) if line else None

    async def take(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(e["type"], e["object"]["metadata"]["name"]) for e in events if e is not None]


@contextlib.asynccontextmanager
async def waiting_client(command: Coroutine[Any, Any, T], requests: int = 2) -> AsyncIterator[asyncio.Task[T]]:
    """Start a command that watches, and hand it out when its watch has begun, which is the last of that many requests
    for objects."""
    before = _reads()
    task = asyncio.create_task(command)
    await eventually(lambda: task.done() or _reads() >= before + requests, "the command watches")
    assert not task.done()
    yield task


def _reads() -> float:
    """How many requests for objects have begun in this process."""
    return METERS.value(HTTP_REQUESTS, "false", "api", "GET", "admin")


@contextlib.asynccontextmanager
async def watching(master: Master, path: str = "/api/v1/pods", **query: str) -> AsyncIterator[Watch]:
    async with master.http.get(path, params={"watch": "true"} | query) as response:
        yield Watch(response)


@contextlib.asynccontextmanager
async def api_server(
    directory: Path,
    listen: socket.socket | None = None,
    dialer: Dialer | None = None,
    idle_timeout_s: float = IDLE_TIMEOUT_S,
    pod_rows: int = 4,
    server: ServerSettings = NO_SERVER,
) -> AsyncIterator[Master]:
    """Start it, hand out its master, and see it end properly. Each of the ``server``'s ports is in `Master.ports`."""
    board = Board.create(worker_slots=4, pod_rows=pod_rows)
    ours, theirs = socket.socketpair()
    master = Master(directory, await Channel.open(ours, ApiServerFeed, ApiServerRequest), board)
    master.logs_dir.mkdir(exist_ok=True)
    # A forked child has a descriptor of its own, which it closes when it stops serving.
    listening = listen.dup() if listen else listen_at(master.socket_path)
    ports = [socket.create_server(("127.0.0.1", 0)) for _ in server.ports]
    master.ports = {port: sock.getsockname()[1] for port, sock in zip(server.ports, ports, strict=True)}
    context = ChildContext(
        slot=SLOT,
        incarnation=1,
        role=Role.API_SERVER,
        settings=WorkerSettings(
            instance="test",
            label_key=LABEL_KEY,
            node_name="node-1",
            node=NodeResources(capacity={"ephemeral-storage": "1Gi"}),
            podman_socket=str(directory / PODMAN_SOCKET),
            pod_logs_dir=str(master.logs_dir),
            idle_timeout_s=idle_timeout_s,
            server=server,
        ),
        link=theirs,
        listen=listening,
        ports=tuple(ports),
        board=board,
    )
    writer = board.worker_writer(SLOT)
    writer.begin(1234, 1)
    writer.beat(monotonic())
    link = await Channel.open(theirs, ApiServerRequest, ApiServerFeed)
    life = master.server = asyncio.create_task(run_api_server(context, link, SystemClock(), writer, dialer))
    served = asyncio.create_task(master.serve())
    try:
        yield master
        master.feed(Shutdown())
        async with asyncio.timeout(DEADLINE_S):
            await life
    finally:
        life.cancel()
        served.cancel()
        await asyncio.gather(life, served, return_exceptions=True)
        await master.close()
        link.close()
        for sock in (listening, *ports):
            sock.close()


def listen_at(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen(16)
    return listening
