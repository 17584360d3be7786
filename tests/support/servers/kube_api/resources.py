"""Resources that the server serves: groups, versions, plural names, kinds, and the rules that differ between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_ALL: Final = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})
_CREATE_ONLY: Final = frozenset({"create"})


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """One resource."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = False
    verbs: frozenset[str] = _ALL
    subresources: Mapping[str, frozenset[str]]
    """Verbs by name."""
    fields: frozenset[str] = frozenset()
    """Field selectors beside metadata.name and metadata.namespace."""
    returns_deleted: bool = False
    """DELETE answers with the object, and not with a Status."""
    creates_on_update: bool = False
    """A PUT of an object that is not there creates it."""
    needs_version: bool = False
    """A PUT must say the resourceVersion."""
    has_generation: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


_STATUS: Final = {"status": frozenset({"get", "update", "patch"})}
_POD_FIELDS: Final = frozenset(
    {
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    }
)
_EVENT_FIELDS: Final = frozenset(
    {
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    }
)
_POD_SUBRESOURCES: Final = _STATUS | {
    "binding": _CREATE_ONLY,
    "eviction": _CREATE_ONLY,
    "resize": frozenset({"get", "update", "patch"}),
    "ephemeralcontainers": frozenset({"get", "update", "patch"}),
}


def _plain(plural: str, kind: str, group: str = "", **more: object) -> ResourceType:
    return ResourceType(plural=plural, kind=kind, group=group, **({"subresources": {}} | more))  # type: ignore[arg-type]


_TYPES: Final = (
    _plain("namespaces", "Namespace", subresources=_STATUS, fields=frozenset({"status.phase"})),
    _plain("nodes", "Node", subresources=_STATUS, fields=frozenset({"spec.unschedulable"})),
    _plain(
        "pods",
        "Pod",
        namespaced=True,
        subresources=_POD_SUBRESOURCES,
        fields=_POD_FIELDS,
        returns_deleted=True,
        has_generation=True,
    ),
    _plain("events", "Event", namespaced=True, fields=_EVENT_FIELDS, creates_on_update=True),
    _plain("configmaps", "ConfigMap", namespaced=True),
    _plain("secrets", "Secret", namespaced=True, fields=frozenset({"type"})),
    _plain(
        "services",
        "Service",
        namespaced=True,
        subresources=_STATUS,
        fields=frozenset({"spec.clusterIP", "spec.type"}),
        returns_deleted=True,
        creates_on_update=True,
    ),
    _plain(
        "serviceaccounts",
        "ServiceAccount",
        namespaced=True,
        subresources={"token": _CREATE_ONLY},
        returns_deleted=True,
    ),
    _plain(
        "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True, subresources=_STATUS, returns_deleted=True
    ),
    _plain("persistentvolumes", "PersistentVolume", subresources=_STATUS, returns_deleted=True),
    _plain("leases", "Lease", "coordination.k8s.io", namespaced=True, creates_on_update=True, needs_version=True),
    _plain("csinodes", "CSINode", "storage.k8s.io", needs_version=True),
    _plain("csidrivers", "CSIDriver", "storage.k8s.io"),
    _plain("volumeattachments", "VolumeAttachment", "storage.k8s.io", subresources=_STATUS),
    _plain("runtimeclasses", "RuntimeClass", "node.k8s.io", needs_version=True),
    _plain("priorityclasses", "PriorityClass", "scheduling.k8s.io", needs_version=True),
    _plain("resourceslices", "ResourceSlice", "resource.k8s.io", fields=frozenset({"spec.nodeName", "spec.driver"})),
    _plain(
        "certificatesigningrequests",
        "CertificateSigningRequest",
        "certificates.k8s.io",
        subresources=_STATUS | {"approval": frozenset({"get", "update", "patch"})},
        fields=frozenset({"spec.signerName"}),
        needs_version=True,
    ),
    _plain(
        "clustertrustbundles",
        "ClusterTrustBundle",
        "certificates.k8s.io",
        version="v1beta1",
        fields=frozenset({"spec.signerName"}),
        needs_version=True,
    ),
    _plain("tokenreviews", "TokenReview", "authentication.k8s.io", verbs=_CREATE_ONLY),
    _plain("subjectaccessreviews", "SubjectAccessReview", "authorization.k8s.io", verbs=_CREATE_ONLY),
)
BY_PLURAL: Final[Mapping[str, ResourceType]] = {found.plural: found for found in _TYPES}
BY_PATH: Final[Mapping[tuple[str, str, str], ResourceType]] = {
    (found.group, found.version, found.plural): found for found in _TYPES
}
_BY_KIND: Final[Mapping[tuple[str, str], ResourceType]] = {(found.api_version, found.kind): found for found in _TYPES}


def type_of(object_: Mapping[str, object]) -> ResourceType:
    """The type that an object says it has. Raises KeyError."""
    return _BY_KIND[str(object_["apiVersion"]), str(object_["kind"])]
