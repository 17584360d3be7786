"""One user's Podman in memory: its pods, containers, images and volumes, with what Podman does to them.

`tests.fakes.runtime` has the verbs over it. Time comes from the clock that is given in and from the loop's timers, so
that on a SimLoop every run is the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
import signal
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.podobjects.registry_login import RegistryLogin
from ipc.k8s.podresources.cgroup_config import NO_LIMIT, CgroupConfig
from workers.kubecontainer import labels
from workers.kubecontainer.image_service import ImageInfo, ImageUsage, ListedImage
from workers.kubecontainer.runtime import (
    ContainerProcess,
    ErrorKind,
    InspectedContainer,
    Leftovers,
    NetworkPrograms,
    RecordedEnd,
    RuntimeCallError,
    RuntimeEvent,
    SpecDict,
    VolumeInfo,
)
from workers.proc.signal_names import signal_name

PAUSE_IMAGE = "localhost/podman-pause:fake"
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
FIRST_PID = 10_000
KILLED = 128 + signal.SIGKILL
TICKS_PER_S = 100
RUNNING = frozenset({"running", "paused", "stopping"})
"""States in which Podman waits for a monitor's word of the end."""
FIRST_WITH_EXITED = 5
"""Version from which on a container that the host's end has ended shows as exited."""


