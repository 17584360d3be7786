"""Fields of a pod of which the table of support does not speak when the pod is a cluster's. Pure."""

from __future__ import annotations

import re
from typing import Final

CLUSTER_FIELDS: Final = frozenset(
    {
        "spec.os.name",  # admission rejects such a pod, as upstream; a manifest's author is told at once
        "spec.securityContext.windowsOptions",  # means nothing on Linux, as upstream: pods for both systems have it
        "spec.containers[*].securityContext.windowsOptions",
        "spec.initContainers[*].securityContext.windowsOptions",
        "spec.ephemeralContainers[*].securityContext.windowsOptions",
        "spec.volumes[*].projected.sources[*].serviceAccountToken",
        "spec.volumes[*].projected.sources[*].clusterTrustBundle",
    }
)
"""Paths of rows of the table: what only a cluster can give something to, and what is decided later."""
_INDEX: Final = re.compile(r"\[\d+\]")


def is_of_cluster(path: str) -> bool:
    """Whether a finding at that path says nothing of a pod of a cluster."""
    return _INDEX.sub("[*]", path) in CLUSTER_FIELDS
