"""Refusals of admission to a node beyond the authorizer (plugin/pkg/admission/noderestriction)."""

from __future__ import annotations

from typing import Final

from tests.support.servers.kube_api import failures
from tests.support.servers.kube_api.access import LEASES, references
from tests.support.servers.kube_api.failures import JsonObject, forbidden
from tests.support.servers.kube_api.pod_updates import MIRROR
from tests.support.servers.kube_api.store import Store

_KUBELET_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_PREFIXES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_NAMES: Final = {
    "secrets": "secrets",
    "configmaps": "configmaps",
    "persistentvolumeclaims": "persistentvolumeclaims",
}


def check_pod_created(node: str, pod: JsonObject, store: Store) -> None:
    """Only mirror pods of this node, which refer to nothing. Raises Refusal."""
    metadata, spec = pod["metadata"], pod["spec"]
    name = metadata.get("name", "")
    if MIRROR not in (metadata.get("annotations") or {}):
        raise forbidden(
            "pods", name, f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
        )
    if spec.get("nodeName") != node:
        raise forbidden("pods", name, f'node "{node}" can only create pods with spec.nodeName set to itself')
    owners = metadata.get("ownerReferences") or []
    if len(owners) != 1:
        raise forbidden("pods", name, f'node "{node}" can only create pods with a single owner reference set to itself')
    owner = owners[0]
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        raise forbidden("pods", name, f'node "{node}" can only create pods with an owner reference set to itself')
    if not owner.get("controller"):
        raise forbidden(
            "pods", name, f'node "{node}" can only create pods with a controller owner reference set to itself'
        )
    if owner.get("blockOwnerDeletion"):
        raise forbidden("pods", name, f'node "{node}" must not set blockOwnerDeletion on an owner reference')
    if owner.get("uid") != store.get("nodes", "", node)["metadata"]["uid"]:
        raise forbidden("pods", name, f"node {node} UID mismatch: expected {owner.get('uid')} got other")
    _check_refers_to_nothing(node, name, spec)


def _check_refers_to_nothing(node: str, name: str, spec: JsonObject) -> None:
    if spec.get("serviceAccountName"):
        raise forbidden("pods", name, f'node "{node}" can not create pods that reference a service account')
    for kind, _ in references(spec):
        if kind in _NAMES:
            raise forbidden("pods", name, f'node "{node}" can not create pods that reference {_NAMES[kind]}')


def check_pod_deleted(node: str, pod: JsonObject) -> None:
    """Raises Refusal."""
    if pod["spec"].get("nodeName") != node:
        said = f'node "{node}" can only delete pods with spec.nodeName set to itself'
        raise forbidden("pods", pod["metadata"]["name"], said)


def check_pod_evicted(node: str, pod: JsonObject) -> None:
    """Raises Refusal."""
    if pod["spec"].get("nodeName") != node:
        said = f"node {node} can only evict pods with spec.nodeName set to itself"
        raise forbidden("pods", pod["metadata"]["name"], said)


def check_pod_status(node: str, before: JsonObject, after: JsonObject) -> None:
    """Raises Refusal."""
    name = before["metadata"]["name"]
    if before["spec"].get("nodeName") != node:
        said = f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
        raise forbidden("pods", name, said)
    if before["metadata"].get("labels") != after["metadata"].get("labels"):
        raise forbidden("pods", name, f'node "{node}" cannot update labels through pod status')


def check_node(node: str, before: JsonObject | None, after: JsonObject) -> None:
    """Admit a node's own object, and of that not its taints or what labels others rely on. Raises Refusal."""
    name = after["metadata"].get("name", "")
    if name != node:
        raise forbidden("nodes", name, f'node "{node}" is not allowed to modify node "{name}"')
    if before is not None and before["spec"].get("taints") != after["spec"].get("taints"):
        raise forbidden("nodes", name, f'node "{node}" is not allowed to modify taints')
    if before is not None and before["metadata"].get("ownerReferences") != after["metadata"].get("ownerReferences"):
        raise forbidden("nodes", name, f'node "{node}" is not allowed to modify ownerReferences')
    old = (before["metadata"].get("labels") if before else {}) or {}
    new = after["metadata"].get("labels") or {}
    changed = {label for label in old.keys() | new.keys() if old.get(label) != new.get(label)}
    if wrong := sorted(label for label in changed if _is_forbidden(label)):
        verb = "set" if before is None else "modify"
        raise forbidden("nodes", name, f"is not allowed to {verb} the following labels: {', '.join(wrong)}")


def _is_forbidden(label: str) -> bool:
    """Labels below kubernetes.io and k8s.io that are not the kubelet's."""
    namespace = label.partition("/")[0] if "/" in label else ""
    if namespace == "node-restriction.kubernetes.io" or namespace.endswith(".node-restriction.kubernetes.io"):
        return True
    if label in _KUBELET_LABELS or (namespace.endswith(_KUBELET_PREFIXES) and _is_below(namespace, _KUBELET_PREFIXES)):
        return False
    return _is_below(namespace, ("kubernetes.io", "k8s.io"))


def _is_below(namespace: str, parents: tuple[str, ...]) -> bool:
    return any(namespace == parent or namespace.endswith(f".{parent}") for parent in parents)


def check_lease(node: str, namespace: str, name: str) -> None:
    """Raises Refusal."""
    if namespace != LEASES:
        said = f'can only access leases in the "{LEASES}" system namespace'
        raise forbidden("leases", name, said, "coordination.k8s.io")
    if name != node:
        said = "can only access node lease with the same name as the requesting node"
        raise forbidden("leases", name, said, "coordination.k8s.io")


def check_csi_node(node: str, name: str) -> None:
    """Raises Refusal."""
    if name != node:
        said = "can only access CSINode with the same name as the requesting node"
        raise forbidden("csinodes", name, said, "storage.k8s.io")


def check_token(node: str, namespace: str, account: str, request: JsonObject, store: Store) -> None:
    """A token is bound to a pod of this node that runs as the account. Raises Refusal."""
    bound = request["spec"].get("boundObjectRef")
    if not bound or (bound.get("kind"), bound.get("apiVersion")) != ("Pod", "v1"):
        raise forbidden("serviceaccounts", account, "node requested token not bound to a pod")
    if not bound.get("uid"):
        raise forbidden("serviceaccounts", account, "node requested token with a pod binding without a uid")
    pod = store.get("pods", namespace, bound["name"])
    if pod["metadata"]["uid"] != bound["uid"]:
        said = (
            f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise failures.conflict("pods", bound["name"], said)
    if pod["spec"].get("nodeName") != node:
        said = "node requested token bound to a pod scheduled on a different node"
        raise forbidden("serviceaccounts", account, said)
