"""Boot context of a forked child: its slot and role, its link, the board and the settings that workers need."""

from __future__ import annotations

import enum
import socket
from collections.abc import Callable

import msgspec

from ipc.host.log.setup import LogTarget
from ipc.k8s.eviction.thresholds import Threshold
from ipc.k8s.kubecontainer.container_gc import GcPolicy
from ipc.k8s.kubecontainer.label_key import LabelKey
from ipc.k8s.kubecontainer.log_rotate_policy import LogRotatePolicy
from ipc.k8s.network.network_settings import NetworkSettings
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.shm.board import Board
from ipc.link.shm.mutation_slots import MutationSlots
from ipc.link.wire.cluster_settings import ClusterSettings
from ipc.link.wire.credential_provider import CredentialProvider
from ipc.link.wire.server_settings import ServerSettings


class Role(enum.StrEnum):
    """Role of a child of the zygote. ``EXEC`` children become another program (the Podman service)."""

    POD_WORKER = "pod-worker"
    NODE_WORKER = "node-worker"
    API_SERVER = "api-server"
    DIALER = "dialer"
    EXEC = "exec"


class TracingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """component-base/tracing/api/v1/types.go, TracingConfiguration, with OTLP over HTTP."""

    endpoint: str = ""
    """URL of the collector's traces."""
    sampling_rate_per_million: int = 0
    """Traces of a million that are exported; 0 for no tracing."""


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the configuration that children act on. Durations in seconds, sizes in bytes."""

    instance: str
    label_key: LabelKey
    """Key that signs the labels of this instance's pods and containers."""
    node_name: str
    podman_socket: str
    """Path of the libpod API socket."""
    dialer_socket: str = ""
    """Path of the dialer's socket, which hands out sockets in pods' networks."""
    podman_path: str = "podman"
    """Podman's command line, for operations that its API lacks."""
    podman_options: tuple[str, ...] = ()
    """Global options of that command line, before each command."""
    podman_forgets: bool = False
    """A reboot takes all that Podman knows of containers."""
    podman_environment: dict[str, str] = {}
    """Variables with which the service was started, if it is the agent's own: for others that do the same."""
    runtimes: dict[str, str] = {}
    """Paths of OCI runtimes by the handlers of RuntimeClasses."""
    pod_logs_dir: str
    pods_dir: str = ""
    """Where what belongs to a pod lies beside its logs: ``<uid>/containers/<name>/<attempt>.termination-log``."""
    pulled_images_dir: str = ""
    """Pull records: a file for each image that was pulled with pods' logins (`workers.images.pull_records`)."""
    credential_providers: tuple[CredentialProvider, ...] = ()
    """Programs that give logins for images, in the order in which their logins count."""
    memory_dir: str = ""
    """Directory on a file system that is memory, for what must not reach a disk."""
    inspect_file: str = ""
    """Where inspects are kept for the next node worker (`workers.containers.inspect_file`); empty: nowhere."""
    image_records_file: str = ""
    """When each image was seen and used, and which were pulled (`workers.images.image_records`); empty: nowhere."""
    node: NodeResources = NodeResources()
    pods_memory: int = 0
    """Bytes that all pods may have together where no cgroup holds them to it; 0: they are not counted."""
    network: NetworkSettings = NetworkSettings()
    seccomp_default: bool = True
    """Whether a container that chooses no seccomp profile runs under Podman's."""
    seccomp_dir: str = ""
    """Where the profiles of type Localhost lie."""
    seccomp_profile: str = ""
    """Podman's default seccomp profile, where the service is ours; empty leaves it to Podman to find it."""
    limits_processes: bool = False
    """Whether containers leave some of the user's processes to the agent, which has started their service itself."""
    runtime_request_timeout_s: float = 120.0
    image_pull_timeout_s: float = 1800.0
    keep_until_images_pulled: bool = True
    """Containers that an edited manifest replaces go on until the images of their successors are there."""
    max_mutations: int = 4
    """Mutating Podman calls in flight of the whole node."""
    max_reads: int = 4
    """Reading Podman calls in flight of this one worker."""
    relist_period_s: float = 10.0
    quiet_relist_period_s: float = 300.0
    """While relists find nothing that was not known already."""
    heartbeat_period_s: float = 0.75
    idle_timeout_s: float = 120.0
    """Children that run on demand leave after so long without a request."""
    max_container_restart_period_s: float = 300.0
    max_pods: int = 110
    """Most pods that this node takes."""
    gc: GcPolicy = GcPolicy()
    """Policy for dead containers; ``max_containers`` is the master's business."""
    thresholds: tuple[Threshold, ...] = ()
    """Thresholds of eviction, those of containerfs not among them. Without any nothing is observed for it."""
    log_rotation: LogRotatePolicy = LogRotatePolicy()
    log: LogTarget = LogTarget()
    tracing: TracingSettings = TracingSettings()
    server: ServerSettings = ServerSettings()
    """Settings of the API server alone."""
    cluster: ClusterSettings | None = None
    """The cluster that this host is a node of; None: there is none."""


class ChildContext(msgspec.Struct, frozen=True, kw_only=True):
    """Handed by the zygote to the entry point, in the child, right after fork."""

    slot: int
    incarnation: int
    role: Role
    settings: WorkerSettings
    link: socket.socket
    """Stream socket to the master; lives exactly as long as this incarnation."""
    listen: socket.socket | None
    """Socket that it serves, already listening: the API server's admin socket, or the dialer's."""
    ports: tuple[socket.socket, ...] = ()
    """Likewise the API server's TCP ports, in the order of ``settings.server.ports``."""
    board: Board
    mutation_slots: MutationSlots | None = None
    """Mutation slots of the node; None when this process shares them with no other."""
    crash_fd: int = 2
    """Where it writes its stack when it is aborted or crashes."""


WorkerMain = Callable[[ChildContext], int]
"""Main function of a child; the result is its exit code."""

LoadWorkerMain = Callable[[], WorkerMain]
"""Imports that function and all that it needs."""

EXIT_BOOT_ERROR = 3
"""Exit code of a child that could not boot: the agent stops with its reason instead of restarting it (as gunicorn)."""
EXIT_RESPAWN = 4
"""Exit code of a child that asks to be spawned again, because only a new process can serve the request: no death."""
EXIT_IDLE = 5
"""Exit code of a child that has left after a long time without a request: no death, if it was declared as one that
runs on demand."""
