"""A container runtime in memory: the verbs of `workers.runtime.Runtime` with Podman's behaviour, and faults at will.

Time comes from the clock that is given in and from the loop's timers, so that on a SimLoop every run is the same. The
contract suite holds it to what Podman does.
"""

from __future__ import annotations

import asyncio
import enum
import hashlib
import math
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn, TypeVar

import msgspec

from ipc.clock import Clock
from ipc.id_ranges import IdRange, IdRanges
from ipc.registry_login import RegistryLogin
from workers import labels
from workers.runtime import (
    CallCounts,
    ErrorKind,
    ExecResult,
    ImageInfo,
    InspectedContainer,
    InspectedPod,
    Leftovers,
    ListedContainer,
    ListedPod,
    RecordedEnd,
    RuntimeCallError,
    RuntimeEvent,
    SpecDict,
)
from workers.signal_names import signal_name

PAUSE_IMAGE = "localhost/podman-pause:fake"
VERSION = "4.3.1"
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
FIRST_PID = 10_000
ID_RANGES = IdRanges(users=(IdRange(0, 65537),), groups=(IdRange(0, 65537),))
KILLED = 128 + signal.SIGKILL
TICKS_PER_S = 100
RUNNING = frozenset({"running", "paused", "stopping"})
"""States in which Podman waits for a monitor's word of the end."""

PROGRESS_PERIOD_S = 10.0

T = TypeVar("T")


class Flavour(enum.Enum):
    """How an injected fault looks to the caller, and what it did."""

    FAILED = "an error, without effect"
    TIMED_OUT = "a timeout, without effect"
    TIMED_OUT_WITH_EFFECT = "a timeout, and yet it happened"
    CUT_SHORT = "a timeout, and half of it happened: Podman was killed over it"


class Program(msgspec.Struct, frozen=True):
    """What a container's command does."""

    runs_s: float = math.inf
    exit_code: int = 0
    term_exit_code: int | None = None
    """How it ends on ``term_signal``; None ignores it, as a process 1 without a handler does."""
    term_signal: str = "TERM"
    output: bytes = b""
    """Of a command that is run beside the container's own."""
    ends_container: bool = False
    """Such a command's end is the end of the container's own too."""


def program_of(command: Sequence[str]) -> Program | None:
    """A little of busybox: ``sleep N``, ``true``, ``false``, ``sh -c`` with sleep, exit and trap. None: not found."""
    match list(command):
        case ["sleep", seconds]:
            return Program(runs_s=float(seconds))
        case ["true"]:
            return Program(runs_s=0.0)
        case ["false"]:
            return Program(runs_s=0.0, exit_code=1)
        case ["sh", "-c", script]:
            return _script(script)
        case _:
            return None


def _script(script: str) -> Program:
    trap = re.search(r"""trap ['"]exit (\d+)['"] (\w+)""", script)
    rest = script.replace(trap[0], "") if trap else script
    sleep, end = re.search(r"sleep (\d+(?:\.\d+)?)", rest), re.search(r"exit (\d+)", rest)
    said = re.search(r"echo (\w+)", rest)
    return Program(
        runs_s=float(sleep[1]) if sleep else 0.0,
        exit_code=int(end[1]) if end else 0,
        term_exit_code=int(trap[1]) if trap else None,
        term_signal=trap[2] if trap else "TERM",
        output=f"{said[1]}\n".encode() if said else b"",
    )


@dataclass
class FakePod:
    id: str
    name: str
    labels: dict[str, str]
    created_at: float
    infra_id: str = ""


@dataclass
class FakeContainer:
    id: str
    name: str
    pod_id: str
    image: str
    image_id: str
    labels: dict[str, str]
    program: Program | None
    created_at: float
    is_infra: bool = False
    state: str = "created"
    pid: int = 0
    exit_code: int = 0
    oom_killed: bool = False
    error: str = ""
    started_at: float = 0.0
    finished_at: float = 0.0
    stop_signal: str = "SIGTERM"
    signals: list[str] = field(default_factory=list)
    """Those that it was sent."""
    end: asyncio.TimerHandle | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_leftover: bool = False
    """The OCI runtime has a process of it, and Podman does not know."""
    monitored: bool = True
    """Its conmon lives; without it Podman does not notice the end of the process."""
    is_dead: bool = False
    """Its process has ended, and Podman says that it runs."""
    pipes: list[int] = field(default_factory=list)
    """Ends of pipes that are closed when the process ends: its pidfds."""


class Executed(msgspec.Struct, frozen=True):
    """A command that was begun in a container."""

    container: str
    """Its name within the pod."""
    command: tuple[str, ...]
    at: float
    """Monotonic seconds."""


