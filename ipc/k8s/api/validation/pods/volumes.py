"""Volumes of a pod.

Source: pkg/apis/core/validation ValidateVolumes, validateVolumeSource and the functions per source.
Differs on purpose: the insides of sources that need a storage service (`ipc.k8s.api.v1.volume_attached`) are not looked
at, for no pod with one of them is run; and an emptyDir of HugePages, which no rootless user has, and a relative
hostPath are refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipc.k8s.api.errors import invalid, not_supported, required
from ipc.k8s.api.schema import struct_fields
from ipc.k8s.api.v1.env import ObjectFieldSelector, ResourceFieldSelector
from ipc.k8s.api.v1.projected import (
    ClusterTrustBundleProjection,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    KeyToPath,
    PodCertificateProjection,
    ProjectedVolumeSource,
    SecretProjection,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    VolumeProjection,
)
from ipc.k8s.api.v1.volume import (
    MEMORY_MEDIUM,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    GitRepoVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    PersistentVolumeClaimVolumeSource,
    Volume,
    VolumeSource,
)
from ipc.k8s.api.validation.checks import (
    Errors,
    at_most_one,
    chosen,
    exactly_one,
    if_set,
    in_range,
    indexed,
    needs,
    unique,
    well_formed,
)
from ipc.k8s.api.validation.names import DNS_LABEL, DNS_SUBDOMAIN, below_volume_problem, host_path_problem
from ipc.k8s.api.validation.pods.env import validate_field_ref, validate_resource_field_ref
from ipc.k8s.api.validation.resources import validate_quantity

MAX_FILE_MODE: Final = 0o777
MIN_TOKEN_EXPIRATION_SECONDS: Final = 600
MAX_TOKEN_EXPIRATION_SECONDS: Final = 2**32
_MEDIA: Final = ("", MEMORY_MEDIUM)
_FIELD_PATHS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels",
    "metadata.annotations",
)


def validate_volumes(volumes: Sequence[Volume], path: str) -> Errors:
    """Names, and each volume's source. No source at all stands for an emptyDir."""
    yield from unique((f"{below}.name", volume.name) for below, volume in indexed(path, volumes))
    for below, volume in indexed(path, volumes):
        yield from well_formed(f"{below}.name", volume.name, DNS_LABEL.problem)
        yield from at_most_one(below, chosen(volume, VolumeSource))
        yield from _members(volume, VolumeSource, below)


def _members(union: msgspec.Struct, kind: type[msgspec.Struct], path: str) -> Errors:
    for name in chosen(union, kind):
        source = getattr(union, struct_fields(kind)[name].attribute)
        check = _CHECKS.get(type(source))
        if check is not None:
            yield from check(source, f"{path}.{name}")


def _mode(mode: int | None, path: str) -> Errors:
    yield from in_range(path, mode, 0, MAX_FILE_MODE)


def _host_path(source: HostPathVolumeSource, path: str) -> Errors:
    yield from well_formed(f"{path}.path", source.path, host_path_problem)


def _empty_dir(source: EmptyDirVolumeSource, path: str) -> Errors:
    if source.medium not in _MEDIA:
        yield not_supported(f"{path}.medium", source.medium, _MEDIA)
    if source.size_limit is not None:
        yield from validate_quantity(f"{path}.sizeLimit", source.size_limit)


def _git_repo(source: GitRepoVolumeSource, path: str) -> Errors:
    yield from needs(f"{path}.repository", source.repository)
    yield from if_set(f"{path}.directory", source.directory, below_volume_problem)


def _claim(source: PersistentVolumeClaimVolumeSource, path: str) -> Errors:
    yield from well_formed(f"{path}.claimName", source.claim_name, DNS_SUBDOMAIN.problem)


def _ephemeral(source: EphemeralVolumeSource, path: str) -> Errors:
    if source.volume_claim_template is None:
        yield required(f"{path}.volumeClaimTemplate")


def _image(source: ImageVolumeSource, path: str) -> Errors:
    yield from needs(f"{path}.reference", source.reference)


def _secret_volume(source: SecretVolumeSource, path: str) -> Errors:
    yield from well_formed(f"{path}.secretName", source.secret_name, DNS_SUBDOMAIN.problem)
    yield from _mode(source.default_mode, f"{path}.defaultMode")
    yield from _items(source.items, f"{path}.items")


def _config_map_volume(source: ConfigMapVolumeSource, path: str) -> Errors:
    yield from _object_keys(source, path)
    yield from _mode(source.default_mode, f"{path}.defaultMode")


def _object_keys(source: ConfigMapVolumeSource | ConfigMapProjection | SecretProjection, path: str) -> Errors:
    yield from well_formed(f"{path}.name", source.name, DNS_SUBDOMAIN.problem)
    yield from _items(source.items, f"{path}.items")


