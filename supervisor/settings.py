"""The agent's configuration: one YAML file, KubeletConfiguration's names where the meaning is the same.

``configs/rootlet.yaml`` shows every setting. Attributes carry their unit (``sync_frequency_s``), the file carries it in
the value (``syncFrequency: 1m``). `parse_settings` gives what a file says, `resolve_settings` what that means on this
host: paths absolute, what was left to us chosen, plain floats and integers everywhere. `load_settings` does both.
"""

from __future__ import annotations

import os
import re
import socket
import string
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec.structs import FieldInfo

from ipc.api import parse_quantity
from ipc.boot import WorkerSettings
from supervisor.durations import format_duration, parse_duration
from supervisor.sources.documents import read_documents

API_VERSION: Final = "rootlet.dev/v1alpha1"
KIND: Final = "RootletConfiguration"
MAX_CONFIG_BYTES: Final = 1 << 20
MAX_EVENTS: Final = 10_000
"""Largest history: an API server that was just born is told all of it at once, and its link holds 32 MiB."""
MAX_DEFAULT_WORKERS: Final = 4
BEATS_PER_TIMEOUT: Final = 8
"""Heartbeats of a worker within ``workers.heartbeatTimeout``. Each wakes a process that has nothing else to do."""
MUTATIONS_PER_CPU: Final = 2
"""Measured on two CPUs: pods per second rise up to four calls in flight and not beyond."""
MAX_SOCKET_PATH_BYTES: Final = 100
"""sockaddr_un holds 107; the socket of our own Podman service stands beside the admin socket with a longer suffix."""
PODS_DIR: Final = "pods"
"""Below ``stateDir``: one directory per pod UID, as below the kubelet's root directory."""
_ENDPOINT_SCHEME: Final = "unix://"
_XDG_DEFAULTS: Final[Mapping[str, str]] = {
    "XDG_CONFIG_HOME": "{home}/.config",
    "XDG_DATA_HOME": "{home}/.local/share",
    "XDG_STATE_HOME": "{home}/.local/state",
    "XDG_CACHE_HOME": "{home}/.cache",
    "XDG_RUNTIME_DIR": "/run/user/{uid}",
}

_S = TypeVar("_S", bound=msgspec.Struct)


class SettingsError(Exception):
    """A configuration that cannot be used; names the file and the field."""

    def __init__(self, file: str, field_path: str, message: str) -> None:
        super().__init__(": ".join(part for part in (file, field_path, message) if part))
        self.file = file
        self.field_path = field_path
        self.message = message


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
    """What a text must look like, and how to say so."""

    regex: str
    says: str


def _seconds(text: str) -> Seconds:
    return Seconds(parse_duration(text))


def _between(low: str, high: str) -> Range:
    return Range(_seconds(low), _seconds(high))


_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DNS_LABEL: Final = Pattern(_LABEL, "must be a DNS label: at most 63 lower case letters, digits and inner dashes")
_DNS_NAME: Final = Pattern(rf"(?=.{{0,253}}$)({_LABEL}(\.{_LABEL})*)?", "must be a DNS name of lower case letters")


_ACRONYMS: Final = {"qps": "QPS"}


def _yaml_name(attribute: str) -> str:
    """``sync_frequency_s`` is ``syncFrequency`` in the file."""
    head, *tail = attribute.removesuffix("_s").split("_")
    return head + "".join(_ACRONYMS.get(word, word.capitalize()) for word in tail)


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_yaml_name):
    """A mapping of the file."""


class PodmanSettings(_Section, frozen=True, kw_only=True):
    service: Literal["auto", "own", "user"] = "auto"
    path: str = "podman"
    keyring: bool = False
    max_concurrent_mutations: Annotated[int, Range(0, 256)] = 0


class WorkersSettings(_Section, frozen=True, kw_only=True):
    count: Annotated[int, Range(0, 64)] = 0
    heartbeat_timeout_s: Annotated[Seconds, _between("2s", "10m")] = _seconds("15s")
    max_deaths: Annotated[int, Range(1, 1000)] = 10
    death_period_s: Annotated[Seconds, _between("1s", "1h")] = _seconds("1m")


