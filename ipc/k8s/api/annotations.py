"""Annotations that Kubernetes gives a meaning (pkg/kubelet/types/pod_update.go; k8s.io/api core/v1)."""

from typing import Final

from ipc.k8s.api.v1.pod import Pod

CONFIG_SOURCE: Final = "kubernetes.io/config.source"
API_SOURCE: Final = "api"
"""Value for a pod that a cluster has bound to this node (pkg/kubelet/types/pod_update.go, ApiserverSource)."""
CONFIG_HASH: Final = "kubernetes.io/config.hash"
CONFIG_SEEN: Final = "kubernetes.io/config.seen"
"""When a pod was first seen here. One that is gone and stated again has another, with the same UID."""
CONFIG_MIRROR: Final = "kubernetes.io/config.mirror"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Written by `kubectl apply`: the whole object once more, its values too."""


def is_api_pod(pod: Pod) -> bool:
    """Whether a cluster has bound the pod to this node."""
    return pod.metadata.annotations.get(CONFIG_SOURCE) == API_SOURCE
