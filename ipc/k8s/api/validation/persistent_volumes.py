"""PersistentVolumes and PersistentVolumeClaims.

Source: pkg/apis/core/validation ValidatePersistentVolume, ValidatePersistentVolumeUpdate,
ValidatePersistentVolumeClaim, ValidatePersistentVolumeClaimUpdate. Differs on purpose: what an ordinary user's agent
cannot do (block devices, kinds of volumes that need a mount, Recycle, data sources) is refused, with what to use
instead.
"""

from typing import Final

import msgspec

from ipc.k8s.api.errors import FieldError, forbidden, invalid, not_supported, required
from ipc.k8s.api.podman_annotations import claim_annotation_errors
from ipc.k8s.api.quantity import QuantityError, parse_quantity
from ipc.k8s.api.v1.base import Quantity
from ipc.k8s.api.v1.meta import LabelSelector
from ipc.k8s.api.v1.persistent_volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSource,
    PersistentVolumeSpec,
)
from ipc.k8s.api.v1.volume import PersistentVolumeAccessMode, PersistentVolumeClaimSpec, PersistentVolumeMode
from ipc.k8s.api.validation.checks import Errors, chosen, exactly_one, first_errors, if_set, indexed, needs, well_formed
from ipc.k8s.api.validation.metadata import validate_labels, validate_metadata
from ipc.k8s.api.validation.names import DNS_LABEL, DNS_SUBDOMAIN, host_path_problem, qualified_name_problem
from ipc.k8s.api.validation.node_selectors import validate_node_selector

STORAGE: Final = "storage"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
_SUPPORTED: Final = ("hostPath", "local")
_INSTEAD: Final = (
    "only hostPath and local: mount it on the host and name its directory, or state a claim of class podman and make "
    "its Podman volume with the driver and options that it needs"
)


def validate_persistent_volume(found: PersistentVolume) -> tuple[FieldError, ...]:
    """Faults for which Kubernetes, or this agent, refuses it; () when it is valid. At most MAX_FIELD_ERRORS."""
    return first_errors(
        validate_metadata(found.metadata, "metadata"),
        _no_namespace(found),
        _access_modes(found.spec.access_modes, "spec.accessModes"),
        _capacity(found.spec),
        _source(found.spec),
        _reclaim_policy(found.spec),
        _claim_ref(found.spec),
        _node_affinity(found.spec),
        if_set("spec.storageClassName", found.spec.storage_class_name, DNS_SUBDOMAIN.problem),
        _volume_mode(found.spec.volume_mode),
        _mount_options(found.spec),
    )


