"""Roles of a node, by its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PREFIX: Final = "node-role.kubernetes.io/"
_LABEL: Final = "kubernetes.io/role"


def node_roles(labels: Mapping[str, str]) -> list[str]:
    """Names in order (pkg/printers/internalversion/printers.go and kubectl pkg/describe, findNodeRoles)."""
    named = {label.removeprefix(_PREFIX) for label in labels if label.startswith(_PREFIX)}
    return sorted(role for role in (*named, labels.get(_LABEL, "")) if role)
