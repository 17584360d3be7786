"""Node selectors, of pods and of volumes (pkg/apis/core/validation, ValidateNodeSelector)."""

from collections.abc import Mapping
from typing import Final

from ipc.k8s.api.errors import forbidden, invalid, not_supported, required
from ipc.k8s.api.v1.scheduling import NODE_NAME_FIELD, NodeSelector, NodeSelectorRequirement
from ipc.k8s.api.validation.checks import Errors, indexed, well_formed
from ipc.k8s.api.validation.names import qualified_name_problem

_FIELD_OPERATORS: Final = ("In", "NotIn")
_NUMBER_OF_VALUES: Final[Mapping[str, str]] = {
    "In": "some",
    "NotIn": "some",
    "Exists": "none",
    "DoesNotExist": "none",
    "Gt": "one",
    "Lt": "one",
}


def validate_node_selector(selector: NodeSelector, path: str) -> Errors:
    """Terms over labels and fields of nodes."""
    terms = f"{path}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        yield required(terms, "must have at least one node selector term")
    for at, term in indexed(terms, selector.node_selector_terms):
        for below, expression in indexed(f"{at}.matchExpressions", term.match_expressions):
            yield from _expression(expression, below)
        for below, field in indexed(f"{at}.matchFields", term.match_fields):
            yield from _field(field, below)


def _expression(requirement: NodeSelectorRequirement, path: str) -> Errors:
    """ValidateNodeSelectorRequirement."""
    yield from well_formed(f"{path}.key", requirement.key, qualified_name_problem)
    number, values = _NUMBER_OF_VALUES[requirement.operator], f"{path}.values"
    if number == "some" and not requirement.values:
        yield required(values, "must be specified when `operator` is 'In' or 'NotIn'")
    if number == "none" and requirement.values:
        yield forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    if number == "one" and len(requirement.values) != 1:
        yield required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")


def _field(requirement: NodeSelectorRequirement, path: str) -> Errors:
    """ValidateNodeFieldSelectorRequirement."""
    if requirement.operator not in _FIELD_OPERATORS:
        yield not_supported(f"{path}.operator", requirement.operator, _FIELD_OPERATORS)
    elif len(requirement.values) != 1:
        what = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", what)
    if requirement.key != NODE_NAME_FIELD:
        yield invalid(f"{path}.key", requirement.key, "not a valid field selector key")
