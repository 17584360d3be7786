"""The environment of a container. Pure, but for the files that variables are read from: with those it blocks.

Mirrors makeEnvironmentVariables (pkg/kubelet/kubelet_pods.go). Different on purpose: only pods of a cluster are told
of services; an optional variable of a file that is not there is left out, as the API has it, where the kubelet fails;
and a value that no process can be given, with a NUL, not UTF-8 or too long, is refused with the variable's name instead
of reaching Podman.
"""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ipc.host.text.gofmt import quoted
from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.env import (
    ConfigMapKeySelector,
    EnvFromSource,
    EnvVarSource,
    FileKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podresources.node_resources import NodeResources
from workers.env.downward import PodPlacement, field_value, resource_value
from workers.env.env_files import EnvFile, EnvFileError, read_env_file
from workers.env.expansion import MAX_PROCESS_CHARS, expand
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.mounted_volume import MountedVolume
from workers.userns.unshare import DEFAULT, Unshare

V = TypeVar("V", str, bytes)

log = logging.getLogger(__name__)


class EnvironmentSources(msgspec.Struct, frozen=True, kw_only=True):
    """Where values come from."""

    pod: Pod
    objects: ConfigObjects = ConfigObjects()
    where: PodPlacement = PodPlacement()
    node: NodeResources = NodeResources()
    volumes: Mapping[str, MountedVolume] = {}
    """By name; for variables that are read from files."""
    unshare: Unshare = DEFAULT
    """Into Podman's namespaces, for files that only its root may read."""


class Environment(dict[str, str]):
    """Name to value. Its repr says the names only: some values are of Secrets."""

    def __init__(self) -> None:
        super().__init__()
        self._left = MAX_PROCESS_CHARS

    def add(self, name: str, value: str) -> None:
        """Add a variable; of two values of a name the last holds, both count for the limit. Raises ConfigError."""
        self._left -= len(name) + len(value)
        if self._left < 0:
            what = f"with it all variables have more than {MAX_PROCESS_CHARS} characters"
            raise ConfigError(f"environment variable {quoted(name)}: {what}")
        self[name] = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self))})"


def reads_files(container: Container) -> bool:
    """Whether `make_environment` blocks for that container."""
    sources = (variable.value_from for variable in container.env)
    return any(source is not None and source.file_key_ref is not None for source in sources)


def make_environment(container: Container, sources: EnvironmentSources) -> Environment:
    """Variables of the container's manifest, which add to the environment of its image or replace there.

    ``envFrom`` comes first, in order; then ``env``, in order, each of which sees those before it. Of two values of a
    name the last one counts. Variables of services stand behind them all, and may be referred to. Raises ConfigError.
    """
    environment = Environment()
    asking = _Asking(container, sources, _EnvFiles(sources.unshare))
    for source in container.env_from:
        for name, value in _all_keys(source, sources).items():
            environment.add(source.prefix + name, value)
    of_services = _service_variables(sources)
    seen = ChainMap(environment, dict(of_services))
    for variable in container.env:
        found: str | None = variable.value
        if found:
            found = expand(found, seen, f"environment variable {quoted(variable.name)}")
        elif variable.value_from is not None:
            found = _value_from(variable.value_from, asking)
        if found is not None:
            environment.add(variable.name, found)
    for name, value in of_services.items():
        if name not in environment:
            environment.add(name, value)
    for name, value in environment.items():
        if "\0" in value:
            raise ConfigError(f"environment variable {quoted(name)} has a NUL in its value")
    return environment


def _service_variables(sources: EnvironmentSources) -> Mapping[str, str]:
    """Raises ConfigError for a pod of a cluster whose services are not known."""
    values = sources.objects.cluster
    if values is not None:
        return values.service_variables
    if is_api_pod(sources.pod):
        raise ConfigError("services have not yet been read at least once, cannot construct envvars")
    return {}


class _EnvFiles:
    """Files of variables, each read once, however many variables are in it."""

    def __init__(self, unshare: Unshare) -> None:
        self._unshare = unshare
        self._read: dict[tuple[Path, str], EnvFile | OSError | EnvFileError] = {}

    def get(self, volume: Path, path: str, *, in_memory: bool) -> EnvFile:
        """Blocks. Raises OSError, EnvFileError."""
        if (volume, path) not in self._read:
            try:
                self._read[volume, path] = read_env_file(volume, path, self._unshare, in_memory=in_memory)
            except (OSError, EnvFileError) as error:
                self._read[volume, path] = error
        known = self._read[volume, path]
        if isinstance(known, EnvFile):
            return known
        raise known


class _Asking(msgspec.Struct, frozen=True):
    """Container whose variable is resolved, and the sources of its values."""

    container: Container
    sources: EnvironmentSources
    files: _EnvFiles