class FakePodman:
    """One user's Podman: what all runtimes on it share. Its public methods are what happens behind the agent's back."""

    def __init__(self, clock: Clock, *, images: Iterable[str] = (), registry: Iterable[str] = ()) -> None:
        """``images`` are there, ``registry`` can be pulled."""
        self.clock = clock
        self.pods: dict[str, FakePod] = {}
        self.containers: dict[str, FakeContainer] = {}
        self.images = {reference: _image(reference) for reference in images}
        self.registry = set(registry)
        self.logins: dict[str, set[RegistryLogin]] = {}
        """Images of the registry that are not for everybody, with the logins that get them."""
        self.pull_s = 0.0
        """How long a pull takes, in seconds; every PROGRESS_PERIOD_S it says something."""
        self.broken_off: list[str] = []
        """Images whose pull was cancelled."""
        self.listeners: list[asyncio.Queue[RuntimeEvent | None]] = []
        self.layers: set[str] = set()
        """Names of containers whose creation was cut short: nothing is found under them, and they are in use."""
        self.cannot_start: set[str] = set()
        """Names of containers that the OCI runtime fails to start."""
        self.without_layer: set[str] = set()
        """Ids of containers of which nothing but their entry is left."""
        self.unreadable: set[str] = set()
        """Ids of pods and containers that are listed, and of which no inspect ever succeeds."""
        self.lost: dict[str, str] = {}
        """Processes of containers that were removed without it: names, and the instances that they are of."""
        self.commands: dict[tuple[str, ...], Program] = {}
        """What commands do that `program_of` does not know."""
        self.execs: deque[Executed] = deque(maxlen=10_000)
        """Commands run in containers, newest last."""
        self.mute = False
        """Events are lost."""
        self._ids = 0
        self._pids = FIRST_PID

    def exit(self, id: str, exit_code: int = 0, *, oom_killed: bool = False) -> None:
        """A container's process ends by itself."""
        container = self.container(id)
        if container.state not in RUNNING or container.is_dead:
            return
        if container.end is not None:
            container.end.cancel()
        container.ended.set()
        self._close_pipes(container)
        if not container.monitored:
            container.is_dead = True
            return
        container.state, container.pid = "exited", 0
        container.exit_code, container.oom_killed = exit_code, oom_killed
        container.finished_at = self.clock.now().wall
        self._tell("died", container)

    def kill_monitor(self, id: str) -> None:
        """kill -9 of a container's conmon; its process lives on."""
        self.container(id).monitored = False

    def forget(self, id: str) -> None:
        """Podman loses a container; its process lives on."""
        container = self.containers.pop(self.container(id).id)
        self.lost[container.name] = container.labels.get(labels.INSTANCE, "")

    def abandon(self, id: str, state: str) -> None:
        """Somebody's `podman stop` (state stopping) or `podman rm` (removing, after a stop) is killed over it."""
        if state == "removing":
            self.exit(id, KILLED)
        self.container(id).state = state

    def reboot(self) -> None:
        """All processes are gone, and Podman has noticed that when it started (libpod, resetState)."""
        for container in self.containers.values():
            if container.end is not None:
                container.end.cancel()
            container.ended.set()
            self._close_pipes(container)
            container.state = "exited" if container.state == "exited" else "created"
            container.pid, container.is_dead = 0, False

    def break_events(self) -> None:
        """Every event stream ends."""
        for listener in self.listeners:
            listener.put_nowait(None)

    def close(self) -> None:
        """Give back file descriptors."""
        for container in self.containers.values():
            self._close_pipes(container)

    # --- what the verbs do ---

    def pod(self, id: str) -> FakePod:
        found = next((pod for pod in self.pods.values() if id in (pod.id, pod.name)), None)
        return found or _refuse(ErrorKind.NOT_FOUND, f"no such pod {id}")

    def container(self, id: str) -> FakeContainer:
        found = next((c for c in self.containers.values() if id in (c.id, c.name)), None)
        return found or _refuse(ErrorKind.NOT_FOUND, f"no such container {id}")

    def image(self, reference: str) -> ImageInfo | None:
        by_id = {image.id: image for image in self.images.values()}
        return self.images.get(reference) or by_id.get(reference)

    def members(self, pod: FakePod) -> list[FakeContainer]:
        return [c for c in self.containers.values() if c.pod_id == pod.id]

    def create_pod(self, spec: SpecDict) -> str:
        name, now = spec["name"], self.clock.now().wall
        self._refuse_name(name)
        pod = FakePod(id=self._new_id(), name=name, labels=dict(spec.get("labels", {})), created_at=now)
        self.pods[pod.id] = pod
        if not spec.get("no_infra"):
            infra = self._add(
                pod,
                spec.get("infra_name") or f"{pod.id[:12]}-infra",
                PAUSE_IMAGE,
                pod.labels,
                Program(term_exit_code=0),
            )
            infra.is_infra, pod.infra_id = True, infra.id
        return pod.id

    def cut_create_pod(self, spec: SpecDict) -> None:
        """Podman is killed between noting the pod and noting its infra container."""
        pod = self.pods[self.create_pod(spec)]
        infra = self.containers.pop(pod.infra_id)
        self.layers.add(infra.name)
        pod.infra_id = ""

    def create_container(self, spec: SpecDict) -> str:
        pod = self.pod(spec["pod"]) if spec.get("pod") else None
        image, name = spec["image"], spec["name"]
        if image not in self.images:
            _refuse(ErrorKind.IMAGE_UNKNOWN, f"{image}: image not known")
        self._refuse_name(name)
        container = self._add(pod, name, image, spec.get("labels", {}), self._program(spec.get("command", ())))
        container.stop_signal = signal_name(spec.get("stop_signal", self.images[image].stop_signal)) or "SIGTERM"
        return container.id

    def cut_create_container(self, spec: SpecDict) -> None:
        """Podman is killed between making the container's layer and noting the container."""
        self._refuse_name(spec["name"])
        self.layers.add(spec["name"])

    def cut_start_container(self, id: str) -> None:
        """Podman is killed between letting the OCI runtime make the process and noting that."""
        container = self.container(id)
        container.is_leftover = container.state != "running"

    def end_leftovers(self, instance: str) -> Leftovers:
        ended = tuple(name for name, of in self.lost.items() if of == instance)
        for name in ended:
            del self.lost[name]
        known = self.containers.values()
        return Leftovers(ended=ended, unsettled=any(c.is_leftover or c.state == "created" for c in known))

    def start_container(self, id: str) -> None:
        container = self.container(id)
        if container.state == "running":
            return
        if container.is_leftover or container.name in self.cannot_start:
            _refuse(ErrorKind.LEFTOVER, f"container {id} already exists: OCI runtime error")
        pod = self.pods.get(container.pod_id)
        if pod is not None and pod.infra_id and not container.is_infra:
            self.start_container(pod.infra_id)
        if container.program is None:
            _refuse(ErrorKind.COMMAND, "OCI runtime attempted to invoke a command that was not found")
        self._run(container, container.program)

    def kill_container(self, id: str, name: str) -> None:
        word = name.removeprefix("SIG")
        if re.split("[+-]", word)[0] not in {s.name.removeprefix("SIG") for s in signal.Signals}:
            _refuse(ErrorKind.INVALID, f"invalid signal: {name}")
        container = self.containers.get(id)
        if container is None or container.state not in RUNNING or container.is_dead or container.program is None:
            return
        container.signals.append(name)
        if word == "KILL":
            self.exit(id, KILLED)
        elif word == container.program.term_signal and container.program.term_exit_code is not None:
            self.exit(id, container.program.term_exit_code)

    def begin_exec(self, id: str, command: Sequence[str]) -> tuple[FakeContainer, Program]:
        """What that command will do in that container."""
        container, program = self.container(id), self._program(command)
        if container.state != "running":
            _refuse(ErrorKind.WRONG_STATE, "can only create exec sessions on running containers")
        if program is None:
            _refuse(ErrorKind.COMMAND, f"executable file `{command[0]}` not found in $PATH")
        name = container.labels.get(labels.CONTAINER_NAME, container.name)
        self.execs.append(Executed(name, tuple(command), self.clock.now().mono))
        return container, program

    def _program(self, command: Sequence[str]) -> Program | None:
        return self.commands.get(tuple(command)) or program_of(command)

    def remove_container(self, id: str) -> None:
        container = next((c for c in self.containers.values() if id in (c.id, c.name)), None)
        if container is None:
            self.layers.discard(id)
            return
        if container.is_infra:
            _refuse(ErrorKind.INTERNAL, "an infra container cannot be removed without removing the pod")
        self._remove(container)

    def cut_remove_container(self, id: str) -> None:
        """Podman is killed between removing the container's layer and forgetting the container."""
        self.exit(id)
        self.container(id).state = "removing"
        self.without_layer.add(id)

    def inspected(self, id: str) -> InspectedContainer:
        container = self.container(id)
        if container.id in self.unreadable:
            _refuse(ErrorKind.INTERNAL, f"inspecting container {id}: input/output error")
        if container.id in self.without_layer:
            _refuse(ErrorKind.INTERNAL, f'getting container from store "{id}": container not known')
        return _inspected(container)

    def remove_pod(self, id: str) -> None:
        pod = self.pods.get(id)
        if pod is None:
            return
        for container in sorted(self.members(pod), key=lambda c: c.is_infra):
            self._remove(container)
        del self.pods[id]

    def open_process(self, shown: InspectedContainer) -> int | None:
        container = self.containers.get(shown.id)
        if container is None or not shown.pid or container.pid != shown.pid or container.is_dead:
            return None
        reader, writer = os.pipe()
        container.pipes.append(writer)
        return reader

    def has_monitor(self, shown: InspectedContainer) -> bool:
        container = self.containers.get(shown.id)
        return container is not None and container.state in RUNNING and container.monitored

    def recorded_end(self, shown: InspectedContainer) -> RecordedEnd | None:
        container = self.containers.get(shown.id)
        if container is None or container.state != "exited" or container.started_at != shown.started_at:
            return None
        return RecordedEnd(
            exit_code=container.exit_code, finished_at=container.finished_at, oom_killed=container.oom_killed
        )

    def _close_pipes(self, container: FakeContainer) -> None:
        for pipe in container.pipes:
            os.close(pipe)
        container.pipes.clear()

    def pull_image(self, reference: str, login: RegistryLogin | None = None) -> str:
        if reference in self.logins and login not in self.logins[reference]:
            _refuse(ErrorKind.PULL, f"reading manifest of {reference}: unauthorized: authentication required")
        if reference not in self.registry:
            _refuse(ErrorKind.PULL, f"reading manifest of {reference}: manifest unknown")
        self.images[reference] = _image(reference)
        return self.images[reference].id

    def _add(
        self, pod: FakePod | None, name: str, image: str, own: Mapping[str, str], program: Program | None
    ) -> FakeContainer:
        container = FakeContainer(
            id=self._new_id(),
            name=name,
            pod_id=pod.id if pod else "",
            image=image,
            image_id=_image(image).id,
            labels=dict(own),
            program=program,
            created_at=self.clock.now().wall,
        )
        self.containers[container.id] = container
        self._tell("create", container)
        return container

    def _run(self, container: FakeContainer, program: Program) -> None:
        self._pids += 1
        container.state, container.pid = "running", self._pids
        container.monitored, container.is_dead = True, False
        container.started_at = self.clock.now().wall
        container.ended.clear()
        self._tell("start", container)
        if program.runs_s < math.inf:
            loop = asyncio.get_running_loop()
            container.end = loop.call_later(program.runs_s, self.exit, container.id, program.exit_code)

    def _remove(self, container: FakeContainer) -> None:
        self.exit(container.id, KILLED)
        if container.is_leftover:
            self.lost[container.name] = container.labels.get(labels.INSTANCE, "")
        del self.containers[container.id]
        self._tell("remove", container)

    def _refuse_name(self, name: str) -> None:
        if not NAME.fullmatch(name):
            _refuse(ErrorKind.INVALID, f"names must match {NAME.pattern}: invalid argument")
        # Podman's BoltDB has one set of names, its SQLite two: the stricter one.
        taken = {pod.name for pod in self.pods.values()} | {c.name for c in self.containers.values()} | self.layers
        if name in taken:
            _refuse(ErrorKind.NAME_IN_USE, f"name {name} is in use")

    def _new_id(self) -> str:
        self._ids += 1
        return hashlib.sha256(str(self._ids).encode()).hexdigest()

    def _tell(self, action: str, container: FakeContainer) -> None:
        event = RuntimeEvent(
            action=action, container_id=container.id, labels=dict(container.labels), time=self.clock.now().wall
        )
        for listener in () if self.mute else self.listeners:
            listener.put_nowait(event)


