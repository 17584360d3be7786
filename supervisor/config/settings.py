"""The agent's configuration as values: what can be set, its default, and what it may be.

KubeletConfiguration's names where the meaning is the same; ``configs/rootlet.yaml`` shows every setting. Attributes
carry their unit (``sync_frequency_s``), the file carries it in the value (``syncFrequency: 1m``). `config_file` reads
such a file, `resolved_settings` says what it means on a host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from ipc.host.log.setup import LogTarget
from ipc.host.log.verbosity import MAX_AREAS, Verbosity, area_problem, level_named
from ipc.host.text.durations import format_duration, parse_duration
from ipc.k8s.api.default_resources import is_extended
from ipc.k8s.api.quantity import QuantityError, parse_amount
from ipc.k8s.api.validation.names import DNS_LABEL, LABEL_VALUE, qualified_name_problem
from ipc.k8s.eviction.thresholds import DEFAULT_HARD, EvictionSettings, Threshold, parse_thresholds
from ipc.k8s.kubecontainer.container_gc import GcPolicy
from ipc.k8s.kubecontainer.image_gc import ImageGcPolicy, ImageGcScope
from ipc.k8s.kubecontainer.log_rotate_policy import NO_ROTATION, LogRotatePolicy
from ipc.k8s.network.network_settings import HOSTS_RESOLV_CONF
from ipc.k8s.nodestatus.node_ip import node_ip_problem, socket_address_problem
from supervisor.config.cdi_specs import CDI_NAME
from supervisor.config.sysctl_allowlist import pattern_problem

API_VERSION: Final = "rootlet.dev/v1alpha1"
KIND: Final = "RootletConfiguration"
MAX_EVENTS: Final = 10_000
"""Largest history: an API server that was just born is told all of it at once, and its link holds 32 MiB."""
RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")
"""Resources of kubeReserved and systemReserved (cmd/kubelet/app/server.go, parseResourceList)."""
ENFORCEABLE: Final = ("pods", "none")
MAX_DEVICES: Final = 256
"""Most devices of one extended resource."""
MAX_CDI_DIRS: Final = 16
_DEVICE_NODE: Final = re.compile(r"/dev(/(?!\.\.?(/|$))[^/:,\0]+)+")
MAX_CLUSTER_DNS: Final = 3
"""As many name servers as a resolv.conf holds (pkg/apis/core/validation/validation.go, MaxDNSNameservers)."""
MIN_LOG_BYTES: Final = 4 << 10
MAX_LOG_BYTES: Final = 1 << 40
MAX_SHUTDOWN_CLASSES: Final = 64
"""Priorities that the time of a node shutdown is divided among."""
MAX_SHUTDOWN_GRACE_S: Final = 86_400
MAX_TAINTS: Final = 64
"""Most taints that a node registers with."""
MAX_PINNED: Final = 1_000
"""Most patterns of pinned images."""
PODS_DIR: Final = "pods"
"""Below ``stateDir``: one directory per pod UID, as below the kubelet's root directory."""


class SettingsError(Exception):
    """A configuration that cannot be used; names the file and the field."""

    def __init__(self, file: str, field_path: str, message: str) -> None:
        super().__init__(": ".join(part for part in (file, field_path, message) if part))
        self.file = file
        self.field_path = field_path
        self.message = message
        self.further: tuple[SettingsError, ...] = ()
        """Other faults of the same file."""

    @classmethod
    def of(cls, errors: Iterable[SettingsError]) -> SettingsError:
        """The first one, with the others as further ones. Raises ValueError for none."""
        first, *further = errors
        first.further = tuple(further)
        return first

    def __str__(self) -> str:
        return "\n".join((super().__str__(), *map(str, self.further)))


class Seconds(float):
    """A duration; in the file as the kubelet writes it: ``1m30s``."""

    def __str__(self) -> str:
        return format_duration(self)


class Bytes(int):
    """A size; in the file a number or a quantity: ``1Mi``."""


class Range(msgspec.Struct, frozen=True):
    """The smallest and the largest value that a number may have."""

    low: float
    high: float


class Pattern(msgspec.Struct, frozen=True):
    """Form that a text must have, and its description for errors."""

    regex: str
    says: str


class IpAddress(msgspec.Struct, frozen=True):
    """A text that is an IP address."""


class IpAddresses(msgspec.Struct, frozen=True):
    """At most so many texts, each of them an IP address."""

    max_number: int