class CrashLoopBackOffSettings(_Section, frozen=True, kw_only=True):
    max_container_restart_period_s: Annotated[Seconds, _between("1s", "300s")] = _seconds("300s")


class ContainerGarbageCollectionSettings(_Section, frozen=True, kw_only=True):
    max_per_pod_container: Annotated[int, Range(-1, 1000)] = 1
    max_containers: Annotated[int, Range(-1, 100_000)] = -1
    min_age_s: Annotated[Seconds, _between("0s", "720h")] = _seconds("0s")


class EventHistorySettings(_Section, frozen=True, kw_only=True):
    max_events: Annotated[int, Range(1, MAX_EVENTS)] = 1000
    ttl_s: Annotated[Seconds, _between("1s", "720h")] = _seconds("1h")


class LoggingSettings(_Section, frozen=True, kw_only=True):
    format: Literal["text", "json"] = "text"
    verbosity: Literal["debug", "info", "warning", "error"] = "info"


class Settings(_Section, frozen=True, kw_only=True):
    """Everything that can be configured, with its default. What each setting is for says ``configs/rootlet.yaml``."""

    api_version: str = API_VERSION
    kind: str = KIND
    instance_name: Annotated[str, _DNS_LABEL] = "rootlet"
    node_name: Annotated[str, _DNS_NAME] = ""
    static_pod_path: Path = Path("$XDG_CONFIG_HOME/rootlet/manifests")
    sync_frequency_s: Annotated[Seconds, _between("1s", "24h")] = _seconds("1m")
    file_check_frequency_s: Annotated[Seconds, _between("100ms", "1h")] = _seconds("20s")
    max_pods: Annotated[int, Range(1, 10_000)] = 110
    max_manifest_bytes: Annotated[Bytes, Range(1 << 10, 16 << 20)] = Bytes(1 << 20)
    node_status_update_frequency_s: Annotated[Seconds, _between("100ms", "1h")] = _seconds("10s")
    runtime_request_timeout_s: Annotated[Seconds, _between("1s", "1h")] = _seconds("2m")
    image_pull_timeout_s: Annotated[Seconds, _between("1s", "24h")] = _seconds("30m")
    container_runtime_endpoint: str = ""
    podman: PodmanSettings = PodmanSettings()
    pod_logs_dir: Path = Path("$XDG_STATE_HOME/rootlet/$instanceName/pod-logs")
    state_dir: Path = Path("$XDG_STATE_HOME/rootlet/$instanceName")
    admin_socket: Path = Path("$XDG_RUNTIME_DIR/rootlet/$instanceName.sock")
    workers: WorkersSettings = WorkersSettings()
    relist_period_s: Annotated[Seconds, _between("100ms", "10m")] = _seconds("10s")
    quiet_relist_period_s: Annotated[Seconds, _between("100ms", "1h")] = _seconds("5m")
    housekeeping_period_s: Annotated[Seconds, _between("100ms", "1m")] = _seconds("2s")
    crash_loop_back_off: CrashLoopBackOffSettings = CrashLoopBackOffSettings()
    serialize_image_pulls: bool = True
    max_parallel_image_pulls: Annotated[int, Range(0, 100)] = 0
    registry_pull_qps: Annotated[int, Range(0, 1000)] = 5
    registry_burst: Annotated[int, Range(1, 1000)] = 10
    container_garbage_collection: ContainerGarbageCollectionSettings = ContainerGarbageCollectionSettings()
    event_history: EventHistorySettings = EventHistorySettings()
    logging: LoggingSettings = LoggingSettings()
    shutdown_grace_period_s: Annotated[Seconds, _between("0s", "10m")] = _seconds("10s")

    @property
    def dialer_socket(self) -> Path:
        """Beside the admin socket."""
        return self.admin_socket.with_suffix(".dial.sock")


RELOADABLE: Final = frozenset(
    {
        "syncFrequency",
        "maxPods",
        "nodeStatusUpdateFrequency",
        "housekeepingPeriod",
        "eventHistory.maxEvents",
        "eventHistory.ttl",
        "shutdownGracePeriod",
        "workers.count",
    }
)
"""What SIGHUP may change: what the master looks up anew each time, and how many workers there are. The other settings
are in the memory of forked children, in labels, or decide where things lie."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What settings are resolved against."""

    home: Path
    uid: int
    host_name: str
    cpus: int
    environment: Mapping[str, str] = {}


