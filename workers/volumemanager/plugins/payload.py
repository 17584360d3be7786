"""The files of a volume that shows objects and pod fields: which there are, with which content and mode. Pure.

Mirrors MakePayload (pkg/volume/configmap/configmap.go, pkg/volume/secret/secret.go), CollectData
(pkg/volume/downwardapi/downwardapi.go), collectData (pkg/volume/projected/projected.go) and validatePath
(pkg/volume/util/atomic_writer.go).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipc.k8s.api.defaults import DEFAULT_FILE_MODE
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.projected import (
    ClusterTrustBundleProjection,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    KeyToPath,
    ProjectedVolumeSource,
    SecretProjection,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    VolumeProjection,
)
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.podobjects.cluster_values import token_request
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podresources.node_resources import NodeResources
from workers.env.downward import field_value, resource_value
from workers.fs.directories import MAX_NAME_BYTES
from workers.kubecontainer.config_error import ConfigError

MAX_PATH_BYTES: Final = 4096
MAX_PAYLOAD_BYTES: Final = 64 << 20
"""Most that the files of one volume may have together. Upstream has no such limit: a key or field that is shown under
each of ten thousand paths would fill the node."""
MAX_PATH_NAMES: Final = 100
"""Names in one path. Upstream has no such limit."""
OWNER_MODE: Final = 0o600
"""Mode bits of a token, and of trust anchors, in a pod with an fsGroup or with one user for all of its containers
(pkg/volume/projected/projected.go)."""
_NO_SERVER: Final = "there is no API server to ask for that source"
GROUP_MODE: Final = 0o440
"""Mode bits that an fsGroup adds to a read-only file."""


class FileProjection(msgspec.Struct, frozen=True):
    """One file. Its repr has the size only: it may be of a Secret."""

    data: bytes
    mode: int
    """Permission bits."""
    user: int | None = None
    """The owner as the pod's containers see him; None: the agent."""

    @property
    def is_foreign(self) -> bool:
        """Whether it belongs to somebody else than the agent, who is root in Podman's user namespace."""
        return bool(self.user)

    def __repr__(self) -> str:
        return f"FileProjection({len(self.data)} bytes, {self.mode:#o})"


Payload = Mapping[str, FileProjection]
"""By path below the volume."""


class PayloadError(Exception):
    """The files cannot be determined, or cannot be written under these names. The text is for people and holds no
    secret."""

    def __init__(self, *problems: str) -> None:
        super().__init__(_aggregated(problems))
        self.problems = problems


class PayloadSources(msgspec.Struct, frozen=True, kw_only=True):
    """Where content comes from."""

    pod: Pod
    objects: ConfigObjects = ConfigObjects()
    node: NodeResources = NodeResources()


def make_payload(volume: Volume, sources: PayloadSources) -> Payload:
    """Files of a volume of one of the four kinds; its paths are good names, its modes final. Raises PayloadError."""
    source = volume.config_map or volume.secret or volume.downward_api or volume.projected
    assert source is not None, f"volume {volume.name} shows no objects"
    mode = DEFAULT_FILE_MODE if source.default_mode is None else source.default_mode
    payload = _for_group(cleaned(_MAKERS[type(source)](source, mode, sources)), sources.pod)
    _check_size(sum(len(file.data) for file in payload.values()))
    return payload


def _check_size(size_bytes: int) -> None:
    """Raises PayloadError."""
    if size_bytes > MAX_PAYLOAD_BYTES:
        raise PayloadError(f"its files have more than {MAX_PAYLOAD_BYTES} bytes")


def _for_group(payload: Payload, pod: Pod) -> Payload:
    """With an fsGroup the group may read everything, as VolumeOwnership has it of what is only read
    (pkg/volume/volume_linux.go); which group that is, is not told here."""
    context = pod.spec.security_context
    if context is None or context.fs_group is None:
        return payload
    return {path: FileProjection(file.data, file.mode | GROUP_MODE, file.user) for path, file in payload.items()}


def holds_secrets(volume: Volume) -> bool:
    """Whether its files may not reach a disk."""
    projections = volume.projected.sources if volume.projected is not None else ()
    return volume.secret is not None or any(
        projection.secret is not None or projection.service_account_token is not None for projection in projections
    )


