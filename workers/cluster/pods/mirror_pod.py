"""Mirror pods: what the server knows of the static pods of this node (pkg/kubelet/pod/mirror_client.go). Pure.

A static pod keeps its name here; on the server it is called ``NAME-NODE``, as upstream's static pods are everywhere.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.annotations import CONFIG_HASH, CONFIG_MIRROR
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from workers.cluster.pods.known_pod import KnownPod

STATIC_SOURCES: Final = frozenset({"file", "http"})
"""Sources whose pods are static (pkg/kubelet/types/pod_update.go, IsStaticPod)."""
_EVERY_NO_EXECUTE: Final = {"operator": "Exists", "effect": "NoExecute"}


def mirror_name(pod_name: str, node_name: str) -> str:
    """Name of a static pod in the cluster (pkg/kubelet/config/common.go, generatePodName)."""
    return f"{pod_name}-{node_name.lower()}"


def content_hash(pod: Pod) -> str:
    """Hash that tells one content of a static pod from another (kubetypes.ConfigHashAnnotationKey)."""
    return pod.metadata.annotations.get(CONFIG_HASH, "") or pod.metadata.uid


def mirrors(known: KnownPod, pod: Pod) -> bool:
    """Whether a mirror is that of the static pod as it is now (IsMirrorPodOf)."""
    return (known.metadata.annotations or {}).get(CONFIG_MIRROR) == content_hash(pod)


def is_of_earlier_life(known: KnownPod, phase: str) -> bool:
    """Whether a mirror has ended, and its static pod, in that phase now, came again since or has ended otherwise: no
    server takes that of one pod."""
    ended = known.status_value().get("phase")
    return ended in TERMINAL_PHASES and ended != phase


def mirror_pod(pod: Pod, node_name: str, node_uid: str) -> bytes:
    """JSON of the mirror to create, owned by the Node."""
    value: JsonObject = msgspec.json.decode(msgspec.json.encode(pod))
    metadata, spec = pod.metadata, value["spec"]
    tolerations = [each for each in spec.get("tolerations", ()) if each != _EVERY_NO_EXECUTE]
    mirror = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": mirror_name(metadata.name, node_name),
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "labels": dict(metadata.labels),
            "annotations": {**metadata.annotations, CONFIG_MIRROR: content_hash(pod)},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid, "controller": True}
            ],
        },
        "spec": {**spec, "nodeName": node_name, "tolerations": [*tolerations, _EVERY_NO_EXECUTE]},
        "status": {"phase": "Pending"},
    }
    return msgspec.json.encode(mirror)