def validate_persistent_volume_update(new: PersistentVolume, old: PersistentVolume) -> tuple[FieldError, ...]:
    """Changes from ``old`` to ``new`` that Kubernetes would refuse."""
    was, is_ = _source_of(old.spec), _source_of(new.spec)
    same_source = was == is_
    findings = (
        ()
        if same_source
        else (forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"),),
        _immutable("spec.volumeMode", old.spec.volume_mode, new.spec.volume_mode),
        _immutable("spec.nodeAffinity", old.spec.node_affinity, new.spec.node_affinity)
        if old.spec.node_affinity
        else (),
    )
    return first_errors(*findings)


def validate_persistent_volume_claim(found: PersistentVolumeClaim) -> tuple[FieldError, ...]:
    """Faults for which Kubernetes would refuse a claim; () when it is valid."""
    spec = found.spec
    return first_errors(
        validate_metadata(found.metadata, "metadata"),
        claim_annotation_errors(found.metadata.annotations, "metadata.annotations"),
        _access_modes(spec.access_modes, "spec.accessModes"),
        _selector(spec.selector, "spec.selector"),
        _requests(spec),
        if_set("spec.storageClassName", spec.storage_class_name, DNS_SUBDOMAIN.problem),
        if_set("spec.volumeName", spec.volume_name, DNS_SUBDOMAIN.problem),
        _volume_mode(spec.volume_mode),
        _data_source(spec),
    )


def validate_persistent_volume_claim_update(
    new: PersistentVolumeClaim, old: PersistentVolumeClaim
) -> tuple[FieldError, ...]:
    """Changes from ``old`` to ``new`` that Kubernetes would refuse. What is asked for may grow, and is only shown."""
    if _fixed(new.spec) == _fixed(old.spec):
        return ()
    words = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    return (forbidden("spec", words),)


def _fixed(spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
    free = PersistentVolumeClaimSpec()
    return msgspec.structs.replace(
        spec, resources=free.resources, volume_attributes_class_name=free.volume_attributes_class_name
    )


def _immutable(path: str, old: object, new: object) -> Errors:
    if old != new:
        yield forbidden(path, "field is immutable")


def _no_namespace(found: PersistentVolume) -> Errors:
    if found.metadata.namespace:
        yield forbidden("metadata.namespace", "not allowed on this type")


def _source_of(spec: PersistentVolumeSpec) -> tuple[object, ...]:
    return tuple((name, getattr(spec, name)) for name in PersistentVolumeSource.__struct_fields__)


def _source(spec: PersistentVolumeSpec) -> Errors:
    names = chosen(spec, PersistentVolumeSource)
    yield from exactly_one("spec", names, "a volume type")
    for name in names:
        if name not in _SUPPORTED:
            yield forbidden(f"spec.{name}", f"not supported here: {_INSTEAD}")
    for name, source in (("hostPath", spec.host_path), ("local", spec.local)):
        if source is not None:
            yield from well_formed(f"spec.{name}.path", source.path, host_path_problem)
    if spec.local is not None and spec.local.fs_type:
        yield forbidden("spec.local.fsType", "is of block devices, which only root can mount: name a directory")


def _access_modes(modes: tuple[PersistentVolumeAccessMode, ...], path: str) -> Errors:
    if not modes:
        yield required(path, "at least 1 access mode is required")
    if READ_WRITE_ONCE_POD in modes and len(modes) > 1:
        yield forbidden(path, f"may not use {READ_WRITE_ONCE_POD} with other access modes")


def _capacity(spec: PersistentVolumeSpec) -> Errors:
    if STORAGE not in spec.capacity or len(spec.capacity) > 1:
        yield not_supported("spec.capacity", ", ".join(spec.capacity), (STORAGE,))
    for name, quantity in spec.capacity.items():
        yield from _positive(f"spec.capacity[{name}]", quantity)


def _requests(spec: PersistentVolumeClaimSpec) -> Errors:
    path = f"spec.resources.requests[{STORAGE}]"
    if STORAGE not in spec.resources.requests:
        yield required(path)
    else:
        yield from _positive(path, spec.resources.requests[STORAGE])


def _positive(path: str, quantity: Quantity) -> Errors:
    try:
        value = parse_quantity(quantity)
    except QuantityError as error:
        yield invalid(path, quantity, str(error))
        return
    if value <= 0:
        yield invalid(path, quantity, "must be greater than zero")


def _reclaim_policy(spec: PersistentVolumeSpec) -> Errors:
    if spec.persistent_volume_reclaim_policy == "Recycle":
        yield not_supported("spec.persistentVolumeReclaimPolicy", "Recycle", ("Retain", "Delete"))


def _claim_ref(spec: PersistentVolumeSpec) -> Errors:
    if spec.claim_ref is not None:
        yield from well_formed("spec.claimRef.name", spec.claim_ref.name, DNS_SUBDOMAIN.problem)
        yield from well_formed("spec.claimRef.namespace", spec.claim_ref.namespace, DNS_LABEL.problem)


def _node_affinity(spec: PersistentVolumeSpec) -> Errors:
    nodes = spec.node_affinity.required if spec.node_affinity is not None else None
    if nodes is not None:
        yield from validate_node_selector(nodes, "spec.nodeAffinity.required")
    elif spec.node_affinity is not None:
        yield required("spec.nodeAffinity.required", "must specify required node constraints")
    if spec.local is not None and nodes is None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")


def _volume_mode(mode: PersistentVolumeMode | None) -> Errors:
    if mode == "Block":
        yield not_supported("spec.volumeMode", mode, ("Filesystem",))


def _mount_options(spec: PersistentVolumeSpec) -> Errors:
    if spec.mount_options:
        yield forbidden("spec.mountOptions", "neither hostPath nor local has any")


def _selector(selector: LabelSelector | None, path: str) -> Errors:
    """ValidateLabelSelector."""
    if selector is None:
        return
    yield from validate_labels(selector.match_labels, f"{path}.matchLabels")
    for below, one in indexed(f"{path}.matchExpressions", selector.match_expressions):
        yield from well_formed(f"{below}.key", one.key, qualified_name_problem)
        wants_values = one.operator in ("In", "NotIn")
        if wants_values:
            yield from needs(
                f"{below}.values", "".join(one.values), "must be specified when `operator` is 'In' or 'NotIn'"
            )
        elif one.values:
            yield forbidden(f"{below}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")


def _data_source(spec: PersistentVolumeClaimSpec) -> Errors:
    for name, source in (("dataSource", spec.data_source), ("dataSourceRef", spec.data_source_ref)):
        if source is not None:
            yield forbidden(f"spec.{name}", "not supported here: nothing copies a volume; fill it by an init container")
