"""Acts of the server for requests that change something, after the request was authorized."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import datetime

from tests.support.servers.kube_api import failures, node_restriction, pods
from tests.support.servers.kube_api.access import Access, Attributes
from tests.support.servers.kube_api.bodies import check_decodes, check_patched, check_valid
from tests.support.servers.kube_api.failures import Cause, JsonObject, bad_request, invalid, not_permitted, required
from tests.support.servers.kube_api.options import DeleteOptions
from tests.support.servers.kube_api.patching import patched
from tests.support.servers.kube_api.requests import User
from tests.support.servers.kube_api.resources import ResourceType
from tests.support.servers.kube_api.signing import Signing
from tests.support.servers.kube_api.store import Store, key_of
from tests.support.servers.kube_api.tokens import Tokens


class Writes:
    """Creates, updates, patches and deletes, with validation and admission."""

    def __init__(
        self,
        store: Store,
        access: Access,
        tokens: Tokens,
        signing: Signing,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._access = access
        self._tokens = tokens
        self._signing = signing
        self._now = now
        self.exhausted_budget = ""
        """Name of a disruption budget that forbids evictions now."""

    def create(self, resource: ResourceType, namespace: str, body: JsonObject, user: User) -> JsonObject:
        """Raises Refusal."""
        made = _placed(resource, namespace, body)
        _check_metadata(resource, made)
        check_valid(resource, None, made)
        match resource.plural:
            case "tokenreviews":
                return self._tokens.review(made)
            case "subjectaccessreviews":
                return self._review(made)
            case "certificatesigningrequests":
                return self._signing.created(made, user)
        if namespace and not self._store.has("namespaces", "", namespace):
            raise failures.not_found("namespaces", namespace)
        made["metadata"].pop("uid", None)
        if resource.plural == "pods":
            pods.check_new(made)
            if user.node:
                node_restriction.check_pod_created(user.node, made, self._store)
            made = pods.with_defaults(made)
        self._restrict(resource, user, None, made)
        return self._store.create(made)

    def update(
        self, resource: ResourceType, namespace: str, name: str, below: str, body: JsonObject, user: User
    ) -> tuple[int, JsonObject]:
        """The code and the object (PUT). Raises Refusal."""
        made = _placed(resource, namespace, body)
        told = made["metadata"].get("name", "")
        if told != name:
            raise bad_request(f"the name of the object ({told}) does not match the name on the URL ({name})")
        if not self._store.has(resource.plural, namespace, name) and resource.creates_on_update and not below:
            return 201, self.create(resource, namespace, body, user)
        before = self._store.get(resource.plural, namespace, name)
        if resource.needs_version and not made["metadata"].get("resourceVersion"):
            cause = Cause("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
            raise invalid(resource.kind, name, [cause], resource.group)
        if (uid := made["metadata"].get("uid")) and uid != before["metadata"]["uid"]:
            said = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['metadata']['uid']}"
            raise failures.conflict(resource.plural, name, said, resource.group)
        return 200, self._replaced(resource, below, before, made, user)

    def patch(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        below: str,
        body: bytes,
        content_type: str,
        user: User,
    ) -> JsonObject:
        """Raises Refusal."""
        before = self._store.get(resource.plural, namespace, name)
        made = patched(copy.deepcopy(before), body, content_type, resource.kind)
        check_patched(resource.kind, made)
        if made["metadata"].get("uid") != before["metadata"]["uid"]:
            cause = Cause("metadata.uid", f'Invalid value: "{made["metadata"].get("uid")}": field is immutable')
            raise invalid(resource.kind, name, [cause], resource.group)
        if made["metadata"].get("name") != name:
            told = made["metadata"].get("name")
            raise bad_request(f"the name of the object ({told}) does not match the name on the URL ({name})")
        return self._replaced(resource, below, before, made, user)

    def _replaced(
        self, resource: ResourceType, below: str, before: JsonObject, made: JsonObject, user: User
    ) -> JsonObject:
        name = before["metadata"]["name"]
        version = made["metadata"].get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            raise failures.conflict(resource.plural, name, failures.MODIFIED, resource.group)
        made = self._of_subresource(resource, below, before, made)
        check_valid(resource, before, made)
        self._restrict(resource, user, before, made)
        if resource.plural in ("configmaps", "secrets") and before.get("immutable"):
            _check_immutable(resource, before, made)
        stored = self._store.update(made)
        if below == "approval" and _approved(stored) and not _approved(before):
            self._signing.sign(name)
            return self._store.get(resource.plural, "", name)
        return stored

    def _of_subresource(self, resource: ResourceType, below: str, before: JsonObject, made: JsonObject) -> JsonObject:
        """Part of an update that counts there."""
        match resource.plural, below:
            case "pods", "":
                return pods.updated(before, made)
            case "pods", "status":
                return pods.status_updated(before, made)
            case "pods", "resize":
                return pods.resized(before, made)
            case "pods", "ephemeralcontainers":
                return pods.with_ephemeral_containers(before, made)
            case _, "status":
                # NodeStatus and others: the spec stays, labels and annotations may change.
                return made | ({"spec": before["spec"]} if "spec" in before else {})
            case _, "":
                has_status = "status" in resource.subresources and "status" in before
                return made | ({"status": before["status"]} if has_status else {})
        return made

    def delete(
        self, resource: ResourceType, namespace: str, name: str, options: DeleteOptions, user: User
    ) -> JsonObject:
        """The body of the answer. Raises Refusal."""
        found = self._store.get(resource.plural, namespace, name)
        if user.node and resource.plural == "pods":
            node_restriction.check_pod_deleted(user.node, found)
        _check_preconditions(resource, found, options)
        if resource.plural == "pods":
            return pods.deleted(self._store, found, options.grace_s, self._now())
        if found["metadata"].get("finalizers"):
            found["metadata"].setdefault("deletionTimestamp", self._store.now())
            return self._store.update(found)
        gone = self._store.delete(resource.plural, namespace, name)
        if resource.returns_deleted:
            return gone
        details = {"name": name, "group": resource.group, "kind": resource.plural, "uid": gone["metadata"]["uid"]}
        return _success({key: value for key, value in details.items() if value})

    def below_pod(self, namespace: str, name: str, below: str, body: JsonObject, user: User) -> JsonObject:
        """POST of ``binding`` and ``eviction``. Raises Refusal."""
        pod = self._store.get("pods", namespace, name)
        if below == "binding":
            bound = pods.bound(pod, body)
            if self._store.has("nodes", "", bound["spec"]["nodeName"]):
                pods.take_topology(bound, self._store.get("nodes", "", bound["spec"]["nodeName"]))
            self._store.update(bound)
            return _success(None)
        if user.node:
            node_restriction.check_pod_evicted(user.node, pod)
        if self.exhausted_budget and pod["status"].get("phase") == "Running":
            raise failures.budget_exhausted(self.exhausted_budget)
        marked = self._store.update(pods.disrupted(pod, self._now()))
        grace = (body.get("deleteOptions") or {}).get("gracePeriodSeconds")
        pods.deleted(self._store, marked, grace, self._now())
        return _success(None)

    def token(self, namespace: str, name: str, body: JsonObject, user: User) -> JsonObject:
        """POST of ``serviceaccounts/NAME/token``. Raises Refusal."""
        account = self._store.get("serviceaccounts", namespace, name)
        if user.node:
            node_restriction.check_token(user.node, namespace, name, body, self._store)
        return self._tokens.issue(namespace, account, body)

    def _restrict(self, resource: ResourceType, user: User, before: JsonObject | None, after: JsonObject) -> None:
        node = user.node
        if not node:
            return
        metadata = after["metadata"]
        match resource.plural:
            case "nodes":
                node_restriction.check_node(node, before, after)
            case "leases":
                node_restriction.check_lease(node, metadata["namespace"], metadata["name"])
            case "csinodes":
                node_restriction.check_csi_node(node, metadata["name"])
            case "pods" if before is not None:
                node_restriction.check_pod_status(node, before, after)

    def _review(self, review: JsonObject) -> JsonObject:
        spec = review["spec"]
        user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
        if found := spec.get("resourceAttributes"):
            names = ("verb", "resource", "subresource", "group", "namespace", "name")
            asked = Attributes(user, **{name: found.get(name, "") for name in names})
        else:
            found = spec.get("nonResourceAttributes") or {}
            asked = Attributes(user, found.get("verb", ""), path=found.get("path", ""))
        said = self._access.denial(asked)
        return review | {"status": {"allowed": said is None} | ({"reason": said} if said else {})}


def _success(details: JsonObject | None) -> JsonObject:
    found: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return found | ({"details": details} if details else {"code": 201})


def _placed(resource: ResourceType, namespace: str, body: JsonObject) -> JsonObject:
    """The object of a body, in the namespace of the path. Raises Refusal."""
    if body.get("kind") != resource.kind or body.get("apiVersion") != resource.api_version:
        said = f'{body.get("kind")} in version "{body.get("apiVersion", "").rpartition("/")[2]}"'
        raise bad_request(f"{said} cannot be handled as a {resource.kind}: unknown conversion")
    check_decodes(resource, body)
    made = copy.deepcopy(body)
    metadata = made.setdefault("metadata", {})
    if resource.namespaced:
        if metadata.get("namespace", namespace) != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace
    return made


def _check_metadata(resource: ResourceType, made: JsonObject) -> None:
    metadata = made["metadata"]
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and not metadata.get("generateName") and resource.verbs != {"create"}:
        cause = required("metadata.name", "name or generateName is required")
        raise invalid(resource.kind, "", [cause], resource.group)


def _check_immutable(resource: ResourceType, before: JsonObject, made: JsonObject) -> None:
    name, said = before["metadata"]["name"], "field is immutable when `immutable` is set"
    wrong = [key for key in ("immutable", "data", "binaryData", "stringData") if before.get(key) != made.get(key)]
    if wrong:
        raise invalid(resource.kind, name, [not_permitted(key, said) for key in wrong])


def _check_preconditions(resource: ResourceType, found: JsonObject, options: DeleteOptions) -> None:
    _, _, name = key_of(resource, found)
    uid, version = found["metadata"]["uid"], found["metadata"]["resourceVersion"]
    said = ""
    if options.uid and options.uid != uid:
        more = "The object might have been deleted and then recreated"
        said = f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). {more}"
    elif options.version and options.version != version:
        told = f"the ResourceVersion in the precondition ({options.version})"
        said = f"{told} does not match the ResourceVersion in record ({version}). The object might have been modified"
    if said:
        raise failures.conflict(resource.kind, name, said, resource.group)


def _approved(found: JsonObject) -> bool:
    conditions = found.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Approved" and condition["status"] == "True" for condition in conditions)
