"""Answers of the API server, without a socket: who may ask, what is read, listed, watched and changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

from tests.support.servers.kube_api import failures
from tests.support.servers.kube_api.access import Access, Attributes
from tests.support.servers.kube_api.authority import Authority
from tests.support.servers.kube_api.failures import JsonObject
from tests.support.servers.kube_api.options import DeleteOptions, delete_options, list_options
from tests.support.servers.kube_api.requests import Request, User
from tests.support.servers.kube_api.resources import BY_PLURAL
from tests.support.servers.kube_api.routes import Route
from tests.support.servers.kube_api.signing import Signing
from tests.support.servers.kube_api.store import Store, random_uid
from tests.support.servers.kube_api.tokens import Tokens
from tests.support.servers.kube_api.watching import Scope, Watch, listed
from tests.support.servers.kube_api.writes import Writes

ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))


class Api:
    """Objects and the rules about them."""

    def __init__(
        self, authority: Authority, now: Callable[[], datetime], new_uid: Callable[[], str] = random_uid
    ) -> None:
        """`now` dates objects and ends tokens."""
        self.store = Store(now, new_uid)
        self.access = Access(self.store)
        self.tokens = Tokens(now)
        self.signing = Signing(self.store, authority)
        self.writes = Writes(self.store, self.access, self.tokens, self.signing, now)
        self.bookmark_interval_s = 60.0
        self.watch_list = True
        """Whether it takes sendInitialEvents, as servers from 1.34 on do."""

    def answer(self, request: Request, route: Route, user: User) -> tuple[int, JsonObject] | Watch:
        """Code and body, or the watch that is the body. Raises Refusal."""
        resource = route.resource
        self.access.check(
            Attributes(
                user=user,
                verb=route.verb,
                resource=resource.plural,
                subresource=route.below,
                group=resource.group,
                namespace=route.namespace,
                name=route.name,
                fields=request.query.get("fieldSelector", ""),
            )
        )
        route.check()
        _check_accepted(request)
        if route.verb in ("list", "watch"):
            return self._listed(request, route)
        return self._done(request, route, user)

    def schedule(self, pod: JsonObject, node: str = "n1") -> JsonObject:
        """Creates a pod as a user and binds it as the scheduler does; the pod as it is then. Raises Refusal."""
        metadata = {"namespace": "default"} | pod.get("metadata", {})
        body = {"kind": "Pod", "apiVersion": "v1"} | pod | {"metadata": metadata}
        made = self.writes.create(BY_PLURAL["pods"], metadata["namespace"], body, ADMIN)
        binding = {"kind": "Binding", "apiVersion": "v1", "target": {"kind": "Node", "name": node}}
        self.writes.below_pod(metadata["namespace"], made["metadata"]["name"], "binding", binding, ADMIN)
        return self.store.get("pods", metadata["namespace"], made["metadata"]["name"])

    def delete_pod(self, name: str, namespace: str = "default", grace_s: int | None = None) -> JsonObject:
        """Deletes a pod as a user; the pod as it is then, or was. Raises Refusal."""
        return self.writes.delete(BY_PLURAL["pods"], namespace, name, DeleteOptions(grace_s, "", ""), ADMIN)

    def _listed(self, request: Request, route: Route) -> tuple[int, JsonObject] | Watch:
        options = list_options(request.query)
        if options.initial_events and not self.watch_list:
            said = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            cause = failures.not_permitted("sendInitialEvents", said)
            raise failures.invalid("ListOptions", "", [cause], "meta.k8s.io")
        scope = Scope(route.resource, route.namespace, options)
        if route.verb == "list":
            return 200, listed(self.store, scope)
        return Watch(self.store, scope, self.bookmark_interval_s)

    def _done(self, request: Request, route: Route, user: User) -> tuple[int, JsonObject]:
        """Answer of a request that gets one object. Raises Refusal."""
        resource, namespace, name, below = route.resource, route.namespace, route.name, route.below
        match route.verb:
            case "get":
                return 200, self.store.get(resource.plural, namespace, name)
            case "create":
                return 201, self._created(route, _decoded(request, resource.kind), user)
            case "update":
                return self.writes.update(resource, namespace, name, below, _decoded(request, resource.kind), user)
            case "patch":
                media = request.content_type.partition(";")[0]
                return 200, self.writes.patch(resource, namespace, name, below, request.body, media, user)
            case "deletecollection":
                scope = Scope(resource, namespace, list_options(request.query))
                found = listed(self.store, scope)
                for item in found["items"]:
                    options = delete_options(request.query, _deletion(request))
                    self.writes.delete(resource, namespace, item["metadata"]["name"], options, user)
                return 200, found
        return 200, self.writes.delete(
            resource, namespace, name, delete_options(request.query, _deletion(request)), user
        )

    def _created(self, route: Route, body: JsonObject, user: User) -> JsonObject:
        if route.below == "token":
            return self.writes.token(route.namespace, route.name, body, user)
        if route.below:
            return self.writes.below_pod(route.namespace, route.name, route.below, body, user)
        return self.writes.create(route.resource, route.namespace, body, user)


def _check_accepted(request: Request) -> None:
    accepted = [part.partition(";")[0].strip() for part in request.headers.get("accept", "*/*").split(",")]
    if not {"application/json", "*/*", "application/*"} & set(accepted):
        raise failures.not_acceptable()


def _decoded(request: Request, kind: str) -> JsonObject:
    """Raises Refusal."""
    if len(request.body) > failures.MAX_BODY:
        raise failures.too_large()
    if request.content_type.partition(";")[0] not in ("application/json", ""):
        raise failures.unknown_body()
    try:
        found = json.loads(request.body)
    except ValueError:
        said = (
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error"
        )
        raise failures.bad_request(said) from None
    if not isinstance(found, dict):
        raise failures.bad_request(f"the object provided is unrecognized (must be of type {kind})")
    return found


def _deletion(request: Request) -> JsonObject | None:
    return _decoded(request, "DeleteOptions") if request.body else None
