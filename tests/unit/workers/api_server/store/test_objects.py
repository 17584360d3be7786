"""The JSON that clients get."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from ipc.link.messages.api_server import EventChanged
from tests.support.api_server import event_changed, pod_changed
from workers.api_server.printers.representation import Plain
from workers.api_server.store.objects import StoredObject, event_object, pod_object


def without_repeated_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), f"said twice: {keys}"
    return dict(pairs)


@pytest.mark.parametrize(
    ("made", "kind"),
    [(pod_object(pod_changed(1, "web"), 1), "Pod"), (event_object(event_changed(1, "web.1", "web"), 1), "Event")],
    ids=["pod", "event"],
)
def test_an_object_says_once_what_it_is(made: StoredObject[Any], kind: str) -> None:
    listed = Plain().many(kind, "v1", "1", [made.json])
    shown = json.loads(listed, object_pairs_hook=without_repeated_keys)
    assert [(item["apiVersion"], item["kind"]) for item in shown["items"]] == [("v1", kind)]


def test_an_event_is_read_back_from_its_json() -> None:
    told = event_changed(1, "web.1", "web", reason="Failed", type="Warning")
    stored = event_object(told, 7)
    metadata = structs.replace(told.event.metadata, resource_version="7")
    assert stored.message == EventChanged(resource_version=7, event=structs.replace(told.event, metadata=metadata))
    assert stored.watched().fields == stored.fields
    assert {name: value for name, value in stored.fields.items() if value} == {
        "metadata.name": "web.1",
        "metadata.namespace": "default",
        "involvedObject.kind": "Pod",
        "involvedObject.name": "web",
        "involvedObject.namespace": "default",
        "involvedObject.uid": "uid-web",
        "involvedObject.apiVersion": "v1",
        "reason": "Failed",
        "type": "Warning",
    }
