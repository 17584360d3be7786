"""Rights: the node authorizer (plugin/pkg/auth/authorizer/node), and rules that a test gives to others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.support.servers.kube_api.failures import JsonObject, Refusal, forbidden
from tests.support.servers.kube_api.requests import User
from tests.support.servers.kube_api.selectors import named_by
from tests.support.servers.kube_api.store import Store

READ: Final = frozenset({"get", "list", "watch"})
LEASES: Final = "kube-node-lease"


@dataclass(frozen=True)
class Attributes:
    """A question, as authorizers see it."""

    user: User
    verb: str
    """Verb of Kubernetes: get, list, watch, create, …"""
    resource: str = ""
    subresource: str = ""
    group: str = ""
    namespace: str = ""
    name: str = ""
    fields: str = ""
    """Field selector of a list or watch."""
    path: str = ""
    """Path of what is no resource."""


class Access:
    """The authorizers, in their order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: set[tuple[str, str, str]] = set()

    def allow(self, subject: str, verb: str, resource: str) -> None:
        """A rule for a user or a group; the resource is ``pods/log`` with a subresource, or a path; ``*`` is any."""
        self._rules.add((subject, verb, resource))

    def check(self, asked: Attributes) -> None:
        """Raises Refusal (403)."""
        said = self.denial(asked)
        if said is not None:
            raise _refusal(asked, said)

    def denial(self, asked: Attributes) -> str | None:
        """Why not; empty without a reason of its own; None where it is allowed."""
        groups = asked.user.groups
        if "system:masters" in groups or self._has_rule(asked):
            return None
        if asked.user.node:
            return self._node_denial(asked, asked.user.node)
        if "system:bootstrappers" in groups and asked.resource == "certificatesigningrequests":
            return None if asked.verb in READ | {"create"} and not asked.subresource else ""
        if not asked.resource and asked.verb == "get":
            return None if re.match(r"/(api|apis|healthz|livez|readyz|version)(/|$)", asked.path) else ""
        return ""

    def _has_rule(self, asked: Attributes) -> bool:
        full = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource or asked.path
        subjects = (asked.user.name, *asked.user.groups)
        return any(
            (subject, verb, resource) in self._rules
            for subject in subjects
            for verb in (asked.verb, "*")
            for resource in (full, "*")
        )

    def _node_denial(self, asked: Attributes, node: str) -> str | None:
        name = asked.name or (named_by(asked.fields) if asked.verb in READ else "")
        match asked.resource:
            case "nodes":
                return _own_node(asked, node, name)
            case "pods":
                return self._pods(asked, node, name)
            case "configmaps" | "secrets":
                return self._objects(asked, node, name)
            case "persistentvolumeclaims" | "persistentvolumes":
                return self._volumes(asked, node, name)
            case "serviceaccounts":
                return self._tokens(asked, node, name)
            case "leases":
                return _leases(asked, node, name)
            case "csinodes":
                allowed = asked.verb in ("get", "create", "update", "patch", "delete")
                return _unless(
                    allowed and name in ("", node), "can only access CSINode with the same name as the requesting node"
                )
        return _unless((asked.resource, asked.verb) in _NODE_RULES or (not asked.resource and asked.verb == "get"), "")

    def _pods(self, asked: Attributes, node: str, name: str) -> str | None:
        verb, below = asked.verb, asked.subresource
        if below in ("status", "eviction"):
            return _unless((below, verb) in {("status", "update"), ("status", "patch"), ("eviction", "create")}, "")
        if below or verb not in {*READ, "create", "delete"}:
            return ""
        if verb in ("create", "delete"):
            return None
        if verb == "get":
            return _unless(self._on_node(asked.namespace, name, node), _unrelated(node, "this object"))
        selected = any(re.fullmatch(rf"spec\.nodeName==?{re.escape(node)}", term) for term in asked.fields.split(","))
        return _unless(selected, "can only list/watch pods with spec.nodeName field selector")

    def _objects(self, asked: Attributes, node: str, name: str) -> str | None:
        if asked.verb not in READ:
            return "can only read resources of this type"
        if asked.subresource:
            return "cannot read subresource"
        if not asked.namespace:
            return "can only read namespaced object of this type"
        if not name:
            return "No Object name found"
        kind = "configmaps" if asked.resource == "configmaps" else "secrets"
        found = (kind, asked.namespace, name) in set(self._references(node))
        return _unless(found, _unrelated(node, "this object"))

    def _volumes(self, asked: Attributes, node: str, name: str) -> str | None:
        if asked.subresource == "status" and asked.resource == "persistentvolumeclaims":
            return _unless(asked.verb in ("update", "patch"), "")
        if asked.verb != "get":
            return "can only get individual resources of this type"
        if asked.subresource:
            return "cannot get subresource"
        claims = {found[1:] for found in self._references(node) if found[0] == "persistentvolumeclaims"}
        if asked.resource == "persistentvolumes":
            named = {
                self._store.get("persistentvolumeclaims", *claim).get("spec", {}).get("volumeName")
                for claim in claims
                if self._store.has("persistentvolumeclaims", *claim)
            }
            return _unless(name in named, _unrelated(node, "this object"))
        return _unless((asked.namespace, name) in claims, _unrelated(node, "this object"))

    def _tokens(self, asked: Attributes, node: str, name: str) -> str | None:
        is_read = asked.verb == "get" and not asked.subresource
        if not is_read and (asked.subresource != "token" or asked.verb != "create"):
            return "can only create tokens for individual service accounts"
        found = ("serviceaccounts", asked.namespace, name) in self._references(node)
        return _unless(found, _unrelated(node, "this object"))

    def _on_node(self, namespace: str, name: str, node: str) -> bool:
        if not self._store.has("pods", namespace, name):
            return False
        return bool(self._store.get("pods", namespace, name)["spec"].get("nodeName") == node)

    def _references(self, node: str) -> Iterator[tuple[str, str, str]]:
        """Objects that the pods of a node refer to (graph.go, AddPod)."""
        for (plural, _, _), pod in self._store.at(self._store.revision).items():
            if (
                plural == "pods"
                and pod["spec"].get("nodeName") == node
                and "kubernetes.io/config.mirror" not in _annotations(pod)
            ):
                yield from ((kind, pod["metadata"]["namespace"], name) for kind, name in _of_pod(pod))


