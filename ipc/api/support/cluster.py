"""Fields of a pod that only a cluster can give anything to: the table of support speaks of pods without one. Pure."""

from __future__ import annotations

import re
from typing import Final

CLUSTER_FIELDS: Final = frozenset(
    {
        "spec.volumes[*].projected.sources[*].serviceAccountToken",
        "spec.volumes[*].projected.sources[*].clusterTrustBundle",
    }
)
"""Paths of rows of the table."""
_INDEX: Final = re.compile(r"\[\d+\]")


def is_of_cluster(path: str) -> bool:
    """Whether a finding at that path says nothing of a pod of a cluster."""
    return _INDEX.sub("[*]", path) in CLUSTER_FIELDS
