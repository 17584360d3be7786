"""Adapters of the groups about a node in a cluster: its addresses, its registration, when its status goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final

import msgspec

from ipc.k8s.nodestatus.node import NodeStatus
from ipc.k8s.nodestatus.node_ip import NodeIpError, chosen_node_ips, parse_node_ips, validate_node_ip
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json
from workers.cluster.node.reconcile import (
    with_default_labels,
    with_default_resources,
    with_huge_pages,
    without_extended_resources,
)
from workers.cluster.node.registration import try_register
from workers.cluster.node.report_schedule import is_period_expired, status_has_changed
from workers.cluster.node.types import ClusterNode, decode_node, encode_node
from workers.kubeclient.errors import ApiError, ClusterError
from workers.kubeclient.protocol import Client, Verb, WatchEvent
from workers.nodestatus.addresses import node_addresses

_CODES: Final = {"AlreadyExists": 409, "Forbidden": 403, "Conflict": 409, "NotFound": 404}


def _node(found: Json) -> ClusterNode:
    """The cases' Nodes have no name."""
    metadata = {"name": "n1", **found.get("metadata", {})}
    return decode_node(msgspec.json.encode({**found, "metadata": metadata}), metadata["name"])


def _shown(node: ClusterNode, like: Json) -> Json:
    shown: Json = msgspec.json.decode(encode_node(node))
    return {name: part for name, part in shown.items() if name != "metadata" or name in like}


def _node_addresses(case: Json) -> Result:
    """Annotations are those of cloud providers: nobody writes any."""
    assert not case["existing_annotations"]
    assert not case["expected_annotations"]
    resolved = [case["resolved_ip"]] if case["resolved_ip"] else []
    try:
        stated = parse_node_ips(",".join(case["node_ips"]))
    except NodeIpError:
        return (case["expect_error"], case["expected"]), (True, None)
    found = node_addresses(chosen_node_ips(stated, resolved), "hostname")
    return (case["expect_error"], case["expected"]), (False, [msgspec.to_builtins(each) for each in found])


def _node_validate_ip(case: Json) -> Result:
    try:
        validate_node_ip(case["node_ip"], [])
    except NodeIpError as error:
        return (case["expect_error"], case["error"]), (True, str(error))
    return (case["expect_error"], case["error"]), (False, "")


def _node_update_default_labels(case: Json) -> Result:
    existing = _node(case["existing_node"])
    got = with_default_labels(_node(case["initial_node"]), existing)
    expected = (case["expected_needs_update"], case["expected_labels"] or {})
    return expected, (got != existing, dict(got.metadata.labels))


def _step(step: Callable[[ClusterNode, ClusterNode], ClusterNode]) -> Callable[[Json], Result]:
    def adapter(case: Json) -> Result:
        existing = _node(case["existing_node"])
        got = step(_node(case["initial_node"]), existing)
        expected = case["expected_node"]
        return (case["expected_needs_update"], expected), (got != existing, _shown(got, expected))

    return adapter


def _status(found: Json | None) -> NodeStatus | None:
    return None if found is None else msgspec.convert(found, NodeStatus)


def _node_status_has_changed(case: Json) -> Result:
    return case["expected"], status_has_changed(_status(case["original"]), _status(case["new"]))


def _node_status_period_expired(case: Json) -> Result:
    got = is_period_expired(case["seconds_since_last_report"], case["report_period_s"], case["delay_s"])
    return case["expected"], got


class _ScriptedServer(Client):
    """Answers as the case says; every request is an action."""

    def __init__(self, case: Json) -> None:
        self._errors = {"POST": case["create_error"], "GET": case["get_error"], "PATCH": case["patch_error"]}
        self._existing = case["existing_node"]
        self.actions = 0

    def watch(self, path: str, *, query: Mapping[str, str]) -> AsyncGenerator[WatchEvent, None]:
        raise AssertionError("a registration watches nothing")

    async def request(self, verb: Verb, path: str, *, body: bytes | None = None, **_: Any) -> bytes:
        self.actions += 1
        if reason := self._errors[verb]:
            raise ApiError(_CODES[reason], reason, reason)
        return body or b"" if verb == "POST" else encode_node(_node(self._existing))


def _node_try_register(case: Json) -> Result:
    if case["get_on_forbidden_disabled"]:
        raise Later("never: KubeletRegistrationGetOnExistsOnly is off by default, and no setting")
    assert case["delete_error"] is None, "nothing is deleted"
    server = _ScriptedServer(case)
    try:
        asyncio.run(try_register(server, _node(case["new_node"])))
    except ClusterError:
        got = False
    else:
        got = True
    return (case["expected"], case["expected_actions"]), (got, server.actions)


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "node_addresses": _node_addresses,
    "node_validate_ip": _node_validate_ip,
    "node_update_default_labels": _node_update_default_labels,
    "node_update_default_resources": _step(with_default_resources),
    "node_reconcile_hugepages": _step(with_huge_pages),
    "node_reconcile_extended_resources": _step(without_extended_resources),
    "node_status_has_changed": _node_status_has_changed,
    "node_status_period_expired": _node_status_period_expired,
    "node_try_register": _node_try_register,
}
