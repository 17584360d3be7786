"""`Table` of meta.k8s.io/v1: to whom it is given, and what stands in it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ipc.k8s.resources import registry
from tests.support.api_server import DEADLINE_S, Master, event_changed, pod_changed

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PODS = "/api/v1/namespaces/default/pods"


async def asked(master: Master, path: str, accept: str = TABLE, **query: str) -> tuple[int, Any]:
    async with master.http.get(path, params=query, headers={"Accept": accept}) as response:
        return response.status, json.loads(await response.read())


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (TABLE, "Table"),
        (f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", "Table"),
        (f"application/json;as=Table;v=v9;g=meta.k8s.io,{TABLE}", "Table"),
        (f"application/json,{TABLE}", "PodList"),
        ("*/*", "PodList"),
        ("application/vnd.kubernetes.protobuf", "PodList"),
        ("", "PodList"),
    ],
)
async def test_who_gets_a_table(master: Master, accept: str, kind: str) -> None:
    master.ready(pod_changed(1, "web"))
    assert (await asked(master, PODS, accept))[1]["kind"] == kind


async def test_a_version_that_nobody_knows_is_refused(master: Master) -> None:
    master.ready()
    code, status = await asked(master, PODS, "application/json;as=Table;v=v9;g=meta.k8s.io")
    assert (code, status["reason"]) == (406, "NotAcceptable")
    code, status = await asked(master, PODS, includeObject="Some")
    assert (code, status["message"]) == (400, "includeObject: must be one of None, Metadata, Object")


async def test_rows_of_a_list_and_of_one(master: Master) -> None:
    master.ready(pod_changed(1, "web", labels={"app": "web"}), pod_changed(2, "db", uid="uid-db"))
    _, table = await asked(master, PODS)
    assert [column["name"] for column in table["columnDefinitions"]][:2] == ["Name", "Ready"]
    assert table["columnDefinitions"][0] == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "",
        "priority": 0,
    }
    assert [row["cells"][:3] for row in table["rows"]] == [["db", "1/1", "Running"], ["web", "1/1", "Running"]]
    about = table["rows"][1]["object"]
    assert (about["kind"], about["metadata"]["labels"], set(about)) == (
        *("PartialObjectMetadata", {"app": "web"}),
        {"kind", "apiVersion", "metadata"},
    )
    _, one = await asked(master, f"{PODS}/web", includeObject="None")
    assert [set(row) for row in one["rows"]] == [{"cells"}]
    _, whole = await asked(master, f"{PODS}/web", includeObject="Object")
    assert whole["rows"][0]["object"]["status"]["phase"] == "Running"
    _, none = await asked(master, PODS, labelSelector="app=none")
    assert (none["rows"], none["kind"]) == ([], "Table")


async def test_every_kind_has_a_cell_for_each_column(master: Master) -> None:
    master.ready(pod_changed(1, "web"), event_changed(2, "web.1", "web"))
    for resource in registry.RESOURCES:
        code, table = await asked(master, resource.list_path(None))
        assert (code, table["kind"]) == (200, "Table"), resource.plural
        assert [column["name"] for column in table["columnDefinitions"]] == [each.name for each in resource.columns]
        assert {len(row["cells"]) for row in table["rows"]} <= {len(resource.columns)}


async def test_events_are_in_the_order_of_time(master: Master) -> None:
    master.ready(event_changed(1, "web.b", "web"), event_changed(2, "web.a", "web"))
    _, table = await asked(master, "/api/v1/events")
    assert [row["object"]["metadata"]["name"] for row in table["rows"]] == ["web.b", "web.a"]


async def test_a_watch_tells_columns_once(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    async with (
        asyncio.timeout(DEADLINE_S),
        master.http.get(PODS, params={"watch": "true"}, headers={"Accept": TABLE}) as response,
    ):
        first = json.loads(await response.content.readline())
        master.feed(pod_changed(2, "db", uid="uid-db"))
        second = json.loads(await response.content.readline())
    assert [event["type"] for event in (first, second)] == ["ADDED", "ADDED"]
    assert [event["object"]["rows"][0]["cells"][0] for event in (first, second)] == ["web", "db"]
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["metadata"]["resourceVersion"] > first["object"]["metadata"]["resourceVersion"]


async def test_lists_are_not_streamed_and_some_kinds_not_watched(master: Master) -> None:
    """Clients that ask for what a newer server has are told so, and list instead."""
    master.ready()
    code, status = await asked(master, PODS, watch="true", sendInitialEvents="true")
    assert (code, status["reason"]) == (422, "Invalid")
    code, status = await asked(master, "/api/v1/namespaces", watch="true")
    assert (code, status["reason"]) == (405, "MethodNotAllowed")


async def test_a_namespace_is_there_while_something_is_in_it(master: Master) -> None:
    master.ready(pod_changed(1, "far", namespace="test"))
    _, listed = await asked(master, "/api/v1/namespaces", "")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["default", "test"]
    assert (await asked(master, "/api/v1/namespaces/test", ""))[1]["status"] == {"phase": "Active"}
    assert (await asked(master, "/api/v1/namespaces/none", ""))[0] == 404
    _, selected = await asked(master, "/api/v1/namespaces", "", fieldSelector="metadata.name=test")
    assert len(selected["items"]) == 1
