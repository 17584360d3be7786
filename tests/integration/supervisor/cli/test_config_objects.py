"""ConfigMaps and Secrets on the command line and at the admin socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ipc.host.clock import monotonic, rfc3339
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.link.messages.api_server import (
    DeleteObject,
    DeletePod,
    ObjectChanged,
    ObjectGone,
    ObjectSummary,
    ReadObject,
    Reply,
)
from supervisor.cli.describe.config_objects import describe_config_object
from tests.support.api_server import STARTED, Master, eventually, pod_changed, watching
from tests.support.cli import rootlet, run_here

CONFIG_MAP, SECRET = ObjectKind.CONFIG_MAP, ObjectKind.SECRET


def changed(version: int, kind: ObjectKind, name: str, *, namespace: str = "default", **fields: Any) -> ObjectChanged:
    meta = ObjectMeta(
        name=name, namespace=namespace, uid=f"uid-{name}", labels={"app": name}, creation_timestamp=rfc3339(STARTED)
    )
    sizes = {"a": 3, "b": 4}
    defaults: dict[str, Any] = {"sizes": sizes, "keys": len(sizes), "size_bytes": 7, "type": ""}
    summary = ObjectSummary(kind=kind, metadata=meta, source="file", file="a.yaml", **(defaults | fields))
    return ObjectChanged(resource_version=version, summary=summary)


def ready(master: Master) -> None:
    master.ready(
        changed(1, CONFIG_MAP, "app"),
        changed(2, CONFIG_MAP, "app", namespace="away"),
        changed(3, SECRET, "login", type="Opaque", immutable=True),
    )


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


async def test_tables_are_kubectls(master: Master) -> None:
    ready(master)
    header, row = rows((await rootlet(master, "get", "cm")).out)
    assert (header, row[:2]) == (["NAME", "DATA", "AGE"], ["app", "2"])
    header, row = rows((await rootlet(master, "get", "secrets", "-o", "wide")).out)
    assert header == ["NAME", "TYPE", "DATA", "AGE", "SIZE", "IMMUTABLE", "SOURCE"]
    assert (row[:3], row[4:]) == (["login", "Opaque", "2"], ["7", "true", "file:", "a.yaml"])
    everywhere = rows((await rootlet(master, "get", "configmaps", "-A", "--no-headers")).out)
    assert [row[:2] for row in everywhere] == [["away", "app"], ["default", "app"]]
    assert (await rootlet(master, "get", "secret", "-o", "name")).out == "secret/login\n"
    nothing = await rootlet(master, "get", "secrets", "-n", "away")
    assert nothing.err == "No resources found in away namespace.\n"


async def test_one_by_name(master: Master) -> None:
    ready(master)
    found = json.loads((await rootlet(master, "get", "secret/login", "-o", "json")).out)
    assert (found["kind"], found["apiVersion"]) == ("SecretSummary", "rootlet.dev/v1alpha1")
    assert (found["metadata"]["namespace"], found["dataSizes"]) == ("default", {"a": 3, "b": 4})
    missing = await rootlet(master, "get", "secret", "app")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): secrets "app" not found\n')


async def test_values_are_shown_to_who_asks_for_them(master: Master) -> None:
    """Values of Secrets are shown by name and with a flag only: no list has them."""
    ready(master)

    def answer(request: Any) -> Reply:
        known = {"app": {"data": {"a": "b"}}, "login": {"data": {"password": "aHVudGVyMg=="}}}
        if not isinstance(request, ReadObject) or request.name not in known or request.namespace != "default":
            return Reply(request_id=request.request_id, code=404, reason="NotFound", message="not found")
        head = {"kind": request.kind, "apiVersion": "v1", "metadata": {"name": request.name, "namespace": "default"}}
        return Reply(request_id=request.request_id, code=200, message=json.dumps({**head, **known[request.name]}))

    master.answer = answer
    shown = await rootlet(master, "get", "cm", "app", "-o", "jsonpath={.kind} {.data.a}")
    assert shown.out == "ConfigMap b"
    listed = json.loads((await rootlet(master, "get", "cm", "-A", "-o", "json")).out)
    assert [item["data"] for item in listed["items"]] == [{"a": "b"}], "the other one has gone meanwhile"
    secret = await rootlet(master, "get", "secret", "login", "-o", "json", "--show-values")
    assert json.loads(secret.out)["data"] == {"password": "aHVudGVyMg=="}
    assert secret.err == ""
    for arguments in (["login", "-o", "json"], ["-o", "json"]):
        found = await rootlet(master, "get", "secret", *arguments)
        assert "--show-values shows those" in found.err
        hidden = json.loads(found.out)
        assert "aHVudGVyMg" not in json.dumps(hidden)
    refused = await rootlet(master, "get", "secrets", "-o", "json", "--show-values")
    assert (refused.code, refused.err) == (1, "error: name the Secrets whose values are to be shown\n")
    code, status = await master.get("/api/v1/namespaces/default/secrets/login")
    assert (code, status["reason"]) == (403, "Forbidden")


async def test_describe(master: Master) -> None:
    ready(master)
    described = await rootlet(master, "describe", "secret", "login")
    assert described.out.splitlines()[:4] == [
        "Name:       login",
        "Namespace:  default",
        "Labels:     app=login",
        "Type:       Opaque",
    ]
    assert described.out.endswith("Data\n====\na:  3 bytes\nb:  4 bytes\n")
    two = await rootlet(master, "describe", "cm/app", "configmap/app")
    assert two.out.count("Name:  ") == 2
    assert (await rootlet(master, "describe", "cm", "nobody")).code == 1


def test_describe_says_what_it_leaves_out() -> None:
    found = {
        "metadata": {"name": "a"},
        "type": "",
        "immutable": False,
        "source": "file: a",
        "sizeBytes": 0,
        "dataSizes": {"evil\x1b[2J": 0},
        "keys": 5,
    }
    described = describe_config_object(found, 0.0)
    assert described.endswith("... and 4 more\n")
    assert "\x1b" not in described


async def test_a_watch_sees_them_change_and_go(master: Master) -> None:
    ready(master)
    await eventually(lambda: master.introduced_as != 0, "it is there")
    async with watching(master, "/rootlet/v1/namespaces/default/configmaps") as watch:
        assert await watch.take(1) == [("ADDED", "app")]
        master.feed(changed(4, CONFIG_MAP, "app", size_bytes=9))
        master.feed(changed(5, SECRET, "other"))
        master.feed(ObjectGone(resource_version=6, kind=CONFIG_MAP, namespace="away", name="app"))
        master.feed(ObjectGone(resource_version=7, kind=CONFIG_MAP, namespace="default", name="app"))
        assert await watch.take(2) == [("MODIFIED", "app"), ("DELETED", "app")]


async def test_delete_waits_until_it_is_gone(master: Master) -> None:
    ready(master)
    deleting = asyncio.create_task(rootlet(master, "delete", "cm", "app"))
    await eventually(lambda: bool(master.requests), "the deletion came")
    assert master.requests == [DeleteObject(request_id=1, kind=CONFIG_MAP, namespace="default", name="app")]
    master.feed(ObjectGone(resource_version=4, kind=CONFIG_MAP, namespace="default", name="app"))
    found = await deleting
    assert (found.code, found.out) == (0, 'configmap "app" deleted from default namespace\n')


async def test_delete_what_a_manifest_names(master: Master) -> None:
    master.ready(pod_changed(1, "web"), changed(2, SECRET, "login"))
    manifest = b"""