class NodeLabels(msgspec.Struct, frozen=True):
    """A mapping of label keys to label values."""


class Check(msgspec.Struct, frozen=True):
    """Check of the value."""

    problem: Callable[[Any], str | None]


class Each(msgspec.Struct, frozen=True):
    """Check of each item of a list."""

    problem: Callable[[Any], str | None]
    max_number: int = 10_000


def seconds(text: str) -> Seconds:
    """Read a duration of the file, such as ``1m30s``. Raises ValueError."""
    return Seconds(parse_duration(text))


def _between(low: str, high: str) -> Range:
    return Range(seconds(low), seconds(high))


_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DNS_LABEL: Final = Pattern(_LABEL, "must be a DNS label: at most 63 lower case letters, digits and inner dashes")
DNS_NAME: Final = Pattern(rf"(?=.{{0,253}}$)({_LABEL}(\.{_LABEL})*)?", "must be a DNS name of lower case letters")
_PODMAN_NAME: Final = Pattern(r"([a-zA-Z0-9][a-zA-Z0-9_.-]*)?", "must be the name of a Podman network")
_FILE_OR_NONE: Final = Pattern(r"(/.*)?", "must be an absolute path, or empty")
_ENDPOINT: Final = Pattern(r"https?://[!-?A-~]+", "must be an http:// or https:// URL without a user")
_ACRONYMS: Final = {
    **{name.lower(): name for name in ("API", "CA", "CFS", "DNS", "GC", "ID", "IP", "QOS", "QPS", "TLS", "URL")},
}
_PORT: Final = Range(0, 65535)
_URL_OR_NONE: Final = Pattern(r"(https?://[!-~]+)?", "must be an http or https URL, or empty")


def yaml_name(attribute: str) -> str:
    """``sync_frequency_s`` is ``syncFrequency`` in the file."""
    head, *tail = attribute.removesuffix("_s").split("_")
    return head + "".join(_ACRONYMS.get(word, word.capitalize()) for word in tail)


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=yaml_name):
    """A mapping of the file."""


class PodmanSettings(_Section, frozen=True, kw_only=True):
    service: Literal["auto", "own", "user"] = "auto"
    path: str = "podman"
    keyring: bool = False
    cleanup_delay_s: Annotated[Seconds, _between("0s", "10s")] = seconds("1s")
    store: Literal["default", "transient"] = "default"
    port_forwarder: Literal["", "rootlessport", "pasta"] = ""
    max_concurrent_mutations: Annotated[int, Range(0, 256)] = 0

    @property
    def is_transient(self) -> bool:
        """Whether Podman's records of containers lie in memory, which a reboot empties."""
        return self.store == "transient"

    @property
    def of_own_service(self) -> dict[str, str]:
        """Settings that only a service of the agent's own can have, with their values: by name, where they are set."""
        stated = {"podman.store": self.store if self.is_transient else "", "podman.portForwarder": self.port_forwarder}
        return {name: value for name, value in stated.items() if value}

    @property
    def options(self) -> tuple[str, ...]:
        """Podman's global options, before any command: without them it looks at another store."""
        return ("--transient-store",) if self.is_transient else ()

    @property
    def command(self) -> tuple[str, ...]:
        """Program and global options of every command of Podman's."""
        return (self.path, *self.options)


class WorkersSettings(_Section, frozen=True, kw_only=True):
    count: Annotated[int, Range(0, 64)] = 0
    pods_per_worker: Annotated[int, Range(0, 10_000)] = 400
    heartbeat_timeout_s: Annotated[Seconds, _between("2s", "10m")] = seconds("3s")
    idle_timeout_s: Annotated[Seconds, _between("100ms", "720h")] = seconds("2m")
    max_deaths: Annotated[int, Range(1, 1000)] = 10
    death_period_s: Annotated[Seconds, _between("1s", "1h")] = seconds("1m")
    stop_timeout_s: Annotated[Seconds, _between("0s", "10m")] = seconds("10s")


class CrashLoopBackOffSettings(_Section, frozen=True, kw_only=True):
    max_container_restart_period_s: Annotated[Seconds, _between("1s", "300s")] = seconds("300s")


class ContainerGarbageCollectionSettings(_Section, frozen=True, kw_only=True):
    max_per_pod_container: Annotated[int, Range(-1, 1000)] = 1
    max_containers: Annotated[int, Range(-1, 100_000)] = -1
    min_age_s: Annotated[Seconds, _between("0s", "720h")] = seconds("0s")

    @property
    def policy(self) -> GcPolicy:
        """Policy that garbage collection decides by."""
        return GcPolicy(
            max_per_pod_container=self.max_per_pod_container,
            max_containers=self.max_containers,
            min_age_s=float(self.min_age_s),
        )


