"""Placement checks that remain on a single host: tolerations, node selector, gates and claims.

Source: pkg/apis/core/validation ValidateTolerations, validateReadinessGates, validateSchedulingGates,
validatePodResourceClaims. Differs on purpose: of affinity only what is required of the node is
looked at, and topology spread is checked for type only.
"""

from ipc.k8s.api.errors import invalid, required
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.scheduling import PodResourceClaim, Toleration
from ipc.k8s.api.validation.checks import Errors, exactly_one, if_set, indexed, unique, well_formed
from ipc.k8s.api.validation.metadata import validate_labels
from ipc.k8s.api.validation.names import DNS_LABEL, DNS_SUBDOMAIN, LABEL_VALUE, qualified_name_problem
from ipc.k8s.api.validation.node_selectors import validate_node_selector


def validate_scheduling(spec: PodSpec, path: str) -> Errors:
    """Everything about placement."""
    yield from if_set(f"{path}.nodeName", spec.node_name, DNS_SUBDOMAIN.problem)
    yield from validate_labels(spec.node_selector, f"{path}.nodeSelector")
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is not None and affinity.required_during_scheduling_ignored_during_execution is not None:
        required_nodes = affinity.required_during_scheduling_ignored_during_execution
        below = f"{path}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        yield from validate_node_selector(required_nodes, below)
    for below, toleration in indexed(f"{path}.tolerations", spec.tolerations):
        yield from _toleration(toleration, below)
    for below, gate in indexed(f"{path}.readinessGates", spec.readiness_gates):
        yield from well_formed(f"{below}.conditionType", gate.condition_type, qualified_name_problem)
    gates = f"{path}.schedulingGates"
    yield from unique((f"{below}.name", gate.name) for below, gate in indexed(gates, spec.scheduling_gates))
    for below, scheduling_gate in indexed(gates, spec.scheduling_gates):
        yield from well_formed(f"{below}.name", scheduling_gate.name, qualified_name_problem)
    claims = f"{path}.resourceClaims"
    yield from unique((f"{below}.name", claim.name) for below, claim in indexed(claims, spec.resource_claims))
    for below, claim in indexed(claims, spec.resource_claims):
        yield from _claim(claim, below)


def _toleration(toleration: Toleration, path: str) -> Errors:
    operator = f"{path}.operator"
    yield from if_set(f"{path}.key", toleration.key, qualified_name_problem)
    if not toleration.key and toleration.operator != "Exists":
        yield invalid(operator, toleration.operator, "must be Exists when key is empty")
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield invalid(f"{path}.effect", toleration.effect, "must be NoExecute when tolerationSeconds is set")
    if toleration.operator == "Exists" and toleration.value:
        yield invalid(f"{path}.value", toleration.value, "must be empty when operator is Exists")
    yield from if_set(f"{path}.value", toleration.value, LABEL_VALUE.problem)


def _claim(claim: PodResourceClaim, path: str) -> Errors:
    yield from well_formed(f"{path}.name", claim.name, DNS_LABEL.problem)
    sources = {
        "resourceClaimName": claim.resource_claim_name,
        "resourceClaimTemplateName": claim.resource_claim_template_name,
    }
    given = [name for name, value in sources.items() if value is not None]
    yield from exactly_one(path, given, "resourceClaimName or resourceClaimTemplateName")
    for name in given:
        if not sources[name]:
            yield required(f"{path}.{name}")
