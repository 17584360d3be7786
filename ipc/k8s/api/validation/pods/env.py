"""Environment variables.

Source: pkg/apis/core/validation ValidateEnv, ValidateEnvFrom, validateEnvVarValueFrom, validateObjectFieldSelector,
validateContainerResourceFieldSelector, validateFileKeySelector.
"""

import re
from collections.abc import Mapping
from typing import Final

from ipc.k8s.api.errors import forbidden, invalid, not_found, not_supported, required
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.env import (
    ConfigMapKeySelector,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    FileKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from ipc.k8s.api.v1.volume import Volume, VolumeSource
from ipc.k8s.api.validation.checks import Errors, chosen, exactly_one, if_set, indexed, well_formed
from ipc.k8s.api.validation.names import (
    CONFIG_KEY,
    DNS_SUBDOMAIN,
    ENV_NAME,
    below_volume_problem,
    qualified_name_problem,
)
from ipc.k8s.api.validation.resources import validate_divisor

ENV_FIELD_PATHS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_SUBSCRIPTED_FIELD_PATH: Final = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]", re.DOTALL)
_FORMER_FIELD_PATHS: Final = {"spec.host": "spec.nodeName"}
"""Field paths that old manifests may have (pkg/apis/core/pods/helpers.go, ConvertDownwardAPIFieldLabel), to today's."""
_LABELS: Final = "metadata.labels"
_CONTAINER_RESOURCES: Final = re.compile(r"(?:limits|requests)\.(?:cpu|memory|ephemeral-storage|hugepages-\S+)")


def validate_env(container: Container, volumes: Mapping[str, Volume], path: str) -> Errors:
    """`env` and `envFrom` of a container; `volumes` are the pod's by name. The same name twice is allowed: the last one
    counts."""
    for below, variable in indexed(f"{path}.env", container.env):
        yield from well_formed(f"{below}.name", variable.name, ENV_NAME.problem)
        if variable.value_from is not None:
            yield from _value_from(variable, variable.value_from, volumes, f"{below}.valueFrom")
    for below, source in indexed(f"{path}.envFrom", container.env_from):
        yield from _env_from(source, below)


def _value_from(variable: EnvVar, source: EnvVarSource, volumes: Mapping[str, Volume], path: str) -> Errors:
    yield from exactly_one(path, chosen(source, EnvVarSource), "one source of the value")
    if variable.value:
        yield forbidden(path, "may not be set together with a value that is not empty")
    if source.field_ref:
        yield from validate_field_ref(source.field_ref, f"{path}.fieldRef", ENV_FIELD_PATHS)
    if source.resource_field_ref:
        yield from validate_resource_field_ref(source.resource_field_ref, f"{path}.resourceFieldRef")
    if source.config_map_key_ref:
        yield from _key_ref(source.config_map_key_ref, f"{path}.configMapKeyRef")
    if source.secret_key_ref:
        yield from _key_ref(source.secret_key_ref, f"{path}.secretKeyRef")
    if source.file_key_ref:
        yield from _file_key_ref(source.file_key_ref, volumes, f"{path}.fileKeyRef")


def _env_from(source: EnvFromSource, path: str) -> Errors:
    yield from if_set(f"{path}.prefix", source.prefix, ENV_NAME.problem)
    yield from exactly_one(path, chosen(source, EnvFromSource, but=("prefix",)), "configMapRef or secretRef")
    for name, reference in (("configMapRef", source.config_map_ref), ("secretRef", source.secret_ref)):
        if reference is not None:
            yield from well_formed(f"{path}.{name}.name", reference.name, DNS_SUBDOMAIN.problem)


def _key_ref(reference: ConfigMapKeySelector | SecretKeySelector, path: str) -> Errors:
    yield from well_formed(f"{path}.name", reference.name, DNS_SUBDOMAIN.problem)
    yield from well_formed(f"{path}.key", reference.key, CONFIG_KEY.problem)


def _file_key_ref(reference: FileKeySelector, volumes: Mapping[str, Volume], path: str) -> Errors:
    yield from well_formed(f"{path}.key", reference.key, ENV_NAME.problem)
    yield from well_formed(f"{path}.path", reference.path, below_volume_problem)
    volume = volumes.get(reference.volume_name)
    if not reference.volume_name:
        yield required(f"{path}.volumeName")
    elif volume is None:
        yield not_found(f"{path}.volumeName", reference.volume_name)
    elif chosen(volume, VolumeSource) not in ((), ("emptyDir",)):  # no source at all stands for an emptyDir
        yield invalid(f"{path}.volumeName", reference.volume_name, "must be the name of an emptyDir volume")


def validate_field_ref(reference: ObjectFieldSelector, path: str, plain: tuple[str, ...]) -> Errors:
    """A pod field of the downward API; `plain` are those without subscript that may be used here."""
    if reference.api_version not in ("", "v1"):
        yield not_supported(f"{path}.apiVersion", reference.api_version, ["v1"])
    if not reference.field_path:
        yield required(f"{path}.fieldPath")
    elif subscripted := _SUBSCRIPTED_FIELD_PATH.fullmatch(reference.field_path):
        of, key = subscripted.groups()
        problem = qualified_name_problem(key if of == _LABELS else key.lower())
        if problem:
            yield invalid(f"{path}.fieldPath", reference.field_path, f"the key's {problem}")
    elif _FORMER_FIELD_PATHS.get(reference.field_path, reference.field_path) not in plain:
        supported = (*plain, "metadata.labels['<key>']", "metadata.annotations['<key>']")
        yield not_supported(f"{path}.fieldPath", reference.field_path, supported)


def validate_resource_field_ref(reference: ResourceFieldSelector, path: str) -> Errors:
    """A limit or request of the downward API."""
    if not reference.resource:
        yield required(f"{path}.resource")
    elif not _CONTAINER_RESOURCES.fullmatch(reference.resource):
        detail = "must be limits or requests, '.', and cpu, memory, ephemeral-storage or hugepages-<size>"
        yield invalid(f"{path}.resource", reference.resource, detail)
    yield from validate_divisor(reference, f"{path}.divisor")