class PodNetworkSettings(_Section, frozen=True, kw_only=True):
    mode: Literal["", "slirp4netns", "pasta", "bridge"] = ""
    bridge: Annotated[str, _PODMAN_NAME] = ""


class MemorySwapSettings(_Section, frozen=True, kw_only=True):
    swap_behavior: Literal["", "NoSwap", "LimitedSwap"] = ""


class EventHistorySettings(_Section, frozen=True, kw_only=True):
    max_events: Annotated[int, Range(1, MAX_EVENTS)] = 1000
    ttl_s: Annotated[Seconds, _between("1s", "720h")] = seconds("1h")


class VModuleItem(_Section, frozen=True, kw_only=True):
    """component-base/api/v1/types.go, VModuleItem."""

    file_pattern: str
    verbosity: int | str


def _level_problem(value: int | str) -> str:
    try:
        level_named(str(value))
    except ValueError as error:
        return str(error)
    return ""


def _vmodule_problem(item: VModuleItem) -> str:
    return area_problem(item.file_pattern) or _level_problem(item.verbosity)


class ShutdownGraceItem(_Section, frozen=True, kw_only=True):
    """ShutdownGracePeriodByPodPriority (k8s.io/kubelet/config/v1beta1/types.go)."""

    priority: int
    shutdown_grace_period_seconds: int


def _shutdown_grace_problem(item: ShutdownGraceItem) -> str:
    if not -(1 << 31) <= item.priority < 1 << 31:
        return "priority must be a number of 32 bits"
    is_long = not 0 <= item.shutdown_grace_period_seconds <= MAX_SHUTDOWN_GRACE_S
    return f"shutdownGracePeriodSeconds must be 0 to {MAX_SHUTDOWN_GRACE_S}" if is_long else ""


class LoggingSettings(_Section, frozen=True, kw_only=True):
    format: Literal["text", "json"] = "text"
    destination: Literal["auto", "stderr", "journal"] = "auto"
    verbosity: Annotated[int | str, Check(_level_problem)] = "info"
    vmodule: Annotated[tuple[VModuleItem, ...], Each(_vmodule_problem, MAX_AREAS)] = ()

    @property
    def target(self) -> LogTarget:
        """Form and destination of lines."""
        return LogTarget(self.format, self.destination)

    @property
    def levels(self) -> Verbosity:
        """Level of all lines and of single areas; of an area that is named twice the first one, as with klog."""
        areas = {item.file_pattern: level_named(str(item.verbosity)) for item in reversed(self.vmodule)}
        return Verbosity(level_named(str(self.verbosity)), areas)


class TracingConfiguration(_Section, frozen=True, kw_only=True):
    endpoint: Annotated[str, _ENDPOINT] = "http://localhost:4318/v1/traces"
    sampling_rate_per_million: Annotated[int, Range(0, 1_000_000)] = 0


class X509Settings(_Section, frozen=True, kw_only=True):
    client_ca_file: Annotated[str, _FILE_OR_NONE] = ""


class AnonymousSettings(_Section, frozen=True, kw_only=True):
    enabled: bool = False


class WebhookSettings(_Section, frozen=True, kw_only=True):
    enabled: bool = False


class AuthenticationSettings(_Section, frozen=True, kw_only=True):
    x509: X509Settings = X509Settings()
    webhook: WebhookSettings = WebhookSettings()
    anonymous: AnonymousSettings = AnonymousSettings()
    token_file: Annotated[str, _FILE_OR_NONE] = ""


class AuthorizationSettings(_Section, frozen=True, kw_only=True):
    mode: Literal["AlwaysAllow", "Rules", "Webhook"] = "AlwaysAllow"
    rules: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def _log_size_problem(value: int) -> str:
    if value == NO_ROTATION or MIN_LOG_BYTES <= value <= MAX_LOG_BYTES:
        return ""
    return "must be -1, or between 4Ki and 1Ti"