# --- one source each ---------------------------------------------------------------------------------------------


def _config_map(source: ConfigMapVolumeSource | ConfigMapProjection, mode: int, sources: PayloadSources) -> Payload:
    found = sources.objects.config_maps.get(source.name)
    if found is None and not source.optional:
        raise PayloadError(f'configmap "{source.name}" not found')
    data = _contents(found) if found is not None else {}
    return _keys(data, source.items, mode, bool(source.optional), "configmap references non-existent config key: {}")


def _contents(config_map: ConfigMap) -> Mapping[str, bytes]:
    return {**config_map.binary_data, **{key: text.encode() for key, text in config_map.data.items()}}


def _secret_volume(source: SecretVolumeSource, mode: int, sources: PayloadSources) -> Payload:
    return _secret(source.secret_name, source.items, mode, bool(source.optional), sources)


def _secret_projection(source: SecretProjection, mode: int, sources: PayloadSources) -> Payload:
    return _secret(source.name, source.items, mode, bool(source.optional), sources)


def _secret(name: str, items: Sequence[KeyToPath], mode: int, is_optional: bool, sources: PayloadSources) -> Payload:
    found: Secret | None = sources.objects.secrets.get(name)
    if found is None and not is_optional:
        raise PayloadError(f'secret "{name}" not found')
    data = found.data if found is not None else {}
    return _keys(data, items, mode, is_optional, "references non-existent secret key: {}")


def _keys(data: Mapping[str, bytes], items: Sequence[KeyToPath], mode: int, is_optional: bool, missing: str) -> Payload:
    """All keys by their names; with ``items`` those keys, by their paths. Raises PayloadError."""
    if not items:
        return {key: FileProjection(value, mode) for key, value in data.items()}
    for item in items:
        if item.key not in data and not is_optional:
            raise PayloadError(missing.format(item.key))
    return {
        item.path: FileProjection(data[item.key], mode if item.mode is None else item.mode)
        for item in items
        if item.key in data
    }


def _downward_api(
    source: DownwardAPIVolumeSource | DownwardAPIProjection, mode: int, sources: PayloadSources
) -> Payload:
    payload: dict[str, FileProjection] = {}
    problems: list[str] = []
    size_bytes = 0
    for file in source.items:
        try:
            data = _field(file, sources).encode()
        except ConfigError as error:
            problems.append(error.message)
            continue
        size_bytes += len(data)
        _check_size(size_bytes)
        payload[file.path] = FileProjection(data, mode if file.mode is None else file.mode)
    if problems:
        raise PayloadError(*problems)
    return payload


def _field(file: DownwardAPIVolumeFile, sources: PayloadSources) -> str:
    """Raises ConfigError."""
    if file.field_ref is not None:
        return field_value(sources.pod, file.field_ref.field_path)
    if file.resource_field_ref is not None:
        return resource_value(file.resource_field_ref, sources.pod, None, sources.node)
    return ""


def _projected(source: ProjectedVolumeSource, mode: int, sources: PayloadSources) -> Payload:
    """The files of all sources. Where two have one path the last one counts."""
    payload: dict[str, FileProjection] = {}
    problems: list[str] = []
    for projection in source.sources:
        try:
            payload.update(_projection(projection, mode, sources))
        except PayloadError as error:
            problems += error.problems
    if problems:
        raise PayloadError(*problems)
    return payload


def _projection(projection: VolumeProjection, mode: int, sources: PayloadSources) -> Payload:
    """Raises PayloadError; also for sources that are refused when the manifest is read."""
    for attribute in ("secret", "config_map", "downward_api"):
        source = getattr(projection, attribute)
        if source is not None:
            return cleaned(_MAKERS[type(source)](source, mode, sources))
    if projection.service_account_token is not None:
        return cleaned(_token(projection.service_account_token, mode, sources))
    if projection.cluster_trust_bundle is not None:
        return cleaned(_trust_anchors(projection.cluster_trust_bundle, mode, sources))
    raise PayloadError(_NO_SERVER)


