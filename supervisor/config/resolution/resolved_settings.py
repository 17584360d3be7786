"""Settings resolved for a host: paths absolute, what was left to us chosen, plain floats and integers everywhere."""

from __future__ import annotations

import os
import re
import socket
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ipc.k8s.eviction.thresholds import ThresholdError, parse_thresholds
from ipc.k8s.kubecontainer.image_gc import policy_problem
from ipc.k8s.network.network_settings import BRIDGE
from supervisor.config.resolution.cluster_section import check_cluster_section
from supervisor.config.resolution.server_section import check_server_section
from supervisor.config.settings import DNS_NAME, Bytes, Seconds, Settings, SettingsError, yaml_name

MAX_DEFAULT_WORKERS: Final = 4
MUTATIONS_PER_CPU: Final = 2
"""Measured on two CPUs: pods per second rise up to four calls in flight and not beyond."""
MAX_SOCKET_PATH_BYTES: Final = 100
"""sockaddr_un holds 107; the socket of our own Podman service stands beside the admin socket with a longer suffix."""
_ENDPOINT_SCHEME: Final = "unix://"
_XDG_DEFAULTS: Final[Mapping[str, str]] = {
    "XDG_CONFIG_HOME": "{home}/.config",
    "XDG_DATA_HOME": "{home}/.local/share",
    "XDG_STATE_HOME": "{home}/.local/state",
    "XDG_CACHE_HOME": "{home}/.cache",
    "XDG_RUNTIME_DIR": "/run/user/{uid}",
}
_S = TypeVar("_S", bound=msgspec.Struct)


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the host that settings are resolved against."""

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


def resolve_settings(settings: Settings, directory: Path, host: Host, file: str) -> Settings:
    """Settings with all defaults that depend on the host. Pure. Raises SettingsError.

    Paths: ``~``, ``$XDG_…`` (with the defaults of the XDG base directory specification), ``$HOME`` and
    ``$instanceName`` are expanded; what is relative then is relative to ``directory``, where the file lies. Chosen
    here: ``nodeName``, ``workers.count`` and ``podman.maxConcurrentMutations``.
    """
    expand = _Expansion(settings, directory, host, file)
    node_name = settings.node_name or host.host_name.strip().lower()
    if not node_name or not re.fullmatch(DNS_NAME.regex, node_name):
        raise SettingsError(file, "nodeName", f"the host's name {host.host_name!r} is not a DNS name; set one")
    resolved = _replace(
        _plain_numbers(settings),
        node_name=node_name,
        cdi_spec_dirs=expand.cdi_spec_dirs(),
        image_credential_provider_config=expand.file_or_none("image_credential_provider_config"),
        image_credential_provider_bin_dir=expand.file_or_none("image_credential_provider_bin_dir"),
        cluster=_replace(
            _plain_numbers(settings.cluster),
            kubeconfig=expand.cluster_file("kubeconfig"),
            bootstrap_kubeconfig=expand.cluster_file("bootstrap_kubeconfig"),
        ),
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
        **{
            name: expand.path(name)
            for name in ("static_pod_path", "pod_logs_dir", "state_dir", "memory_dir", "admin_socket")
        },
    )
    if settings.pod_network.bridge and settings.pod_network.mode != BRIDGE:
        raise SettingsError(file, "podNetwork.bridge", f"is for podNetwork.mode {BRIDGE} only")
    if settings.container_runtime_endpoint or settings.podman.service == "user":
        for name, value in settings.podman.of_own_service.items():
            raise SettingsError(file, name, f"{value} is for the agent's own service (podman.service: own)")
    if bool(settings.image_credential_provider_config) != bool(settings.image_credential_provider_bin_dir):
        raise SettingsError(file, "imageCredentialProviderConfig", "and imageCredentialProviderBinDir need each other")
    if problem := policy_problem(settings.image_gc):
        raise SettingsError(file, "imageGCLowThresholdPercent", problem)
    if len(os.fsencode(resolved.admin_socket)) > MAX_SOCKET_PATH_BYTES:
        raise SettingsError(file, "adminSocket", f"{resolved.admin_socket} has more than {MAX_SOCKET_PATH_BYTES} bytes")
    check_server_section(settings, file)
    check_cluster_section(settings, file)
    check_shutdown_grace(settings, file)
    try:
        parse_thresholds(settings.eviction)
    except ThresholdError as error:
        raise SettingsError(file, error.setting, str(error)) from error
    return resolved


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
        return self._expanded(yaml_name(attribute), str(getattr(self._settings, attribute)))

    def cdi_spec_dirs(self) -> tuple[str, ...]:
        return tuple(str(self._expanded("cdiSpecDirs", text)) for text in self._settings.cdi_spec_dirs)

    def program(self) -> str:
        """A name without a slash is looked up in PATH by whoever starts it."""
        path = self._settings.podman.path
        return str(self._expanded("podman.path", path)) if "/" in path else path

    def cluster_file(self, attribute: str) -> str:
        text = getattr(self._settings.cluster, attribute)
        return str(self._expanded(f"cluster.{yaml_name(attribute)}", text)) if text else ""

    def file_or_none(self, attribute: str) -> str:
        text = getattr(self._settings, attribute)
        return str(self._expanded(yaml_name(attribute), text)) if text else ""

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
    plain: dict[str, object] = {}
    for field in msgspec.structs.fields(section):
        value = getattr(section, field.name)
        plain[field.name] = next((make(value) for kind, make in _PLAIN if isinstance(value, kind)), value)
    return _replace(section, **plain)


_PLAIN: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (Seconds, float),
    (Bytes, int),
    (msgspec.Struct, _plain_numbers),
)


def _replace(section: _S, **changes: object) -> _S:
    return msgspec.structs.replace(section, **changes)


CRITICAL: Final = "shutdownGracePeriodCriticalPods"
BY_PRIORITY: Final = "shutdownGracePeriodByPodPriority"


def check_shutdown_grace(settings: Settings, file: str) -> None:
    """pkg/kubelet/apis/config/validation/validation.go, ValidateKubeletConfiguration. Raises SettingsError."""
    total_s, critical_s = settings.shutdown_grace_period_s, settings.shutdown_grace_period_critical_pods_s
    classes = settings.shutdown_grace_period_by_pod_priority
    if critical_s > total_s:
        raise SettingsError(file, CRITICAL, "must not be longer than shutdownGracePeriod, of which it is the end")
    for name, period_s in (("shutdownGracePeriod", total_s), (CRITICAL, critical_s)):
        if 0 < period_s < 1:
            raise SettingsError(file, name, "must be 0s or at least 1s")
    if classes and total_s:
        raise SettingsError(file, BY_PRIORITY, "says the same as shutdownGracePeriod: give one of them")
    if len({item.priority for item in classes}) < len(classes):
        raise SettingsError(file, BY_PRIORITY, "names a priority twice")
