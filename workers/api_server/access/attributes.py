"""Permissions that a request asks of the node, in the words of authorization (pkg/kubelet/server/auth.go). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

RESOURCE: Final = "nodes"
PROXY: Final = "proxy"
"""Subresource that allows everything which has none of its own, and everything that has got one since."""

_VERBS: Final[Mapping[str, str]] = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OWN: Final[tuple[tuple[str, str], ...]] = (
    ("/stats", "stats"),
    ("/metrics", "metrics"),
    ("/logs", "log"),
    ("/spec", "spec"),
    ("/checkpoint", "checkpoint"),
    ("/statusz", "statusz"),
    ("/flagz", "configz"),
)
"""Path to the one subresource that allows it. ``/spec`` is of the first kubelets."""
_FINE_GRAINED: Final[tuple[tuple[str, str], ...]] = (
    ("/pods", "pods"),
    ("/runningpods", "pods"),
    ("/allocatedPods", "pods"),
    ("/podInfo", "pods"),
    ("/healthz", "healthz"),
    ("/configz", "configz"),
)
"""Path to the subresource that allows it beside ``proxy``."""


class Attributes(msgspec.Struct, frozen=True):
    """One of the permissions that would do."""

    verb: str
    subresource: str
    resource: str = RESOURCE


def request_attributes(method: str, path: str, *, fine_grained: bool = True) -> tuple[Attributes, ...]:
    """Return the permissions of which any allows the request, the narrowest first (nodeAuthorizerAttributesGetter,
    GetRequestAttributes). ``fine_grained``: upstream's feature gate KubeletFineGrainedAuthz, on since 1.33."""
    verb = _VERBS.get(method, "")
    if own := _subresource(path, _OWN):
        return (Attributes(verb, own),)
    fine = _subresource(path, _FINE_GRAINED) if fine_grained else ""
    return tuple(Attributes(verb, subresource) for subresource in (fine, PROXY) if subresource)


def _subresource(path: str, table: tuple[tuple[str, str], ...]) -> str:
    return next((subresource for prefix, subresource in table if is_subpath(path, prefix)), "")


def is_subpath(subpath: str, path: str) -> bool:
    """Whether ``subpath`` is ``path`` or lies below it (isSubpath)."""
    path = path.removesuffix("/")
    return subpath == path or subpath.startswith(f"{path}/")
