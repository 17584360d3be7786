"""The Runtime protocol: calls that Rootlet makes of a container runtime, their values and kinds of error.

`workers.podman.PodmanRuntime` calls Podman, `tests.fakes.runtime.FakeRuntime` is in memory; one contract suite holds
both to the same behaviour. Every verb has a deadline of its own; after a timeout the effect is *unknown*.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypedDict

import msgspec

from ipc.host.text.json_types import Json
from ipc.host.text.userinfo import without_userinfo
from ipc.k8s.api.v1.status import LinuxContainerUser
from ipc.k8s.network.ports import PortMapping
from workers.kubecontainer.image_service import ImageInfo, ImageService
from workers.kubecontainer.slices import CgroupReading, Slices
from workers.userns.id_ranges import IdRanges

MAX_EXEC_OUTPUT_BYTES: Final = 10 * 1024
"""Most of a command's output that is kept, in bytes: as much as of a probe's (pkg/probe/exec, maxReadLength)."""

EXEC: Final = "exec"
"""Name of `Runtime.exec_container` in a `RuntimeCallError`."""

SpecDict = Json
"""A libpod SpecGenerator or PodSpecGenerator as JSON-ready data."""


class OciMount(TypedDict):
    """A mount of the OCI runtime specification: an entry of a SpecGenerator's ``mounts``."""

    type: str
    source: str
    destination: str
    options: list[str]


class ErrorKind(enum.StrEnum):
    """Kinds of error that callers distinguish; the message is for people."""

    NOT_FOUND = "NotFound"
    """No such pod, container or image."""
    NAME_IN_USE = "NameInUse"
    """By a pod or container, or by what an interrupted create has left of one: then nothing is found under it."""
    LEFTOVER = "Leftover"
    """The OCI runtime has got further with a container than Podman knows, which was interrupted: it cannot start."""
    IMAGE_UNKNOWN = "ImageUnknown"
    WRONG_STATE = "WrongState"
    """E.g. killing what does not run, removing what another call is removing."""
    COMMAND = "Command"
    """The OCI runtime could not run the command (not found, not executable), a container's own or one beside it."""
    INVALID = "Invalid"
    """Podman refuses the spec."""
    PULL = "Pull"
    TIMEOUT = "Timeout"
    """The deadline passed: whether it happened is unknown."""
    UNAVAILABLE = "Unavailable"
    """No service answers on the socket."""
    INTERNAL = "Internal"


class RuntimeCallError(Exception):
    """A verb failed. The message contains no user and no password of a URL."""

    def __init__(self, kind: ErrorKind, call: str, message: str) -> None:
        self.kind = kind
        self.call = call
        self.message = without_userinfo(message)
        super().__init__(f"{call}: {self.message}")


def unexpected(error: Exception, call: str) -> RuntimeCallError:
    """An unexpected exception of a call, as its failure, without the exception's message, which is not trusted."""
    return RuntimeCallError(ErrorKind.INTERNAL, call, f"unexpected {type(error).__name__}")


class ListedPod(msgspec.Struct, frozen=True, kw_only=True):
    """One Podman pod of ours, from the list."""

    id: str
    name: str
    infra_id: str
    labels: dict[str, str]
    created_at: float
    containers: tuple[tuple[str, str], ...] = ()
    """(container id, state) of every member, whosever it is, the infra container included."""


class ListedContainer(msgspec.Struct, frozen=True, kw_only=True):
    """One container of ours (infra containers too), from the list: cheap, whole seconds."""

    id: str
    name: str
    pod_id: str
    pod_name: str = ""
    is_infra: bool
    state: str
    pid: int
    has_end: bool = True
    """Whether the end that an exited container shows is that of its newest run."""
    exit_code: int
    created_at: float
    started_at: float
    exited_at: float
    image: str
    image_id: str
    labels: dict[str, str]


class ContainerProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The first process of a container, as an observation has shown it."""

    container_id: str
    pid: int = 0
    """0 when it is not known, here and below."""
    start_ticks: int = 0
    """When it was started, in clock ticks since boot."""
    monitor_pid: int = 0


class InspectedContainer(msgspec.Struct, frozen=True, kw_only=True):
    """The expensive, exact view of one container. Wall times in epoch seconds, 0.0 is never."""

    id: str
    name: str
    pod_id: str
    is_infra: bool
    state: str
    pid: int
    conmon_pid: int
    exit_code: int
    oom_killed: bool
    error: str
    created_at: float
    started_at: float
    finished_at: float
    image: str
    image_id: str
    labels: dict[str, str]
    ips: tuple[str, ...]
    """Addresses of an infra container's network, but for the host's; as Podman shows them, else the kernel."""
    log_path: str
    stop_signal: str = ""
    """Stop signal by name, its own or its image's, such as SIGTERM. Empty when Podman shows none."""
    image_digest: str = ""
    """Digest of the image's manifest, ``sha256:...``."""
    resolv_conf: str = ""
    """Path on the host of the resolv.conf that Podman has written for its network."""
    hostname_file: str = ""
    """Path on the host of what it sees as /etc/hostname; empty before its first start."""
    start_ticks: int = 0
    """When its process was started, in clock ticks since boot; 0 when it had ended by the time of the inspect."""
    config_path: str = ""
    """The container's config.json for the OCI runtime; empty before its first start."""
    user: LinuxContainerUser | None = None
    """As whom its first process was begun, when that can be read."""
    layer: str = ""
    """The directory of what it has written into its root, when the storage driver has one."""

    @property
    def process(self) -> ContainerProcess:
        """First process of the container, while that runs."""
        return ContainerProcess(
            container_id=self.id, pid=self.pid, start_ticks=self.start_ticks, monitor_pid=self.conmon_pid
        )


class RecordedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a container's process ended, as its monitor has noted it: what Podman will say, before it says so."""

    exit_code: int
    finished_at: float
    """Epoch seconds."""
    oom_killed: bool = False