class ServerSection(_Section, frozen=True, kw_only=True):
    address: Annotated[str, IpAddress()] = "0.0.0.0"
    port: Annotated[int, _PORT] = 0
    read_only_port: Annotated[int, _PORT] = 0
    healthz_port: Annotated[int, _PORT] = 0
    healthz_bind_address: Annotated[str, IpAddress()] = "127.0.0.1"
    tls_cert_file: Annotated[str, _FILE_OR_NONE] = ""
    tls_private_key_file: Annotated[str, _FILE_OR_NONE] = ""
    tls_min_version: Literal["", "VersionTLS12", "VersionTLS13"] = ""
    tls_cipher_suites: tuple[str, ...] = ()
    authentication: AuthenticationSettings = AuthenticationSettings()
    authorization: AuthorizationSettings = AuthorizationSettings()
    enable_debugging_handlers: bool = True
    streaming_connection_idle_timeout_s: Annotated[Seconds, _between("1s", "720h")] = seconds("4h")


class TaintItem(_Section, frozen=True, kw_only=True):
    """v1 Taint."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


def _taint_problem(taint: TaintItem) -> str:
    """validateTaint's rules (pkg/util/taints/taints.go)."""
    if problem := qualified_name_problem(taint.key):
        return f"{taint.key!r}: {problem}"
    problem = LABEL_VALUE.problem(taint.value) if taint.value else None
    return f"{taint.value!r}: {problem}" if problem else ""


class ClusterSection(_Section, frozen=True, kw_only=True):
    kubeconfig: str = ""
    bootstrap_kubeconfig: str = ""
    rotate_certificates: bool = True
    server_tls_bootstrap: bool = False
    register_node: bool = True
    register_with_taints: Annotated[tuple[TaintItem, ...], Each(_taint_problem, MAX_TAINTS)] = ()
    provider_id: str = ""
    node_ip: Annotated[str, Check(node_ip_problem)] = ""
    node_status_report_frequency_s: Annotated[Seconds, _between("1s", "1h")] = seconds("5m")
    node_lease_duration_seconds: Annotated[int, Range(4, 3600)] = 40
    kube_api_qps: Annotated[int, Range(1, 10_000)] = 50
    kube_api_burst: Annotated[int, Range(1, 10_000)] = 100
    event_record_qps: Annotated[int, Range(0, 10_000)] = 50
    event_burst: Annotated[int, Range(1, 10_000)] = 100
    network_scope: Literal["Node", "Cluster", "None"] = "Node"
    kubernetes_service: Annotated[str, Check(socket_address_problem)] = ""

    @property
    def is_configured(self) -> bool:
        """Whether there is a cluster."""
        return bool(self.kubeconfig or self.bootstrap_kubeconfig)


def _reservation_problem(reserved: dict[str, str]) -> str:
    """validateReservedMemory's and parseResourceList's words (cmd/kubelet/app/server.go)."""
    for name, text in reserved.items():
        if name not in RESERVABLE:
            return f"cannot reserve {name!r}; what can be reserved are {', '.join(RESERVABLE)}"
        try:
            amount = parse_amount(text)
        except QuantityError as error:
            return f"{name}: {error}"
        if amount.value < 0:
            return f"resource quantity for {name!r} cannot be negative: {text}"
    return ""


def _enforcement_problem(names: tuple[str, ...]) -> str:
    """ValidateKubeletConfiguration's rules (pkg/kubelet/apis/config/validation/validation.go), without the cgroups of
    the system, which are not this user's."""
    for name in names:
        if name not in ENFORCEABLE:
            return f"option {name!r} specified; valid options are 'pods' or 'none'"
    if "none" in names and len(names) > 1:
        return "'none' may not be specified when any other setting is specified"
    return ""


def _devices_problem(devices: dict[str, tuple[str, ...]]) -> str:
    stated: set[str] = set()
    for resource, names in devices.items():
        if problem := qualified_name_problem(resource):
            return f"{resource}: {problem}"
        if not is_extended(resource):
            return f"{resource}: must be the name of an extended resource, such as example.com/gpu"
        if len(names) > MAX_DEVICES:
            return f"{resource}: {len(names)} devices are more than {MAX_DEVICES}"
        for name in names:
            if not (_DEVICE_NODE.fullmatch(name) or CDI_NAME.fullmatch(name)):
                return f"{resource}: {name!r} is neither a path below /dev nor a CDI device such as example.com/gpu=0"
            if name in stated:
                return f"{resource}: {name} is stated twice"
            stated.add(name)
    return ""