def this_host() -> Host:
    """The user and machine that we run as and on. ``cpus``: those that this process may use. Raises SettingsError."""
    try:
        home = Path.home()
    except RuntimeError as error:
        raise SettingsError("", "", "this user has no home directory: set HOME") from error
    return Host(
        home=home,
        uid=os.getuid(),
        host_name=socket.gethostname(),
        cpus=len(os.sched_getaffinity(0)),
        environment=dict(os.environ),
    )


def load_settings(path: Path) -> Settings:
    """Read, check and resolve a configuration file. Raises SettingsError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise SettingsError(str(path), "", error.strerror or str(error)) from error
    settings = parse_settings(data, str(path))
    return resolve_settings(settings, path.absolute().parent, this_host(), str(path))


def default_settings() -> Settings:
    """The settings of this host when there is no file. Raises SettingsError."""
    return resolve_settings(Settings(), Path.cwd(), this_host(), "default settings")


def parse_settings(data: bytes, file: str) -> Settings:
    """What a configuration file says, checked and not yet resolved. Pure. Raises SettingsError."""
    raw = _without_nulls(_one_mapping(data, file))
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if raw.get(name) != wanted:
            raise SettingsError(file, name, f"must be {wanted}")
    try:
        settings = msgspec.convert(raw, Settings, dec_hook=_decode_value)
    except msgspec.ValidationError as error:
        raise _settings_error(file, str(error)) from error
    for field_path, message in _findings(settings, ""):
        raise SettingsError(file, field_path, message)
    return settings


def resolve_settings(settings: Settings, directory: Path, host: Host, file: str) -> Settings:
    """What the settings mean on a host. Pure. Raises SettingsError.

    Paths: ``~``, ``$XDG_…`` (with the defaults of the XDG base directory specification), ``$HOME`` and
    ``$instanceName`` are expanded; what is relative then is relative to ``directory``, where the file lies. Chosen
    here: ``nodeName``, ``workers.count`` and ``podman.maxConcurrentMutations``.
    """
    expand = _Expansion(settings, directory, host, file)
    node_name = settings.node_name or host.host_name.strip().lower()
    if not node_name or not re.fullmatch(_DNS_NAME.regex, node_name):
        raise SettingsError(file, "nodeName", f"the host's name {host.host_name!r} is not a DNS name; set one")
    resolved = _replace(
        _plain_numbers(settings),
        node_name=node_name,
        container_runtime_endpoint=expand.endpoint(),
        podman=_replace(
            _plain_numbers(settings.podman),
            path=expand.program(),
            max_concurrent_mutations=settings.podman.max_concurrent_mutations or MUTATIONS_PER_CPU * host.cpus,
        ),
        workers=_replace(
            _plain_numbers(settings.workers),
            count=settings.workers.count or min(MAX_DEFAULT_WORKERS, host.cpus),
        ),
        **{name: expand.path(name) for name in ("static_pod_path", "pod_logs_dir", "state_dir", "admin_socket")},
    )
    if len(os.fsencode(resolved.admin_socket)) > MAX_SOCKET_PATH_BYTES:
        raise SettingsError(file, "adminSocket", f"{resolved.admin_socket} has more than {MAX_SOCKET_PATH_BYTES} bytes")
    return resolved


def diff_reload(old: Settings, new: Settings) -> tuple[Settings, tuple[str, ...]]:
    """What SIGHUP makes of two resolved settings: those in force from now on, and the names that need a restart."""
    return _take_reloadable(old, new, ""), tuple(
        name for name, before, after in _differences(old, new, "") if name not in RELOADABLE and before != after
    )


def worker_settings(settings: Settings, podman_socket: str, host_ip: str = "") -> WorkerSettings:
    """The children's part of resolved settings, and what the master has found out for them."""
    return WorkerSettings(
        instance=settings.instance_name,
        node_name=settings.node_name,
        podman_socket=podman_socket,
        dialer_socket=str(settings.dialer_socket),
        host_ip=host_ip,
        pod_logs_dir=str(settings.pod_logs_dir),
        pods_dir=str(settings.state_dir / PODS_DIR),
        runtime_request_timeout_s=float(settings.runtime_request_timeout_s),
        image_pull_timeout_s=float(settings.image_pull_timeout_s),
        max_mutations=settings.podman.max_concurrent_mutations,
        relist_period_s=float(settings.relist_period_s),
        quiet_relist_period_s=float(settings.quiet_relist_period_s),
        heartbeat_period_s=float(settings.workers.heartbeat_timeout_s) / BEATS_PER_TIMEOUT,
        max_container_restart_period_s=float(settings.crash_loop_back_off.max_container_restart_period_s),
        max_dead_per_container=settings.container_garbage_collection.max_per_pod_container,
        dead_min_age_s=float(settings.container_garbage_collection.min_age_s),
        log_level=settings.logging.verbosity,
        log_format=settings.logging.format,
    )


