"""Requests by their shape: what of them is the same for every name, date and value. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.cluster_wire.recordings import Recorded
from tests.support.servers.kube_api.requests import Request

_NAMED: Final = re.compile(
    r"^(?P<root>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[^/]+)"
    r"(?:/(?P<name>[^/]+))?(?P<below>/[^/]+)?$"
)
_FREE: Final = frozenset(
    {
        "allocatable",
        "allocatedResources",
        "annotations",
        "capacity",
        "config",
        "data",
        "labels",
        "limits",
        "nodeSelector",
        "requests",
    }
)
"""Fields whose keys are anybody's."""


@dataclass
class Shape:
    """All requests of one kind together."""

    queries: set[str] = field(default_factory=set)
    """Names of parameters; of a field selector its field too."""
    content_types: set[str] = field(default_factory=set)
    body: set[str] = field(default_factory=set)
    """Paths of fields that were not null."""
    times: int = 0

    def add(self, query: Mapping[str, str], content_type: str, body: Any) -> None:
        self.times += 1
        self.queries |= set(_query(query))
        self.content_types |= {content_type} if body is not None else set()
        self.body |= set(_paths(body, ""))


Shapes = dict[str, Shape]
"""By kind: ``PATCH /api/v1/namespaces/{namespace}/pods/{name}/status``."""


def of_recordings(found: Iterable[Recorded]) -> Shapes:
    shapes: Shapes = {}
    for one in found:
        if not one.is_event:
            body = one.body if isinstance(one.body, dict) else None
            shape = shapes.setdefault(kind_of(one.verb, one.path, is_watch=one.is_watch), Shape())
            shape.add(one.query, one.content_type, body)
    return shapes


def of_requests(found: Iterable[Request]) -> Shapes:
    shapes: Shapes = {}
    for one in found:
        kind = kind_of(one.verb, one.path, is_watch=one.is_watch)
        shapes.setdefault(kind, Shape()).add(one.query, one.content_type, one.json)
    return shapes


def kind_of(verb: str, path: str, *, is_watch: bool) -> str:
    """Verb and path, without names."""
    found = _NAMED.match(path)
    if found is None:
        return f"{verb} {path}"
    namespace = "/namespaces/{namespace}" if found["namespace"] else ""
    name = "/{name}" if found["name"] else ""
    verb = "WATCH" if is_watch else verb
    return f"{verb} {found['root']}{namespace}/{found['plural']}{name}{found['below'] or ''}"


def _query(query: Mapping[str, str]) -> Iterator[str]:
    for name, value in query.items():
        if name == "fieldSelector":
            yield from (f"fieldSelector={re.split('!?==?', term)[0]}" for term in value.split(","))
        else:
            yield name


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, below in value.items():
            if name.startswith("$setElementOrder") or name in _FREE:
                yield f"{path}.{name}"
            else:
                yield from _paths(below, f"{path}.{name}")
    elif isinstance(value, list):
        for below in value:
            yield from _paths(below, f"{path}[]")
    elif value not in (None, "", 0, False):
        yield path