def _runtimes_problem(runtimes: dict[str, str]) -> str:
    for handler, path in runtimes.items():
        if problem := DNS_LABEL.problem(handler):
            return f"{handler!r}: {problem}"
        if not path.startswith("/") or "\0" in path:
            return f"{handler}: must be the absolute path of a program"
    return ""


def _spec_dir_problem(directory: str) -> str:
    return "" if directory and "\0" not in directory else "must be a directory"


def _pin_problem(name: str) -> str | None:
    begin = name.removesuffix("*")
    return None if begin and "*" not in begin else "must be the complete name of an image, or its begin and *"


class Settings(_Section, frozen=True, kw_only=True):
    """All settings, with their defaults. ``configs/rootlet.yaml`` says what each is for."""

    api_version: str = API_VERSION
    kind: str = KIND
    instance_name: Annotated[str, _DNS_LABEL] = "rootlet"
    node_name: Annotated[str, DNS_NAME] = ""
    node_labels: Annotated[dict[str, str], NodeLabels()] = msgspec.field(default_factory=dict)
    static_pod_path: Path = Path("$XDG_CONFIG_HOME/rootlet/manifests")
    static_pod_url: Annotated[str, _URL_OR_NONE] = ""
    static_pod_url_header: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    http_check_frequency_s: Annotated[Seconds, _between("100ms", "24h")] = seconds("20s")
    sync_frequency_s: Annotated[Seconds, _between("1s", "24h")] = seconds("1m")
    file_check_frequency_s: Annotated[Seconds, _between("100ms", "1h")] = seconds("20s")
    max_pods: Annotated[int, Range(1, 10_000)] = 110
    max_manifest_bytes: Annotated[Bytes, Range(1 << 10, 16 << 20)] = Bytes(1 << 20)
    node_status_update_frequency_s: Annotated[Seconds, _between("100ms", "1h")] = seconds("10s")
    runtime_request_timeout_s: Annotated[Seconds, _between("1s", "1h")] = seconds("2m")
    seccomp_default: bool = True
    allowed_unsafe_sysctls: Annotated[tuple[str, ...], Each(pattern_problem)] = ()
    image_pull_timeout_s: Annotated[Seconds, _between("1s", "24h")] = seconds("30m")
    container_runtime_endpoint: str = ""
    podman: PodmanSettings = PodmanSettings()
    pod_network: PodNetworkSettings = PodNetworkSettings()
    cluster_dns: Annotated[tuple[str, ...], IpAddresses(MAX_CLUSTER_DNS)] = ()
    cluster_domain: Annotated[str, DNS_NAME] = ""
    resolv_conf: Annotated[str, _FILE_OR_NONE] = HOSTS_RESOLV_CONF
    pod_logs_dir: Path = Path("$XDG_STATE_HOME/rootlet/$instanceName/pod-logs")
    state_dir: Path = Path("$XDG_STATE_HOME/rootlet/$instanceName")
    memory_dir: Path = Path("$XDG_RUNTIME_DIR/rootlet/$instanceName")
    applied_secrets: Literal["Memory", "Encrypted"] = "Memory"
    admin_socket: Path = Path("$XDG_RUNTIME_DIR/rootlet/$instanceName.sock")
    workers: WorkersSettings = WorkersSettings()
    relist_period_s: Annotated[Seconds, _between("100ms", "10m")] = seconds("10s")
    quiet_relist_period_s: Annotated[Seconds, _between("100ms", "1h")] = seconds("5m")
    housekeeping_period_s: Annotated[Seconds, _between("100ms", "1m")] = seconds("2s")
    crash_loop_back_off: CrashLoopBackOffSettings = CrashLoopBackOffSettings()
    keep_until_images_pulled: bool = True
    serialize_image_pulls: bool = True
    max_parallel_image_pulls: Annotated[int, Range(0, 100)] = 0
    registry_pull_qps: Annotated[int, Range(0, 1000)] = 5
    registry_burst: Annotated[int, Range(1, 1000)] = 10
    image_gc_high_threshold_percent: Annotated[int, Range(0, 100)] = 85
    image_gc_low_threshold_percent: Annotated[int, Range(0, 100)] = 80
    image_minimum_gc_age_s: Annotated[Seconds, _between("0s", "720h")] = seconds("2m")
    image_maximum_gc_age_s: Annotated[Seconds, _between("0s", "87600h")] = seconds("0s")
    image_gc_scope: Literal["PulledImages", "AllImages"] = "PulledImages"
    image_credential_provider_config: str = ""
    image_credential_provider_bin_dir: str = ""
    pinned_images: Annotated[tuple[str, ...], Each(_pin_problem, MAX_PINNED)] = ()
    container_garbage_collection: ContainerGarbageCollectionSettings = ContainerGarbageCollectionSettings()
    container_log_max_size: Annotated[Bytes, Check(_log_size_problem)] = Bytes(10 << 20)
    container_log_max_files: Annotated[int, Range(2, 1000)] = 5
    container_log_max_workers: Annotated[int, Range(1, 16)] = 1
    container_log_monitor_interval_s: Annotated[Seconds, _between("3s", "1h")] = seconds("10s")
    kube_reserved: Annotated[dict[str, str], Check(_reservation_problem)] = msgspec.field(default_factory=dict)
    system_reserved: Annotated[dict[str, str], Check(_reservation_problem)] = msgspec.field(default_factory=dict)
    runtimes: Annotated[dict[str, str], Check(_runtimes_problem)] = msgspec.field(default_factory=dict)
    devices: Annotated[dict[str, tuple[str, ...]], Check(_devices_problem)] = msgspec.field(default_factory=dict)
    cdi_spec_dirs: Annotated[tuple[str, ...], Each(_spec_dir_problem, MAX_CDI_DIRS)] = ("/etc/cdi", "/var/run/cdi")
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period_s: Annotated[Seconds, _between("1ms", "1s")] = seconds("100ms")
    cgroups_per_qos: bool = True
    enforce_node_allocatable: Annotated[tuple[str, ...], Check(_enforcement_problem)] = ("pods",)
    pod_pids_limit: Annotated[int, Range(-1, 4_194_304)] = -1
    memory_swap: MemorySwapSettings = MemorySwapSettings()
    eviction_hard: dict[str, str] = msgspec.field(default_factory=lambda: dict(DEFAULT_HARD))
    eviction_soft: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_soft_grace_period: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_minimum_reclaim: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_pressure_transition_period_s: Annotated[Seconds, _between("0s", "24h")] = seconds("5m")
    eviction_max_pod_grace_period: Annotated[int, Range(0, 86_400)] = 0
    merge_default_eviction_settings: bool = False
    server: ServerSection = ServerSection()
    cluster: ClusterSection = ClusterSection()
    event_history: EventHistorySettings = EventHistorySettings()
    logging: LoggingSettings = LoggingSettings()
    tracing: TracingConfiguration = TracingConfiguration()
    shutdown_grace_period_s: Annotated[Seconds, _between("0s", "24h")] = seconds("0s")
    shutdown_grace_period_critical_pods_s: Annotated[Seconds, _between("0s", "24h")] = seconds("0s")
    shutdown_grace_period_by_pod_priority: Annotated[
        tuple[ShutdownGraceItem, ...], Each(_shutdown_grace_problem, MAX_SHUTDOWN_CLASSES)
    ] = ()

    @property
    def image_gc(self) -> ImageGcPolicy:
        """Policy that image garbage collection decides by."""
        return ImageGcPolicy(
            high_threshold_percent=self.image_gc_high_threshold_percent,
            low_threshold_percent=self.image_gc_low_threshold_percent,
            min_age_s=float(self.image_minimum_gc_age_s),
            max_age_s=float(self.image_maximum_gc_age_s),
            scope=ImageGcScope(self.image_gc_scope),
            pinned=self.pinned_images,
        )

    @property
    def dialer_socket(self) -> Path:
        """Path of the dialer's socket, beside the admin socket."""
        return self.admin_socket.with_suffix(".dial.sock")

    @property
    def log_rotation(self) -> LogRotatePolicy:
        """Policy by which containers' logs are rotated."""
        return LogRotatePolicy(
            max_size_bytes=int(self.container_log_max_size),
            max_files=self.container_log_max_files,
            max_workers=self.container_log_max_workers,
            monitor_interval_s=float(self.container_log_monitor_interval_s),
        )

    @property
    def eviction(self) -> EvictionSettings:
        """Statements of the thresholds; of the default ones those that hold beside the file's."""
        defaults = DEFAULT_HARD if self.merge_default_eviction_settings else {}
        return EvictionSettings(
            hard={**defaults, **self.eviction_hard},
            soft=self.eviction_soft,
            soft_grace_period=self.eviction_soft_grace_period,
            minimum_reclaim=self.eviction_minimum_reclaim,
        )

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """Thresholds of eviction. Raises ThresholdError."""
        return parse_thresholds(self.eviction)