class InspectedPod(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    infra_id: str
    labels: dict[str, str]
    created_at: float
    containers: tuple[tuple[str, str], ...]
    """(container id, state), the infra container included."""


class VolumeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One of Podman's named volumes."""

    name: str
    mount_point: str
    """Where its files lie on the host, as Podman's mount namespace has it."""
    driver: str = "local"
    options: dict[str, str] = {}
    labels: dict[str, str] = {}


class ExecResult(msgspec.Struct, frozen=True, kw_only=True):
    """A command that has run in a container and ended."""

    exit_code: int
    output: bytes = b""
    """The head of what it wrote to both of its streams, in the order in which that came."""
    limited: bool = False
    """The command wrote more than that."""


class Leftovers(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `end_leftovers`."""

    ended: tuple[str, ...] = ()
    """Names of containers that Podman did not know any more."""
    unsettled: bool = False
    """A container is being made or started, or that was interrupted: what becomes of it shows later."""


class RuntimeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A hint that something happened to a container or pod; may be lost, late or repeated."""

    action: str
    container_id: str
    labels: dict[str, str]
    time: float = 0.0
    """Epoch seconds at which Podman wrote it down."""


class NetworkPrograms(msgspec.Struct, frozen=True, kw_only=True):
    """Programs that Podman has found, and the one that it takes (GET info)."""

    default: str = ""
    """Empty: it does not say, as before version 5."""
    found: frozenset[str] = frozenset()


class CallCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of calls of one runtime client."""

    calls: int = 0
    errors: int = 0
    """Calls that failed otherwise than with NOT_FOUND, which is an answer."""


class Runtime(ImageService, Protocol):
    """About fifteen verbs. All raise `RuntimeCallError`; removing or killing what is gone is not an error."""

    async def version(self) -> str:
        """GET _ping: the libpod API version; proves that the service answers."""

    async def id_ranges(self) -> IdRanges:
        """GET info: the ids of the user namespace that containers run in.

        Podman is asked once, because it takes 0.4 s over it; for other ids it has to be started anew itself.
        """

    async def network_programs(self) -> NetworkPrograms:
        """GET info: programs that make the network of a rootless pod. As slow as `id_ranges`, and asked each time."""

    async def list_pods(self, uid: str = "") -> tuple[ListedPod, ...]:
        """GET pods/json, ours only; with a uid only those that carry it. Podman goes through all pods for
        that, so it is no call for the way of a start, a stop or a restart."""

    async def list_empty_pods(self) -> tuple[ListedPod, ...]:
        """GET pods/json, ours only, those without a single container: what an interrupted create or remove leaves.

        Every other pod shows in `list_containers` through its members, which costs half of a full `list_pods`.
        """

    async def list_containers(self, uid: str = "") -> tuple[ListedContainer, ...]:
        """GET containers/json?all=true, ours only; with a uid only those that carry it."""

    async def inspect_pod(self, id: str) -> InspectedPod:
        """GET pods/{id}/json. Raises NOT_FOUND."""

    async def inspect_container(self, id: str) -> InspectedContainer:
        """GET containers/{id}/json. Raises NOT_FOUND."""

    async def create_pod(self, spec: SpecDict) -> str:
        """POST pods/create: the id. Raises NAME_IN_USE."""

    def with_filter(self, spec: SpecDict, image: ImageInfo) -> SpecDict:
        """A container's body for `create_container`, with what its OCI runtime need not compile again, where that is
        known. ``image`` is for certain the image of its name."""

    async def create_container(self, spec: SpecDict) -> str:
        """POST containers/create: the id. Raises NAME_IN_USE, IMAGE_UNKNOWN, INVALID."""

    async def start_container(self, id: str) -> None:
        """POST containers/{id}/start. Already running is success. Raises NOT_FOUND, COMMAND, LEFTOVER."""

    async def kill_container(self, id: str, signal: str) -> None:
        """POST containers/{id}/kill?signal=. Not running or gone is success."""

    async def update_container(self, id: str, resources: Json) -> None:
        """POST containers/{id}/update: other limits and weights for a container that runs, as those of a SpecGenerator.
        Raises NOT_FOUND, WRONG_STATE (it does not run), INVALID, INTERNAL (the kernel refuses them)."""

    async def pause_pod(self, id: str) -> None:
        """POST pods/{id}/pause: the processes of its containers get no CPU. What does not run, or is paused, stays as
        it is. Raises NOT_FOUND, INTERNAL (a container has no cgroup to freeze; others may be paused then)."""

    async def resume_pod(self, id: str) -> None:
        """POST pods/{id}/unpause. What is not paused stays as it is. Raises NOT_FOUND, INTERNAL."""

    def read_cgroup(self, process: ContainerProcess) -> CgroupReading:
        """The container's own cgroup, without asking Podman. Reads a few small files."""

    def cgroup_of(self, process: ContainerProcess) -> str:
        """Directory of the container's own cgroup; empty without one, and when the process has ended."""

    def oom_kills(self, directory: str) -> int | None:
        """Processes that the kernel has killed for want of memory in that cgroup and below; None without the memory
        controller, or without the cgroup."""

    @property
    def slices(self) -> Slices:
        """Slices of pods, where the node gives them any."""

    def signal_process(self, process: ContainerProcess, signal: str) -> bool:
        """Send a signal to that process by pidfd, without Podman. False when that cannot be done, and Podman has to be
        asked: the process is not known, has ended, or may not be signalled."""

    async def exec_container(self, id: str, command: Sequence[str], timeout_s: float) -> ExecResult:
        """Run a command beside the container's own: as its user, in its directory, with its environment and limits.

        By the OCI runtime itself where that can be (`workers.exec.runner`), else POST containers/{id}/exec,
        exec/{id}/start; GET exec/{id}/json. It is over when the command has ended, whatever that leaves running. After
        ``timeout_s`` seconds the command is killed with all that it has started; what a session of Podman's has started
        and has called setsid lives on, at the longest as long as the container. A caller that is cancelled leaves the
        command running, if directly until its time is over. Of the output `MAX_EXEC_OUTPUT_BYTES` are kept. Raises
        NOT_FOUND, WRONG_STATE (it does not run), COMMAND, TIMEOUT, UNAVAILABLE, INTERNAL.
        """

    async def wait_exit(self, process: ContainerProcess, timeout_s: float) -> bool:
        """Wait until that process has ended (by pidfd); False when the time is over. Podman is asked for one of which
        the start is not known."""

    def host_port_problem(self, ports: Iterable[PortMapping], *, both_families: bool) -> str:
        """Why one of those ports of the host cannot be had now, as Go says it; empty when all can. Of Podman's
        forwarders, pasta on a bridge does not say it. ``both_families``: of a port without an address, IPv6 counts,
        too. Does not ask Podman, and keeps no port."""

    def look_at_infra(
        self, name: str, pod_id: str, pid_file: Path, labels: Mapping[str, str], *, host_network: bool
    ) -> InspectedContainer | None:
        """An infra container that was just started, without asking Podman; ``pid_file`` is its monitor's, the rest what
        it was made with. None when only an inspect tells. Reads a few small files. Without image and start."""

    def look_at_container(self, id: str, spec: SpecDict, image: ImageInfo) -> InspectedContainer | None:
        """The container of that id, made with that spec of that image and just started, without asking Podman. None
        when only an inspect tells. Reads a few small files."""

    def learn_from(self, process: ContainerProcess) -> None:
        """Learn from the monitor of a container that runs, if it is not known yet, where the files are that
        `look_at_container` and `image_stamp` read. Reads one file of /proc then."""

    def open_process(self, container: InspectedContainer) -> int | None:
        """A file descriptor, the caller's, that becomes readable when that container's process ends.

        None when it has ended, even if its pid was reused. Raises OSError, e.g. EMFILE.
        """

    def has_monitor(self, process: ContainerProcess) -> bool:
        """Whether the container's monitor lives: without it Podman never notices the container's end."""

    def is_exiting(self, container: InspectedContainer) -> bool:
        """Whether that container's process is being taken down by the kernel, or has been. Reads one file."""

    def will_record(self, process: ContainerProcess) -> bool:
        """Whether the monitor of that run lives and records its end where `recorded_end` can read it."""

    def recorded_end(self, process: ContainerProcess) -> RecordedEnd | None:
        """How the process of that run has ended, without asking Podman; None while its monitor has not recorded it, and
        after Podman's clean-up."""

    def dismiss_monitor(self, process: ContainerProcess) -> None:
        """End the monitor of a container that is about to be removed, if it has recorded the container's end: it would
        only have Podman clean up after it, which the removal does."""

    async def remove_container(self, id: str) -> None:
        """DELETE containers/{id}?force=true&volumes=true&timeout=0. Gone is success.

        By its name it also removes what an interrupted create has left: a layer that belongs to no container.
        """

    async def remove_pod(self, id: str) -> None:
        """DELETE pods/{id}?force=true&timeout=0 with everything in it. Gone is success."""

    async def end_leftovers(self, pod_logs_dir: str) -> Leftovers:
        """End the processes of containers that Podman does not know any more and that were ours, and commands in
        containers whose time is over and whose agent has died.

        Ours is what logs below ``pod_logs_dir``, or is an infra container that has its monitor's pid file there.
        """

    async def inspect_volume(self, name: str) -> VolumeInfo | None:
        """GET volumes/{name}/json; None when absent."""

    async def create_volume(self, name: str, labels: Mapping[str, str], options: Mapping[str, str]) -> VolumeInfo:
        """POST volumes/create, with the local driver. Raises NAME_IN_USE."""

    async def remove_volume(self, name: str) -> None:
        """DELETE volumes/{name}. Gone is success. Raises WRONG_STATE while a container has it."""

    def events(self) -> AsyncIterator[RuntimeEvent]:
        """GET events?stream=true, ours only, from now on. Ends or raises when the stream breaks."""

    async def close(self) -> None:
        """Give up connections. Calls in flight end by their own deadlines."""

    def counts(self) -> CallCounts:
        """Numbers of calls, for the board."""
