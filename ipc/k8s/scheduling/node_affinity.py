"""Whether a node is one of those that a pod asks for: nodeSelector and required node affinity. Pure.

Mirrors k8s.io/component-helpers scheduling/corev1/nodeaffinity (RequiredNodeAffinity.Match) and the matching of
k8s.io/apimachinery pkg/labels (Requirement.Matches). What cannot be parsed matches nothing; validation refuses it
before (`ipc.k8s.api.validation.pods.scheduling`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.scheduling import NODE_NAME_FIELD, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

_MAX_INT64_CHARS: Final = 20


def matches_node(spec: PodSpec, labels: Mapping[str, str], node_name: str) -> bool:
    """All labels of nodeSelector are the node's, and one of the required terms matches, if there are any."""
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or selects_node(required, labels, node_name)


def selects_node(selector: NodeSelector, labels: Mapping[str, str], node_name: str) -> bool:
    """One of the terms matches (NodeSelector.Match)."""
    fields = {NODE_NAME_FIELD: node_name}
    return any(_term_matches(term, labels, fields) for term in selector.node_selector_terms)


def _term_matches(term: NodeSelectorTerm, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    """An empty one matches no node."""
    if not (term.match_expressions or term.match_fields):
        return False
    return all(_holds(each, labels) for each in term.match_expressions) and all(
        _holds(each, fields) for each in term.match_fields
    )


def _holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    return _OPERATORS[requirement.operator](labels.get(requirement.key), requirement.values)


def _is_greater(value: str | None, bounds: Sequence[str]) -> bool:
    found, bound = _int64(value), _int64(bounds[0] if len(bounds) == 1 else None)
    return found is not None and bound is not None and found > bound


def _is_less(value: str | None, bounds: Sequence[str]) -> bool:
    found, bound = _int64(value), _int64(bounds[0] if len(bounds) == 1 else None)
    return found is not None and bound is not None and found < bound


def _int64(text: str | None) -> int | None:
    """As Go's strconv.ParseInt(text, 10, 64) reads it; None where that fails."""
    if text is None or len(text) > _MAX_INT64_CHARS or not text.isascii() or not text.lstrip("+-").isdigit():
        return None
    try:
        value = int(text)
    except ValueError:  # two signs
        return None
    return value if -(2**63) <= value < 2**63 else None


_OPERATORS: Final[Mapping[str, Callable[[str | None, Sequence[str]], bool]]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": _is_greater,
    "Lt": _is_less,
}
