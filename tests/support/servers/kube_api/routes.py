"""Paths of the API: which resource, which object, and the verb as Kubernetes names it (apiserver request info)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.support.servers.kube_api import failures
from tests.support.servers.kube_api.requests import Request
from tests.support.servers.kube_api.resources import BY_PATH, ResourceType

_PATH: Final = re.compile(
    r"^/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<below>[^/]+))?)?$"
)


@dataclass(frozen=True)
class Route:
    resource: ResourceType
    namespace: str
    name: str
    below: str
    """Subresource."""
    verb: str

    def check(self) -> None:
        """Raises Refusal (404, 405)."""
        if self.below and self.below not in self.resource.subresources:
            raise failures.no_such_path()
        verbs = self.resource.subresources[self.below] if self.below else self.resource.verbs
        if self.resource.namespaced and not self.namespace and self.verb not in ("list", "watch"):
            raise failures.not_allowed()
        if self.verb not in verbs or (self.verb == "create" and self.name and not self.below):
            raise failures.not_allowed()


def route_of(request: Request) -> Route | None:
    """None for paths that no resource has. Raises Refusal (405)."""
    found = _PATH.match(request.path)
    if found is None:
        return None
    resource = BY_PATH.get((found["group"] or "", found["core"] or found["version"], found["plural"]))
    if resource is None:
        return None
    name = found["name"] or ""
    if found["namespace"] and not resource.namespaced:
        return None
    return Route(resource, found["namespace"] or "", name, found["below"] or "", _verb(request, name))


def _verb(request: Request, name: str) -> str:
    match request.verb, bool(name):
        case "GET", False:
            return "watch" if request.is_watch else "list"
        case "GET", True:
            return "get"
        case "POST", _:
            return "create"
        case "PUT", True:
            return "update"
        case "PATCH", True:
            return "patch"
        case "DELETE", named:
            return "delete" if named else "deletecollection"
    raise failures.not_allowed()