apiVersion: v1
kind: List
items:
- {kind: Pod, metadata: {name: web}}
- {kind: ConfigMap, metadata: {name: app, namespace: away}}
---
apiVersion: v1
kind: SecretList
items: [{metadata: {name: login}}]
"""
    found = await rootlet(master, "delete", "-f", "-", "--no-wait", stdin=manifest)
    assert found.out.splitlines() == [
        'pod "web" deleted from default namespace',
        'configmap "app" deleted from away namespace',
        'secret "login" deleted from default namespace',
    ]
    assert [type(request) for request in master.requests] == [DeletePod, DeleteObject, DeleteObject]


async def test_the_timeout_is_that_of_the_whole_deletion(master: Master) -> None:
    """Not of each resource; and what has gone while another one was waited for is gone."""
    master.ready(pod_changed(1, "web"), changed(2, CONFIG_MAP, "app"), changed(3, SECRET, "login"))
    timeout_s, asked = 6, ("pod/web", "cm/app", "secret/login")
    began = monotonic()
    deleting = asyncio.create_task(rootlet(master, "delete", *asked, f"--timeout={timeout_s}s"))
    await eventually(lambda: len(master.requests) == len(asked), "the deletions came")
    master.feed(ObjectGone(resource_version=4, kind=CONFIG_MAP, namespace="default", name="app"))
    found = await deleting
    assert monotonic() - began < 2 * timeout_s, "two are never gone"
    assert found.err.splitlines() == [
        "error: timed out waiting for the end of pods/web",
        "error: timed out waiting for the end of secrets/login",
    ]


async def test_delete_of_two_kinds_takes_the_names_of_both(master: Master) -> None:
    master.ready(pod_changed(1, "app"), changed(2, CONFIG_MAP, "app"))
    found = await rootlet(master, "delete", "pod,cm", "app", "--no-wait")
    assert found.code == 0, found.err
    assert found.out == 'pod "app" deleted from default namespace\nconfigmap "app" deleted from default namespace\n'


@pytest.mark.parametrize("word", ["web", "service", "secrets,services"])
async def test_a_word_that_is_no_type_deletes_nothing(master: Master, word: str) -> None:
    """``delete service web`` must not be taken for two pods, of which one is there."""
    master.ready(pod_changed(1, "web"))
    found = await rootlet(master, "delete", word, "web")
    assert found.code == 1
    assert f'the server doesn\'t have a resource type "{word.split(",")[-1]}"' in found.err
    assert master.requests == []


async def test_delete_by_label_and_a_refusal(master: Master) -> None:
    ready(master)
    text = 'secrets "login" comes from the manifest a.yaml: remove it there'
    master.answer = lambda request: Reply(request_id=request.request_id, code=403, reason="Forbidden", message=text)
    found = await rootlet(master, "delete", "secrets", "-l", "app=login")
    assert (found.code, found.err) == (1, f"Error from server (Forbidden): {text}\n")


@pytest.mark.parametrize("body", [b"a: b: hunter2", b"kind: Secret\nstringData: {a: *hunter2}", b'{"a": "hunter2" 5}'])
async def test_a_manifest_that_cannot_be_read_is_not_repeated(master: Master, body: bytes) -> None:
    master.ready()
    found = await rootlet(master, "delete", "-f", "-", stdin=body)
    assert found.code == 1
    assert "document 1" in found.err
    assert "hunter2" not in found.err


def test_what_has_no_description() -> None:
    found = run_here("--socket", "/nowhere", "describe", "services", "a")
    assert found.code == 1
    assert found.err.startswith('error: the server doesn\'t have a resource type "services"')