def _items(items: Sequence[KeyToPath], path: str) -> Errors:
    for below, item in indexed(path, items):
        yield from needs(f"{below}.key", item.key)
        yield from well_formed(f"{below}.path", item.path, below_volume_problem)
        yield from _mode(item.mode, f"{below}.mode")


def _downward_api_volume(source: DownwardAPIVolumeSource, path: str) -> Errors:
    yield from _mode(source.default_mode, f"{path}.defaultMode")
    yield from _downward_api_files(source, path)


def _downward_api_files(source: DownwardAPIVolumeSource | DownwardAPIProjection, path: str) -> Errors:
    for below, file in indexed(f"{path}.items", source.items):
        yield from well_formed(f"{below}.path", file.path, below_volume_problem)
        names = chosen(file, DownwardAPIVolumeFile, but=("path", "mode"))
        yield from exactly_one(below, names, "fieldRef or resourceFieldRef")
        yield from _downward_api_references(file.field_ref, file.resource_field_ref, below)
        yield from _mode(file.mode, f"{below}.mode")


def _downward_api_references(
    field: ObjectFieldSelector | None, resource: ResourceFieldSelector | None, path: str
) -> Errors:
    if field is not None:
        yield from validate_field_ref(field, f"{path}.fieldRef", _FIELD_PATHS)
    if resource is not None:
        yield from needs(f"{path}.resourceFieldRef.containerName", resource.container_name)
        yield from validate_resource_field_ref(resource, f"{path}.resourceFieldRef")


def _projected(source: ProjectedVolumeSource, path: str) -> Errors:
    yield from _mode(source.default_mode, f"{path}.defaultMode")
    for below, projection in indexed(f"{path}.sources", source.sources):
        yield from exactly_one(below, chosen(projection, VolumeProjection), "a projection source")
        yield from _members(projection, VolumeProjection, below)
    yield from _conflicting_paths(source, path)


def _conflicting_paths(source: ProjectedVolumeSource, path: str) -> Errors:
    seen: set[str] = set()
    for file in (file for projection in source.sources for file in _projected_files(projection)):
        if file in seen:
            yield invalid(path, file, "conflicting duplicate paths")
        seen.add(file)


def _projected_files(projection: VolumeProjection) -> tuple[str, ...]:
    of_items = (projection.secret, projection.config_map, projection.downward_api)
    of_paths = (projection.service_account_token, projection.cluster_trust_bundle)
    items = tuple(item.path for source in of_items if source is not None for item in source.items)
    return (*items, *(source.path for source in of_paths if source is not None))


def _token(source: ServiceAccountTokenProjection, path: str) -> Errors:
    yield from well_formed(f"{path}.path", source.path, below_volume_problem)
    seconds_path = f"{path}.expirationSeconds"
    yield from in_range(
        seconds_path, source.expiration_seconds, MIN_TOKEN_EXPIRATION_SECONDS, MAX_TOKEN_EXPIRATION_SECONDS
    )


def _trust_bundle(source: ClusterTrustBundleProjection, path: str) -> Errors:
    yield from well_formed(f"{path}.path", source.path, below_volume_problem)
    if bool(source.name) == bool(source.signer_name):
        yield invalid(path, source.name or "", "exactly one of name and signerName must be set")


def _certificate(source: PodCertificateProjection, path: str) -> Errors:
    yield from needs(f"{path}.signerName", source.signer_name)
    yield from needs(f"{path}.keyType", source.key_type)
    files = (source.credential_bundle_path, source.key_path, source.certificate_chain_path)
    if not any(files):
        yield required(path, "must specify a path for the credentials")
    for name, file in zip(("credentialBundlePath", "keyPath", "certificateChainPath"), files, strict=True):
        yield from if_set(f"{path}.{name}", file, below_volume_problem)


_CHECKS: Final[Mapping[type[msgspec.Struct], Callable[[Any, str], Errors]]] = {
    HostPathVolumeSource: _host_path,
    EmptyDirVolumeSource: _empty_dir,
    GitRepoVolumeSource: _git_repo,
    PersistentVolumeClaimVolumeSource: _claim,
    EphemeralVolumeSource: _ephemeral,
    ImageVolumeSource: _image,
    SecretVolumeSource: _secret_volume,
    ConfigMapVolumeSource: _config_map_volume,
    DownwardAPIVolumeSource: _downward_api_volume,
    ProjectedVolumeSource: _projected,
    SecretProjection: _object_keys,
    ConfigMapProjection: _object_keys,
    DownwardAPIProjection: _downward_api_files,
    ServiceAccountTokenProjection: _token,
    ClusterTrustBundleProjection: _trust_bundle,
    PodCertificateProjection: _certificate,
}