# --- parsing ----------------------------------------------------------------------------------------------------


def _one_mapping(data: bytes, file: str) -> dict[str, Any]:
    if len(data) > MAX_CONFIG_BYTES:
        raise SettingsError(file, "", f"more than {MAX_CONFIG_BYTES} bytes")
    read = read_documents(data)
    for error in read.errors:
        raise SettingsError(file, error.field, error.message)
    if len(read.documents) != 1 or not isinstance(value := read.documents[0].value, dict):
        raise SettingsError(file, "", f"must be one YAML mapping of kind {KIND}")
    return value


def _without_nulls(value: Any) -> Any:
    """A key with nothing behind it is not set, as in the kubelet's configuration."""
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(item) for key, item in value.items() if item is not None}


def _decode_value(kind: type, value: Any) -> Any:
    return _DECODERS[kind](value)


def _decode_seconds(value: Any) -> Seconds:
    if not isinstance(value, str):
        raise ValueError(f'Expected a duration such as "1m30s", got {type(value).__name__}')
    return _seconds(value)


def _decode_bytes(value: Any) -> Bytes:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f'Expected a size such as "1Mi", got {type(value).__name__}')
    amount = parse_quantity(value)
    if amount.denominator != 1:
        raise ValueError(f"Expected whole bytes, got {value}")
    return Bytes(amount)


def _decode_path(value: Any) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("Expected a path")
    return Path(value)