class FakeRuntime:
    """`workers.runtime.Runtime` on a FakePodman."""

    def __init__(self, podman: FakePodman, instance: str, *, latency_s: float = 0.0) -> None:
        """Every verb takes ``latency_s`` and then happens at once."""
        self.podman = podman
        self.down = False
        """No service answers."""
        self.list_limit: int | None = None
        """Lists show no more than so many, and do not say so."""
        self.calls: deque[str] = deque(maxlen=10_000)
        """The verbs called, newest last."""
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

    async def list_containers(self) -> tuple[ListedContainer, ...]:
        def listed() -> tuple[ListedContainer, ...]:
            containers = (c for c in self.podman.containers.values() if self._is_ours(c.labels))
            return tuple(self._listed_container(container) for container in containers)

        return (await self._call("list_containers", listed))[: self.list_limit]

    async def inspect_pod(self, id: str) -> InspectedPod:
        def inspected() -> InspectedPod:
            if id in self.podman.unreadable:
                _refuse(ErrorKind.INTERNAL, f"inspecting pod {id}: input/output error")
            pod = self._listed_pod(self.podman.pod(id))
            return msgspec.convert(pod, InspectedPod, from_attributes=True)

        return await self._call("inspect_pod", inspected)

    async def inspect_container(self, id: str) -> InspectedContainer:
        return await self._call("inspect_container", lambda: self.podman.inspected(id))

    async def inspect_image(self, reference: str) -> ImageInfo | None:
        return await self._call("inspect_image", lambda: self.podman.image(reference))

    async def id_ranges(self) -> IdRanges:
        return await self._call("id_ranges", lambda: ID_RANGES)

    async def create_pod(self, spec: SpecDict) -> str:
        cut = partial(self.podman.cut_create_pod, spec)
        return await self._call("create_pod", lambda: self.podman.create_pod(spec), cut)

    async def create_container(self, spec: SpecDict) -> str:
        cut = partial(self.podman.cut_create_container, spec)
        return await self._call("create_container", lambda: self.podman.create_container(spec), cut)

    async def start_container(self, id: str) -> None:
        cut = partial(self.podman.cut_start_container, id)
        await self._call("start_container", lambda: self.podman.start_container(id), cut)

    async def kill_container(self, id: str, signal: str) -> None:
        await self._call("kill_container", lambda: self.podman.kill_container(id, signal))

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

    async def remove_pod(self, id: str) -> None:
        await self._call("remove_pod", lambda: self.podman.remove_pod(id))

    async def end_leftovers(self, pod_logs_dir: str) -> Leftovers:
        return await self._call("end_leftovers", lambda: self.podman.end_leftovers(self._instance))

    async def pull_image(self, reference: str, hear: Callable[[str], None], login: RegistryLogin | None = None) -> str:
        hear(f"Trying to pull {reference}...")
        end = self.podman.clock.now().mono + self.podman.pull_s
        try:
            while (rest_s := end - self.podman.clock.now().mono) > 0:
                hear(f"Copying {reference}, {rest_s:g} s to go")
                await asyncio.sleep(min(rest_s, PROGRESS_PERIOD_S))
        except asyncio.CancelledError:
            self.podman.broken_off.append(reference)
            raise
        return await self._call("pull_image", lambda: self.podman.pull_image(reference, login))

    async def wait_exit(self, id: str, pid: int, timeout_s: float) -> bool:
        container = await self._call("wait_exit", lambda: self.podman.containers.get(id))
        if container is None or container.pid == 0 or (pid and container.pid != pid):
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await container.ended.wait()
        except TimeoutError:
            return False
        return True

    def open_process(self, container: InspectedContainer) -> int | None:
        return self.podman.open_process(container)

    def has_monitor(self, container: InspectedContainer) -> bool:
        return self.podman.has_monitor(container)

    def recorded_end(self, container: InspectedContainer) -> RecordedEnd | None:
        return self.podman.recorded_end(container)

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
            exit_code=container.exit_code,
            started_at=float(int(container.started_at)),
            exited_at=float(int(container.finished_at)),
            image=container.image,
            image_id=container.image_id,
            labels=dict(container.labels),
        )


def _inspected(container: FakeContainer) -> InspectedContainer:
    return InspectedContainer(
        id=container.id,
        name=container.name,
        pod_id=container.pod_id,
        is_infra=container.is_infra,
        state=container.state,
        pid=container.pid,
        conmon_pid=container.pid,
        exit_code=container.exit_code,
        oom_killed=container.oom_killed,
        error=container.error,
        created_at=container.created_at,
        started_at=container.started_at,
        finished_at=container.finished_at,
        image=container.image,
        image_id=container.image_id,
        labels=dict(container.labels),
        ips=(),
        log_path="",
        stop_signal=container.stop_signal,
        image_digest=f"sha256:{container.image_id}",
        start_ticks=int(container.started_at * TICKS_PER_S) if container.pid else 0,
    )


def _image(reference: str) -> ImageInfo:
    digest = hashlib.sha256(reference.encode()).hexdigest()
    return ImageInfo(id=digest, digests=(f"{reference}@sha256:{digest}",), user="", stop_signal="")


def _refuse(kind: ErrorKind, message: str) -> NoReturn:
    raise RuntimeCallError(kind, "fake", message)
