"""Fields of a pod of which the table of support does not speak when the pod is a cluster's. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_SCHEDULED: Final = "the cluster's scheduler has acted on it"
_WINDOWS: Final = "means nothing on Linux, as upstream"
_CONTROLLERS: Final = "kept; controllers of the cluster act on it"
_ACCOUNT: Final = "tokens are asked for in the name of this service account; empty is `default`"
_CLAIM: Final = "the cluster's controller makes the claim of it"

CLUSTER_FIELDS: Final[Mapping[str, str]] = {
    "metadata.deletionTimestamp": "the pod ends within `deletionGracePeriodSeconds`, then its object is deleted",
    "metadata.ownerReferences": _CONTROLLERS,
    "metadata.finalizers": _CONTROLLERS,
    "spec.os.name": "admission rejects a pod for another system, as upstream",
    "spec.readinessGates": "Ready waits for these conditions, which others write into the pod's status",
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution": (
        f"{_SCHEDULED}; what the Node must have is looked at once more, by its labels in the cluster"
    ),
    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution": _SCHEDULED,
    "spec.affinity.podAffinity": _SCHEDULED,
    "spec.affinity.podAntiAffinity": _SCHEDULED,
    "spec.tolerations": "a pod that does not tolerate the Node's NoExecute taints is rejected; others: the scheduler's",
    "spec.topologySpreadConstraints": _SCHEDULED,
    "spec.schedulerName": _SCHEDULED,
    "spec.schedulingGroup": _SCHEDULED,
    "spec.priorityClassName": "the server has written the class's number into `spec.priority`; no class is read here",
    "spec.serviceAccountName": _ACCOUNT,
    "spec.serviceAccount": _ACCOUNT,
    "spec.automountServiceAccountToken": "the server's admission has put the token's volume into the pod, or not",
    "spec.enableServiceLinks": "variables of the services of the pod's namespace, unless it is false",
    "spec.securityContext.windowsOptions": _WINDOWS,
    "spec.containers[*].securityContext.windowsOptions": _WINDOWS,
    "spec.initContainers[*].securityContext.windowsOptions": _WINDOWS,
    "spec.ephemeralContainers[*].securityContext.windowsOptions": _WINDOWS,
    "spec.volumes[*].persistentVolumeClaim": "what the cluster has bound the claim to: a hostPath or local volume",
    "spec.volumes[*].ephemeral.volumeClaimTemplate.metadata": _CLAIM,
    "spec.volumes[*].ephemeral.volumeClaimTemplate.spec": f"{_CLAIM}, and binds it to a hostPath or local volume",
    "spec.volumes[*].projected.sources[*].serviceAccountToken": "a token of the pod, asked for and renewed in time",
    "spec.volumes[*].projected.sources[*].clusterTrustBundle": "the bundles' certificates, as they are now",
}
"""Treatment of fields that only a cluster can give something to, or that are decided later: by path of a row."""
_INDEX: Final = re.compile(r"\[\d+\]")


def is_of_cluster(path: str) -> bool:
    """Whether a finding at that path says nothing of a pod of a cluster."""
    return _INDEX.sub("[*]", path) in CLUSTER_FIELDS