def _token(source: ServiceAccountTokenProjection, mode: int, sources: PayloadSources) -> Payload:
    """Raises PayloadError while there is none."""
    if sources.objects.cluster is None:
        raise PayloadError(_NO_SERVER)
    found = sources.objects.cluster.token(token_request(source))
    if found is None or found.problem:
        raise PayloadError(found.problem if found is not None else "failed to fetch token: it was not asked for yet")
    return {source.path: _private(found.token.encode(), mode, sources.pod)}


def _trust_anchors(source: ClusterTrustBundleProjection, mode: int, sources: PayloadSources) -> Payload:
    """Raises PayloadError while there are none."""
    if sources.objects.cluster is None:
        raise PayloadError(_NO_SERVER)
    found = sources.objects.cluster.anchors(source)
    if found is None or found.problem:
        raise PayloadError(found.problem if found is not None else "its trust anchors were not asked for yet")
    return {source.path: _private(found.pem.encode(), mode, sources.pod)}


def _private(data: bytes, mode: int, pod: Pod) -> FileProjection:
    """A file that nobody reads but the fsGroup and the user as whom all containers run, where the pod has either."""
    context, user = pod.spec.security_context, common_user(pod)
    is_private = user is not None or (context is not None and context.fs_group is not None)
    return FileProjection(data, OWNER_MODE if is_private else mode, user)


def common_user(pod: Pod) -> int | None:
    """The user as whom all containers run by the manifest; None when one says none or they differ (FsUserFrom,
    pkg/volume/util/util.go)."""
    of_pod = pod.spec.security_context.run_as_user if pod.spec.security_context is not None else None
    users = {
        of_pod if (own := container.security_context) is None or own.run_as_user is None else own.run_as_user
        for container in (*pod.spec.init_containers, *pod.spec.containers)
    }
    return users.pop() if len(users) == 1 else None


_MAKERS: Final[Mapping[type[msgspec.Struct], Callable[[Any, int, PayloadSources], Payload]]] = {
    ConfigMapVolumeSource: _config_map,
    ConfigMapProjection: _config_map,
    SecretVolumeSource: _secret_volume,
    SecretProjection: _secret_projection,
    DownwardAPIVolumeSource: _downward_api,
    DownwardAPIProjection: _downward_api,
    ProjectedVolumeSource: _projected,
}


# --- paths -------------------------------------------------------------------------------------------------------


def cleaned(payload: Payload) -> Payload:
    """A payload with the shortest form of each path. Raises PayloadError for one that is not below the volume, and for
    a file that would have to be a directory too."""
    clean: dict[str, FileProjection] = {}
    for path, file in payload.items():
        problem = path_problem(path)
        if problem is not None:
            raise PayloadError(problem)
        clean[posixpath.normpath(path)] = file
    directories = {above for path in clean for above in _above(path)}
    for path in clean:
        if path in directories:
            raise PayloadError(f"invalid path: is a directory of another file: {path}")
    return clean


def path_problem(path: str) -> str | None:
    """Reason for which a path is no valid file below a volume.

    More than upstream's validatePath: the writer's own names are refused in every form (``./..data``), and so is what
    names no file.
    """
    if not path:
        return 'invalid path: must not be empty: ""'
    if path.startswith("/"):
        return f"invalid path: must be relative path: {path}"
    if "\0" in path:
        return "invalid path: must not contain NUL"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"invalid path: must be less than or equal to {MAX_PATH_BYTES} characters"
    names = path.split("/")
    if ".." in names:
        return f"invalid path: must not contain '..': {path}"
    if any(len(name.encode()) > MAX_NAME_BYTES for name in names):
        return f"invalid path: filenames must be less than or equal to {MAX_NAME_BYTES} characters"
    if len(names) > MAX_PATH_NAMES:
        return f"invalid path: must have {MAX_PATH_NAMES} elements or less"
    clean = posixpath.normpath(path)
    if clean.startswith(".."):
        return f"invalid path: must not start with '..': {path}"
    return f"invalid path: must name a file: {path}" if clean == "." else None


def _above(path: str) -> Iterable[str]:
    while path := posixpath.dirname(path):
        yield path


def _aggregated(problems: Sequence[str]) -> str:
    """As k8s.io/apimachinery/pkg/util/errors prints several."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
