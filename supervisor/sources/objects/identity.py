"""Identity of an object of a manifest: UID, namespace, annotations, of a pod also its node. Pure.

Mirrors pkg/kubelet/config/common.go, applyDefaults. On purpose different: the UID does not depend on the content, so
that an edit is an UPDATE of the same pod; ``config.hash`` is the hash of the content (upstream's is the UID, which
there is the same thing); the name gets no node suffix and the pod no toleration, because no scheduler's pods are near.
"""

from __future__ import annotations

import hashlib
from typing import Final, TypeVar

import msgspec

from ipc.k8s.api.annotations import CONFIG_HASH, CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE, LAST_APPLIED
from ipc.k8s.api.defaults import DEFAULT_NAMESPACE
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.podobjects.config_objects import ObjectKind

LOCAL_ANNOTATIONS: Final = frozenset({CONFIG_SOURCE, CONFIG_SEEN, CONFIG_MIRROR})
"""Added on this host; never a difference (pkg/kubelet/config/config.go, localAnnotations)."""
_VERSION_8: Final = 0x8 << 76
_VARIANT: Final = 0x2 << 62
_UUID_FREE_BITS: Final = (1 << 128) - 1 ^ (0xF << 76) ^ (0x3 << 62)

_O = TypeVar("_O", ConfigMap, Secret, PriorityClass, RuntimeClass, PersistentVolume, PersistentVolumeClaim)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The agent, and the source of its that states an object."""

    instance: str
    node_name: str
    source: str
    namespace: str = DEFAULT_NAMESPACE
    """Namespace of objects that state none."""


def pod_uid(instance: str, source: str, namespace: str, name: str) -> str:
    """The UID of a pod that states none: the same at every start, on every host, for every content.

    A version 8 UUID (RFC 9562) of the first 128 bits of a SHA-256.
    """
    digest = hashlib.sha256("\0".join((instance, source, namespace, name)).encode()).digest()
    bits = int.from_bytes(digest[:16], "big") & _UUID_FREE_BITS | _VERSION_8 | _VARIANT
    text = f"{bits:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def in_namespace(pod: Pod, origin: Origin) -> Pod:
    """The pod in the origin's namespace, if it states none."""
    if pod.metadata.namespace:
        return pod
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, namespace=origin.namespace))


def identify(pod: Pod, origin: Origin) -> Pod:
    """Give the pod its namespace, UID, node and annotations, and take away what a cluster wrote into its metadata.

    A stated UID or namespace stays; the node is this one, whatever is stated, as upstream. A manifest that was exported
    from a cluster is a new pod here (apiserver pkg/registry/rest/create.go, BeforeCreate).
    """
    metadata = pod.metadata
    namespace = metadata.namespace or origin.namespace
    spec = msgspec.structs.replace(pod.spec, node_name=origin.node_name)
    content = content_hash(spec, metadata)
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(
            _of_this_host(metadata),
            namespace=namespace,
            uid=metadata.uid or pod_uid(origin.instance, origin.source, namespace, metadata.name),
            annotations={**metadata.annotations, CONFIG_SOURCE: origin.source, CONFIG_HASH: content},
        ),
        spec=spec,
    )


def identify_object(found: _O, origin: Origin) -> _O:
    """Give identity to an object of another kind, which may be one without namespaces."""
    metadata = found.metadata
    namespace = (metadata.namespace or origin.namespace) if ObjectKind(found.kind).is_namespaced else ""
    # No namespace has a slash in it.
    uid = metadata.uid or pod_uid(origin.instance, origin.source, f"{found.kind}/{namespace}", metadata.name)
    annotations = {key: value for key, value in metadata.annotations.items() if key != LAST_APPLIED}
    metadata = msgspec.structs.replace(_of_this_host(metadata), namespace=namespace, uid=uid, annotations=annotations)
    return msgspec.structs.replace(found, metadata=metadata)


def _of_this_host(metadata: ObjectMeta) -> ObjectMeta:
    """Without what a cluster wrote into it."""
    return msgspec.structs.replace(
        metadata,
        generation=0,
        self_link="",
        resource_version="",
        managed_fields=(),
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
    )


def content_hash(spec: PodSpec, metadata: ObjectMeta) -> str:
    """128 bits, hex, of all that makes a difference: spec, labels and the annotations that are not our own."""
    ours = LOCAL_ANNOTATIONS | {CONFIG_HASH}
    stated = {key: value for key, value in metadata.annotations.items() if key not in ours}
    content = msgspec.json.encode((spec, metadata.labels, stated), order="deterministic")
    return hashlib.sha256(content).hexdigest()[:32]