_DECODERS: Final[Mapping[type, Callable[[Any], Any]]] = {
    Seconds: _decode_seconds,
    Bytes: _decode_bytes,
    Path: _decode_path,
}
_VALIDATION_ERROR: Final = re.compile(r"(?P<message>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)


def _settings_error(file: str, text: str) -> SettingsError:
    """msgspec's sentence, taken apart."""
    match = _VALIDATION_ERROR.fullmatch(text)
    message, path = (match["message"], match["path"] or "") if match else (text, "")
    if unknown := _UNKNOWN_FIELD.fullmatch(message):
        return SettingsError(file, f"{path}.{unknown['name']}".removeprefix("."), "unknown field")
    if message.startswith("Invalid enum value"):
        message = f"Expected one of {', '.join(_choices(path))}"
    return SettingsError(file, path, message.replace("`", ""))


def _choices(path: str) -> tuple[str, ...]:
    kind: Any = Settings
    for name in path.split("."):
        kind = next(field.type for field in msgspec.structs.fields(kind) if field.encode_name == name)
    return typing.get_args(kind)


def _findings(section: msgspec.Struct, prefix: str) -> Iterator[tuple[str, str]]:
    """Values out of range and texts that do not look right, with their paths."""
    for field in msgspec.structs.fields(section):
        value, path = getattr(section, field.name), prefix + field.encode_name
        if isinstance(value, msgspec.Struct):
            yield from _findings(value, f"{path}.")
            continue
        for rule in getattr(field.type, "__metadata__", ()):
            if message := _broken(rule, value):
                yield path, message


def _broken(rule: object, value: Any) -> str:
    match rule:
        case Range() if not rule.low <= value <= rule.high:
            return f"{value} is not between {_like(value, rule.low)} and {_like(value, rule.high)}"
        case Pattern() if not re.fullmatch(rule.regex, value):
            return rule.says
    return ""


def _like(value: Any, bound: float) -> str:
    return str(type(value)(bound))


# --- resolving --------------------------------------------------------------------------------------------------


class _Expansion:
    """Turns paths as the file has them into paths of this host. Raises SettingsError."""

    def __init__(self, settings: Settings, directory: Path, host: Host, file: str) -> None:
        self._settings = settings
        self._directory = directory
        self._home = str(host.home)
        self._file = file
        self._names = {
            "HOME": self._home,
            "instanceName": settings.instance_name,
            **{name: _xdg(name, host) for name in _XDG_DEFAULTS},
        }

    def path(self, attribute: str) -> Path:
        return self._expanded(_yaml_name(attribute), str(getattr(self._settings, attribute)))

    def program(self) -> str:
        """A name without a slash is looked up in PATH by whoever starts it."""
        path = self._settings.podman.path
        return str(self._expanded("podman.path", path)) if "/" in path else path

    def endpoint(self) -> str:
        name, endpoint = "containerRuntimeEndpoint", self._settings.container_runtime_endpoint
        if not endpoint:
            return ""
        if not endpoint.startswith(_ENDPOINT_SCHEME):
            raise SettingsError(self._file, name, f"must begin with {_ENDPOINT_SCHEME}")
        if self._settings.podman.service == "own":
            raise SettingsError(self._file, name, "contradicts podman.service: own")
        return _ENDPOINT_SCHEME + str(self._expanded(name, endpoint.removeprefix(_ENDPOINT_SCHEME)))

    def _expanded(self, name: str, text: str) -> Path:
        try:
            expanded = string.Template(text).substitute(self._names)
        except KeyError as error:
            known = ", ".join(f"${name}" for name in self._names)
            raise SettingsError(self._file, name, f"unknown ${error.args[0]}; known are {known}") from error
        except ValueError as error:
            raise SettingsError(self._file, name, f"{text}: write $$ for a dollar sign") from error
        if expanded == "~" or expanded.startswith("~/"):
            expanded = self._home + expanded[1:]
        # Not resolve(): a symbolic link may be meant to change its target.
        return Path(os.path.normpath(self._directory / expanded))


def _xdg(name: str, host: Host) -> str:
    """The XDG base directory specification: what is not absolute does not count."""
    value = host.environment.get(name, "")
    return value if value.startswith("/") else _XDG_DEFAULTS[name].format(home=host.home, uid=host.uid)


def _plain_numbers(section: _S) -> _S:
    """Messages carry floats and integers, not our subclasses of them; nor do sections below keep them."""
    plain: dict[str, Any] = {}
    for field in msgspec.structs.fields(section):
        value = getattr(section, field.name)
        plain[field.name] = next((make(value) for kind, make in _PLAIN if isinstance(value, kind)), value)
    return _replace(section, **plain)


_PLAIN: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (Seconds, float),
    (Bytes, int),
    (msgspec.Struct, _plain_numbers),
)


def _replace(section: _S, **changes: Any) -> _S:
    return msgspec.structs.replace(section, **changes)


# --- reloading --------------------------------------------------------------------------------------------------


def _named_fields(section: msgspec.Struct, prefix: str) -> Iterator[tuple[FieldInfo, str]]:
    return ((field, prefix + field.encode_name) for field in msgspec.structs.fields(section))


def _take_reloadable(old: _S, new: _S, prefix: str) -> _S:
    taken: dict[str, Any] = {}
    for field, name in _named_fields(old, prefix):
        value = getattr(old, field.name)
        if isinstance(value, msgspec.Struct):
            taken[field.name] = _take_reloadable(value, getattr(new, field.name), f"{name}.")
        elif name in RELOADABLE:
            taken[field.name] = getattr(new, field.name)
    return _replace(old, **taken)


def _differences(old: msgspec.Struct, new: msgspec.Struct, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    for field, name in _named_fields(old, prefix):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if isinstance(before, msgspec.Struct):
            yield from _differences(before, after, f"{name}.")
        else:
            yield name, before, after