class Program(msgspec.Struct, frozen=True):
    """Behaviour of a container's command."""

    runs_s: float = math.inf
    exit_code: int = 0
    term_exit_code: int | None = None
    """How it ends on ``term_signal``; None ignores it, as a process 1 without a handler does."""
    term_signal: str = "TERM"
    output: bytes = b""
    """Output of a command that is run beside the container's own."""
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
    has_end: bool = False
    """Podman has noted an end of the newest run."""
    stop_signal: str = "SIGTERM"
    signals: list[str] = field(default_factory=list)
    """Signals that it was sent."""
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Limits and weights by controller, as it was made and updated."""
    cgroup_parent: str = ""
    """Slice that its cgroup is to be in."""
    sources: tuple[str, ...] = ()
    """Paths of the host that are mounted into it."""
    memory_usage: int | None = 0
    """Bytes; None where nobody can tell."""
    end: asyncio.TimerHandle | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_leftover: bool = False
    """The OCI runtime has a process of it, and Podman does not know."""
    monitored: bool = True
    """Whether its conmon lives; without it Podman does not notice the end of the process."""
    is_dead: bool = False
    """Whether its process has ended while Podman says that it runs."""
    is_exiting: bool = False
    """The kernel is taking its process down, and waits for others of its PID namespace."""
    pending: list[str] = field(default_factory=list)
    """Signals that it was sent while it was paused."""
    left_s: float = math.inf
    """How long its program would run on, while it is paused."""
    pipes: list[int] = field(default_factory=list)
    """Ends of pipes that are closed when the process ends: its pidfds."""


class Executed(msgspec.Struct, frozen=True):
    """A command that was begun in a container."""

    container: str
    """Name of the container within the pod."""
    command: tuple[str, ...]
    at: float
    """Monotonic seconds."""


class FakePodman:
    """One user's Podman: what all runtimes on it share. Its public methods are what happens behind the agent's back."""

    def __init__(
        self, clock: Clock, *, images: Iterable[str] = (), registry: Iterable[str] = (), major: int = 5
    ) -> None:
        """``images`` are there, ``registry`` can be pulled. ``major``: the version, where versions differ."""
        self.clock = clock
        self.major = major
        self.pods: dict[str, FakePod] = {}
        self.containers: dict[str, FakeContainer] = {}
        self.images = {reference: _image(reference) for reference in images}
        self.registry = set(registry)
        self.registry_is_away = False
        self.slices: dict[str, CgroupConfig] = {}
        """Slices of the user's systemd, by name."""
        self.image_bytes: dict[str, int] = {}
        """Size of images, by name."""
        self.network_programs = NetworkPrograms(found=frozenset({"slirp4netns", "pasta"}))
        self.mounted_images: dict[str, str] = {}
        """Container id -> image that is mounted into it."""
        self.capacity: int | None = 1 << 40
        """Capacity of the images' file system; None: nobody knows."""
        self.other_bytes = 0
        """Bytes of it that something else occupies."""
        self.volumes: dict[str, VolumeInfo] = {}
        self.logins: dict[str, set[RegistryLogin]] = {}
        """Images of the registry that are not for everybody, with the logins that get them."""
        self.pull_s = 0.0
        """How long a pull takes, in seconds; every PROGRESS_PERIOD_S it says something."""
        self.dismissed: list[str] = []
        """Ids of containers whose monitors were told to go (`Runtime.dismiss_monitor`)."""
        self.broken_off: list[str] = []
        """Images whose pull was cancelled."""
        self.listeners: list[asyncio.Queue[RuntimeEvent | None]] = []
        self.layers: set[str] = set()
        """Names of containers whose creation was cut short: nothing is found under them, and they are in use."""
        self.taken_ports: set[int] = set()
        """Ports of the host that belong to a stranger."""
        self.cannot_start: set[str] = set()
        """Names of containers that the OCI runtime fails to start."""
        self.without_layer: set[str] = set()
        """Ids of containers of which nothing but their entry is left."""
        self.unreadable: set[str] = set()
        """Ids of pods and containers that are listed, and of which no inspect ever succeeds."""
        self.lost: dict[str, str] = {}
        """Processes of containers that were removed without it: names, and the instances that they are of."""
        self.commands: dict[tuple[str, ...], Program] = {}
        """Behaviour of commands that `program_of` does not know."""
        self.execs: deque[Executed] = deque(maxlen=10_000)
        """Commands run in containers, newest last."""
        self.mute = False
        """Events are lost."""
        self.can_freeze = True
        """Containers have cgroups of their own."""
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
        container.finished_at, container.has_end = self.clock.now().wall, True
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
        """All processes are gone, by a power cut or in order, and nobody has noted an end: so Podman finds it when it
        starts."""
        for container in self.containers.values():
            if container.end is not None:
                container.end.cancel()
            container.ended.set()
            self._close_pipes(container)
            self.reset(container)

    def reset(self, container: FakeContainer) -> None:
        """The container after a boot of the host (libpod, resetContainerState): dates, exit code and what ended before
        stay as they are. What ran is exited without an end; before version 5 it counted as created."""
        container.pid, container.is_dead = 0, False
        if container.state != "removing":
            has_run = container.state == "exited" or (self.major >= FIRST_WITH_EXITED and container.state in RUNNING)
            container.state = "exited" if has_run else "created"

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
        return found or refuse(ErrorKind.NOT_FOUND, f"no such pod {id}")

    def container(self, id: str) -> FakeContainer:
        found = next((c for c in self.containers.values() if id in (c.id, c.name)), None)
        return found or refuse(ErrorKind.NOT_FOUND, f"no such container {id}")

    def image(self, reference: str) -> ImageInfo | None:
        by_id = {image.id: image for image in self.images.values()}
        return self.images.get(reference) or by_id.get(reference)

    def listed_images(self) -> tuple[ListedImage, ...]:
        names: dict[str, list[str]] = {}
        for name, image in self.images.items():
            names.setdefault(image.id, []).append(name)
        return tuple(
            ListedImage(id=id, names=tuple(own), size_bytes=max(self.image_bytes.get(name, 0) for name in own))
            for id, own in names.items()
        )

    def image_usage(self) -> ImageUsage | None:
        if self.capacity is None:
            return None
        sizes = {image.id: image.size_bytes for image in self.listed_images()}
        available = max(0, self.capacity - self.other_bytes - sum(sizes.values()))
        return ImageUsage(capacity=self.capacity, available=available, exclusive=sizes)

    def remove_image(self, image: ListedImage) -> None:
        used = {container.image_id for container in self.containers.values()}
        if image.id in used:
            refuse(ErrorKind.WRONG_STATE, f"image {image.id} is in use by a container")
        own = {name for name, found in self.images.items() if found.id == image.id}
        self.images = {
            name: found for name, found in self.images.items() if name not in image.names or own - {*image.names}
        }

    def members(self, pod: FakePod) -> list[FakeContainer]:
        return [c for c in self.containers.values() if c.pod_id == pod.id]

    def create_volume(self, name: str, labels: Mapping[str, str], options: Mapping[str, str]) -> VolumeInfo:
        if name in self.volumes:
            refuse(ErrorKind.NAME_IN_USE, f"volume with name {name} already exists: volume already exists")
        self.volumes[name] = VolumeInfo(
            name=name, mount_point=f"/volumes/{name}/_data", labels=dict(labels), options=dict(options)
        )
        return self.volumes[name]

    def remove_volume(self, name: str) -> None:
        self.volumes.pop(name, None)

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
            refuse(ErrorKind.IMAGE_UNKNOWN, f"{image}: image not known")
        self._refuse_name(name)
        container = self._add(pod, name, image, spec.get("labels", {}), self._program(spec.get("command", ())))
        container.resources = {part: dict(values) for part, values in spec.get("resource_limits", {}).items()}
        container.cgroup_parent = spec.get("cgroup_parent", "")
        container.sources = tuple(str(mount.get("source", "")) for mount in spec.get("mounts", ()))
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
            refuse(ErrorKind.LEFTOVER, f"container {id} already exists: OCI runtime error")
        pod = self.pods.get(container.pod_id)
        if pod is not None and pod.infra_id and not container.is_infra:
            self.start_container(pod.infra_id)
        if container.program is None:
            refuse(ErrorKind.COMMAND, "OCI runtime attempted to invoke a command that was not found")
        if container.cgroup_parent:  # systemd makes a slice that something is put into
            self.slices.setdefault(container.cgroup_parent, CgroupConfig())
        self._run(container, container.program)

    def start_slice(self, name: str, config: CgroupConfig) -> None:
        """With these values, or what is there with them instead of its own. No limit is none that shows."""
        given = {f: value for f in config.__struct_fields__ if (value := getattr(config, f)) is not None}
        given = {f: value if value != NO_LIMIT else None for f, value in given.items()}
        self.slices[name] = msgspec.structs.replace(self.slices.get(name, CgroupConfig()), **given)

    def stop_slice(self, name: str) -> None:
        """With all that is in it."""
        for container in list(self.containers.values()):
            if container.cgroup_parent == name and container.state == "running":
                self.exit(container.id, KILLED)
        self.slices.pop(name, None)

    def kill_container(self, id: str, name: str) -> None:
        word = name.removeprefix("SIG")
        if re.split("[+-]", word)[0] not in {s.name.removeprefix("SIG") for s in signal.Signals}:
            refuse(ErrorKind.INVALID, f"invalid signal: {name}")
        container = self.containers.get(id)
        if container is None or container.state not in RUNNING or container.is_dead or container.program is None:
            return
        container.signals.append(name)
        if word == "KILL":
            self.exit(id, KILLED)
        elif container.state == "paused":
            container.pending.append(name)
        elif word == container.program.term_signal and container.program.term_exit_code is not None:
            self.exit(id, container.program.term_exit_code)

    def pause_pod(self, id: str) -> None:
        """libpod/pod_api.go, Pause: each container by itself."""
        running = [c for c in self.members(self.pod(id)) if c.state == "running"]
        if running and not self.can_freeze:
            refuse(ErrorKind.INTERNAL, f"pausing container {running[0].id}: cannot pause without using Cgroups")
        for container in running:
            container.state, container.left_s = "paused", math.inf
            if container.end is not None:
                container.left_s = max(0.0, container.end.when() - asyncio.get_running_loop().time())
                container.end.cancel()
            self._tell("pause", container)

    def resume_pod(self, id: str) -> None:
        """libpod/pod_api.go, Unpause."""
        for container in [c for c in self.members(self.pod(id)) if c.state == "paused"]:
            container.state, pending = "running", container.pending
            container.pending = []
            if container.left_s < math.inf and container.program is not None:
                loop = asyncio.get_running_loop()
                container.end = loop.call_later(container.left_s, self.exit, container.id, container.program.exit_code)
            self._tell("unpause", container)
            for name in pending:
                self.kill_container(container.id, name)

    def update_container(self, id: str, resources: Mapping[str, Any]) -> None:
        container = self.container(id)
        if container.state != "running":
            refuse(ErrorKind.INTERNAL, f"container {id} is not running: OCI runtime error")
        for section, values in resources.items():
            container.resources[section] = {**container.resources.get(section, {}), **values}

    def begin_exec(self, id: str, command: Sequence[str]) -> tuple[FakeContainer, Program]:
        """Begin that command in that container; the result is what it will do."""
        container, program = self.container(id), self._program(command)
        if container.state != "running":
            refuse(ErrorKind.WRONG_STATE, "can only create exec sessions on running containers")
        if program is None:
            refuse(ErrorKind.COMMAND, f"executable file `{command[0]}` not found in $PATH")
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
            refuse(ErrorKind.INTERNAL, "an infra container cannot be removed without removing the pod")
        self._remove(container)

    def cut_remove_container(self, id: str) -> None:
        """Podman is killed between removing the container's layer and forgetting the container."""
        self.exit(id)
        self.container(id).state = "removing"
        self.without_layer.add(id)

    def inspected(self, id: str) -> InspectedContainer:
        container = self.container(id)
        if container.id in self.unreadable:
            refuse(ErrorKind.INTERNAL, f"inspecting container {id}: input/output error")
        if container.id in self.without_layer:
            refuse(ErrorKind.INTERNAL, f'getting container from store "{id}": container not known')
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

    def has_monitor(self, process: ContainerProcess) -> bool:
        container = self.containers.get(process.container_id)
        return container is not None and container.state in RUNNING and container.monitored

    def is_exiting(self, shown: InspectedContainer) -> bool:
        container = self.containers.get(shown.id)
        return container is None or container.pid != shown.pid or container.is_dead or container.is_exiting

    def recorded_end(self, process: ContainerProcess) -> RecordedEnd | None:
        container = self.containers.get(process.container_id)
        if container is None or container.state != "exited" or _ticks(container) != process.start_ticks:
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
            refuse(ErrorKind.PULL, f"reading manifest of {reference}: unauthorized: authentication required")
        registry = reference.partition("/")[0]
        if self.registry_is_away or registry.endswith(":1"):  # a port on which nobody listens
            refused = f'Get "https://{registry}/v2/": dial tcp {registry}: connect: connection refused'
            refuse(ErrorKind.PULL, f"initializing source docker://{reference}: pinging container registry {refused}")
        if reference not in self.registry:
            refuse(ErrorKind.PULL, f"reading manifest of {reference}: manifest unknown")
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
        container.monitored, container.is_dead, container.is_exiting = True, False, False
        container.started_at, container.has_end = self.clock.now().wall, False
        container.exit_code, container.oom_killed = 0, False
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
            refuse(ErrorKind.INVALID, f"names must match {NAME.pattern}: invalid argument")
        # Podman's BoltDB has one set of names, its SQLite two: the stricter one.
        taken = {pod.name for pod in self.pods.values()} | {c.name for c in self.containers.values()} | self.layers
        if name in taken:
            refuse(ErrorKind.NAME_IN_USE, f"name {name} is in use")

    def _new_id(self) -> str:
        self._ids += 1
        return hashlib.sha256(str(self._ids).encode()).hexdigest()

    def _tell(self, action: str, container: FakeContainer) -> None:
        event = RuntimeEvent(
            action=action, container_id=container.id, labels=dict(container.labels), time=self.clock.now().wall
        )
        for listener in () if self.mute else self.listeners:
            listener.put_nowait(event)


def start_ticks(container: FakeContainer) -> int:
    """0 of one that does not run."""
    return _ticks(container) if container.pid else 0


def _ticks(container: FakeContainer) -> int:
    return int(container.started_at * TICKS_PER_S)


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
        start_ticks=start_ticks(container),
    )


def _image(reference: str) -> ImageInfo:
    digest = hashlib.sha256(reference.encode()).hexdigest()
    digests = (f"{reference}@sha256:{digest}",)
    return ImageInfo(id=digest, digests=digests, digest=f"sha256:{digest}", user="", stop_signal="")


def refuse(kind: ErrorKind, message: str) -> NoReturn:
    raise RuntimeCallError(kind, "fake", message)