def _value_from(source: EnvVarSource, asking: _Asking) -> str | None:
    """None for an optional variable that is not there. Raises ConfigError."""
    for attribute, resolve in _RESOLVERS.items():
        reference = getattr(source, attribute)
        if reference is not None:
            return resolve(reference, asking)
    return ""


# --- ConfigMaps and Secrets --------------------------------------------------------------------------------------


def _all_keys(source: EnvFromSource, sources: EnvironmentSources) -> Mapping[str, str]:
    """Variables of one item of ``envFrom``, without its prefix. A ConfigMap's binary data gives none, as upstream."""
    values: Mapping[str, str] = {}
    if source.config_map_ref is not None:
        name, optional = source.config_map_ref.name, source.config_map_ref.optional
        values = _config_map(name, sources, optional=bool(optional)) or {}
    elif source.secret_ref is not None:
        name, optional = source.secret_ref.name, source.secret_ref.optional
        data = _secret(name, sources, optional=bool(optional)) or {}
        values = {key: _text(value, key, name, sources) for key, value in data.items()}
    return values


def _config_map_key(selector: ConfigMapKeySelector, asking: _Asking) -> str | None:
    data = _config_map(selector.name, asking.sources, optional=bool(selector.optional))
    return _value_at("ConfigMap", data, selector, asking)


def _secret_key(selector: SecretKeySelector, asking: _Asking) -> str | None:
    data = _secret(selector.name, asking.sources, optional=bool(selector.optional))
    value = _value_at("Secret", data, selector, asking)
    return _text(value, selector.key, selector.name, asking.sources) if value is not None else None


def _value_at(
    kind: str, data: Mapping[str, V] | None, selector: ConfigMapKeySelector | SecretKeySelector, asking: _Asking
) -> V | None:
    """None for an optional one that is not there; ``data`` is None when all of it is not."""
    value = data.get(selector.key) if data is not None else None
    if value is None and not selector.optional:
        raise ConfigError(f"couldn't find key {selector.key} in {kind} {_full_name(selector.name, asking.sources)}")
    return value


def _config_map(name: str, sources: EnvironmentSources, *, optional: bool) -> Mapping[str, str] | None:
    found = sources.objects.config_maps.get(name)
    if found is None and not optional:
        raise ConfigError(f"configmap {quoted(name)} not found")
    return found.data if found is not None else None


def _secret(name: str, sources: EnvironmentSources, *, optional: bool) -> Mapping[str, bytes] | None:
    found = sources.objects.secrets.get(name)
    if found is None and not optional:
        raise ConfigError(f"secret {quoted(name)} not found")
    return found.data if found is not None else None


def _text(value: bytes, key: str, name: str, sources: EnvironmentSources) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        # The error holds the value: it must not be anybody's cause.
        raise ConfigError(f"key {key} in Secret {_full_name(name, sources)} is not UTF-8") from None


def _full_name(name: str, sources: EnvironmentSources) -> str:
    return f"{sources.pod.metadata.namespace}/{name}"


# --- the pod, its resources, and files ---------------------------------------------------------------------------


def _field(selector: ObjectFieldSelector, asking: _Asking) -> str:
    return field_value(asking.sources.pod, selector.field_path, asking.sources.where)


def _resource(selector: ResourceFieldSelector, asking: _Asking) -> str:
    return resource_value(selector, asking.sources.pod, asking.container, asking.sources.node)


def _file_key(selector: FileKeySelector, asking: _Asking) -> str | None:
    volume = asking.sources.volumes.get(selector.volume_name)
    if volume is None or volume.path is None:
        raise ConfigError(f"cannot find the volume {quoted(selector.volume_name)} referenced by FileKeyRef")
    file = volume.path / selector.path
    try:
        in_memory = volume.memory_bytes is not None
        value = asking.files.get(volume.path, selector.path, in_memory=in_memory).value(selector.key)
    except FileNotFoundError as error:
        if selector.optional:
            return None
        raise _unreadable(asking, str(file), error) from error
    except (OSError, EnvFileError) as error:
        raise _unreadable(asking, str(file), error) from error
    if value:
        return value
    if selector.optional:
        return None
    raise ConfigError(f"environment variable key {quoted(selector.key)} not found in file {quoted(str(file))}")


def _unreadable(asking: _Asking, file: str, error: OSError | EnvFileError) -> ConfigError:
    """Upstream's message, which leaves the reason to the log."""
    metadata, reason = asking.sources.pod.metadata, getattr(error, "strerror", None) or str(error)
    where = f"{metadata.namespace}/{metadata.name}, container {asking.container.name}"
    log.warning("%s: environment file %s: %s", where, quoted(file), reason)
    return ConfigError("couldn't parse env file")


_RESOLVERS: Final[Mapping[str, Callable[..., str | None]]] = {
    "field_ref": _field,
    "resource_field_ref": _resource,
    "config_map_key_ref": _config_map_key,
    "secret_key_ref": _secret_key,
    "file_key_ref": _file_key,
}
"""Attribute of `EnvVarSource` to what resolves it."""