_NODE_RULES: Final = {
    *(("services", verb) for verb in READ),
    *(("csidrivers", verb) for verb in READ),
    *(("runtimeclasses", verb) for verb in READ),
    *(("clustertrustbundles", verb) for verb in READ),
    *(
        ("resourceslices", verb)
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    ),
    *(("certificatesigningrequests", verb) for verb in ("create", *READ)),
    *(("events", verb) for verb in ("create", "update", "patch")),
    ("volumeattachments", "get"),
    ("tokenreviews", "create"),
    ("subjectaccessreviews", "create"),
}
"""Rights of a node, whatever its name: role system:node and what the node authorizer adds."""


def references(spec: JsonObject) -> Iterator[tuple[str, str]]:
    """Resource and name of every object that a pod names."""
    yield "serviceaccounts", spec.get("serviceAccountName") or "default"
    yield from (("secrets", found["name"]) for found in spec.get("imagePullSecrets") or ())
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            for source in container.get("envFrom") or ():
                yield from _of(source, "configMapRef", "secretRef")
            for variable in container.get("env") or ():
                yield from _of(variable.get("valueFrom") or {}, "configMapKeyRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume)


def _of_pod(pod: JsonObject) -> Iterator[tuple[str, str]]:
    """References of a pod, and the claims that are made for its ephemeral volumes."""
    yield from references(pod["spec"])
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("ephemeral"):
            yield "persistentvolumeclaims", f"{pod['metadata']['name']}-{volume['name']}"


def _of(source: JsonObject, config_map: str, secret: str) -> Iterator[tuple[str, str]]:
    if found := source.get(config_map):
        yield "configmaps", found["name"]
    if found := source.get(secret):
        yield "secrets", found["name"]


def _of_volume(volume: JsonObject) -> Iterator[tuple[str, str]]:
    yield from _of(volume, "configMap", "")
    if found := volume.get("secret"):
        yield "secrets", found["secretName"]
    if found := volume.get("persistentVolumeClaim"):
        yield "persistentvolumeclaims", found["claimName"]
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _of(source, "configMap", "secret")


def _annotations(found: JsonObject) -> JsonObject:
    return found["metadata"].get("annotations") or {}


def _own_node(asked: Attributes, node: str, name: str) -> str | None:
    if asked.subresource == "status":
        return _unless(asked.verb in ("update", "patch"), "")
    if asked.subresource:
        return None if name == node else ""
    if asked.verb in ("create", "update", "patch"):
        return None  # whose node it is: admission
    if asked.verb in READ:
        if name == node:
            return None
        return (
            f"node '{node}' cannot read '{name}', only its own Node object"
            if name
            else (f"node '{node}' cannot read all nodes, only its own Node object")
        )
    return ""


def _leases(asked: Attributes, node: str, name: str) -> str | None:
    if asked.verb not in ("get", "create", "update", "patch", "delete"):
        return "can only get, create, update, patch, or delete a node lease"
    if asked.namespace != LEASES:
        return f'can only access leases in the "{LEASES}" system namespace'
    if asked.verb != "create" and name != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def _unrelated(node: str, what: str) -> str:
    return f"no relationship found between node '{node}' and {what}"


def _unless(allowed: bool, said: str) -> str | None:
    return None if allowed else said


def _refusal(asked: Attributes, said: str) -> Refusal:
    """apiserver pkg/endpoints/handlers/responsewriters, Forbidden."""
    user = f'User "{asked.user.name}"'
    if not asked.resource:
        return Refusal(403, "Forbidden", f'forbidden: {user} cannot {asked.verb} path "{asked.path}"', {})
    full = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    message = f'{user} cannot {asked.verb} resource "{full}" in API group "{asked.group}" {where}'
    return forbidden(asked.resource, asked.name, f"{message}: {said}" if said else message, asked.group)
