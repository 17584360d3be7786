"""Adapters of the groups about requests to the kubelet's server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.kubelet_tables.later import Result
from tests.kubelet_tables.translate import Json
from workers.api_server.access.attributes import is_subpath, request_attributes


def _request_attributes(case: Json) -> Result:
    """Name, API group and version are those of every node, and nobody asks for them."""
    found = request_attributes(case["method"], case["path"], fine_grained=case["fine_grained"])
    return [_told(expected) for expected in case["expected"]], [
        (each.verb, each.resource, each.subresource) for each in found
    ]


def _told(attributes: Mapping[str, Any]) -> tuple[str, str, str]:
    return attributes["verb"], attributes["resource"], attributes["subresource"]


def _is_subpath(case: Json) -> Result:
    return case["expected"], is_subpath(case["subpath"], case["path"])


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "kubelet_request_attributes": _request_attributes,
    "is_subpath": _is_subpath,
}
