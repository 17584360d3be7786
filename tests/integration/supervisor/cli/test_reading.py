"""`get`, `describe` and `events` with everything that hands expect of them, against a real API server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import yaml

from ipc.host.clock import rfc3339, wall
from tests.support.api_server import DEADLINE_S, Master, event_changed, pod_changed, status_of
from tests.support.cli import rootlet, start

PENDING = status_of(phase="Pending")


@pytest.fixture
async def told(master: Master) -> Master:
    """A master with some pods and events."""
    master.ready(
        pod_changed(1, "web", labels={"app": "web", "example.org/tier": "front"}),
        pod_changed(2, "db", labels={"app": "db"}, status=PENDING, uid="uid-db"),
        pod_changed(3, "far", namespace="test", uid="uid-far"),
        event_changed(4, "web.1", "web"),
        event_changed(5, "web.2", "web", reason="Failed", type="Warning"),
        event_changed(6, "db.1", "db"),
    )
    return master


async def out(master: Master, *arguments: str) -> str:
    found = await rootlet(master, *arguments)
    assert (found.code, found.err) == (0, ""), arguments
    return found.out


@contextlib.asynccontextmanager
async def following(master: Master, *arguments: str) -> AsyncIterator[asyncio.StreamReader]:
    """The output of a command that goes on until it is ended."""
    process = await start(master, *arguments)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield process.stdout
    finally:
        process.kill()
        await process.communicate()


async def names(master: Master, *arguments: str) -> list[str]:
    return (await out(master, "get", *arguments, "-o", "name")).split()


async def test_manifests_below_a_directory_name_objects_too(told: Master, tmp_path: Path) -> None:
    below = tmp_path / "manifests" / "front"
    below.mkdir(parents=True)
    manifest = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
    (below / "web.yaml").write_text(manifest.format(name="web"))
    (below.parent / "db.yaml").write_text(manifest.format(name="db"))
    files = ("-f", str(below.parent))
    assert await names(told, *files) == ["pod/db"]
    assert await names(told, *files, "-R") == ["pod/db", "pod/web"]
    assert (await out(told, "describe", *files, "--recursive")).count("Namespace:") == 2
    assert (await out(told, "describe", *files)).count("Namespace:") == 1
    goal = "--for=jsonpath={.metadata.name}"
    assert await out(told, "wait", *files, goal) == "pod/db condition met\npod/web condition met\n"
    assert await out(told, "wait", *files, goal, "-R=false") == "pod/db condition met\n"


async def test_several_kinds_and_names(told: Master) -> None:
    assert await names(told, "pods,ev") == ["pod/db", "pod/web", "event/db.1", "event/web.1", "event/web.2"]
    assert await names(told, "po/web", "ev/web.1", "event/db.1") == ["pod/web", "event/web.1", "event/db.1"]
    assert await names(told, "PODS.v1.", "web") == ["pod/web"]
    assert await names(told, "ns") == ["namespace/default", "namespace/test"]
    both = await out(told, "get", "po/web", "ns/test")
    pods, namespaces = both.split("\n\n")
    assert [line.split()[0] for line in pods.splitlines()] == ["NAME", "pod/web"]
    assert [line.split()[0] for line in namespaces.splitlines()] == ["NAME", "namespace/test"]
    everything = await out(told, "get", "all")
    assert [line.split()[0] for line in everything.splitlines()] == ["NAME", "db", "web"]


async def test_spellings_of_flags(told: Master) -> None:
    for flags in (["-o=name"], ["-oname"], ["--output=name"], ["--output", "name"], ["-o", "name", "--watch=false"]):
        assert await out(told, "get", "pods", *flags) == "pod/db\npod/web\n", flags
    for before in (["-n", "test"], ["-ntest"], ["-n=test"], ["--namespace=test"]):
        assert await out(told, *before, "get", "pods", "-o=name") == "pod/far\n", before
    assert await out(told, "-n", "test", "get", "pods", "-o=name", "-n", "default") == "pod/db\npod/web\n"
    assert len((await out(told, "get", "pods", "-A=true", "--no-headers=true")).splitlines()) == 3


async def test_selectors(told: Master) -> None:
    assert await names(told, "pods", "--field-selector", "status.phase=Running") == ["pod/web"]
    assert await names(told, "events", "--field-selector=type!=Normal") == ["event/web.2"]
    assert await names(told, "pods", "-l", "app in (web, x)") == ["pod/web"]
    wrong = await rootlet(told, "get", "pods", "--field-selector=spec.x=1")
    assert wrong.err.startswith("Error from server (BadRequest): field label not supported: spec.x")


async def test_columns(told: Master) -> None:
    header, db, web = (await out(told, "get", "pods", "-L", "app", "-L=example.org/tier", "--show-labels")).splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "APP", "TIER", "LABELS"]
    assert db.split()[-2:] == ["db", "app=db"]
    assert web.split()[-3:] == ["web", "front", "app=web,example.org/tier=front"]
    kinds = await out(told, "get", "pods", "--show-kind", "--no-headers")
    assert [line.split()[0] for line in kinds.splitlines()] == ["pod/db", "pod/web"]
    wide = (await out(told, "get", "pods", "-o", "wide")).splitlines()[0]
    assert wide.endswith("IP         NODE     NOMINATED NODE   READINESS GATES   PORTS    HELD UP")


async def test_sorting(told: Master) -> None:
    rows = (await out(told, "get", "pods", "--sort-by=.status.phase", "--no-headers")).splitlines()
    assert [row.split()[0] for row in rows] == ["db", "web"]
    rows = (await out(told, "get", "pods", "--sort-by={.metadata.labels.app}", "--no-headers")).splitlines()
    assert [row.split()[0] for row in rows] == ["db", "web"]
    document = json.loads(await out(told, "get", "pods", "-A", "--sort-by=metadata.uid", "-o", "json"))
    assert [item["metadata"]["name"] for item in document["items"]] == ["db", "far", "web"]
    wrong = await rootlet(told, "get", "pods", "--sort-by=.nope")
    assert (wrong.code, wrong.err) == (
        1,
        'error: couldn\'t find any field with path "{.nope}" in the list of objects\n',
    )


async def test_templates(told: Master, tmp_path: Path) -> None:
    template = "{range .items[*]}{.metadata.name}={.status.phase} {end}"
    assert await out(told, "get", "pods", "-o", f"jsonpath={template}") == "db=Pending web=Running "
    assert await out(told, "get", "pod", "web", "-o=jsonpath", "--template={.metadata.labels.app}") == "web"
    file = tmp_path / "template"
    file.write_text(template)
    assert await out(told, "get", "pods", f"-o=jsonpath-file={file}") == "db=Pending web=Running "
    assert json.loads(await out(told, "get", "pod/web", "-o=jsonpath-as-json={.metadata.name}")) == ["web"]
    columns = "NAME:.metadata.name,APP:.metadata.labels.app,NONE:.x"
    assert await out(told, "get", "pods", f"-o=custom-columns={columns}") == (
        "NAME   APP   NONE\ndb     db    <none>\nweb    web   <none>\n"
    )
    file.write_text("A B\n.metadata.name .status.phase\n")
    assert await out(told, "get", "pods", f"-ocustom-columns-file={file}", "--no-headers") == (
        "db    Pending\nweb   Running\n"
    )
    missing = await rootlet(told, "get", "pods", "-o=jsonpath={.x}", "--allow-missing-template-keys=false")
    assert missing.err == 'error: error executing jsonpath "{.x}": Error executing template: x is not found.\n'


async def test_manifests_name_objects(told: Master, tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(
        "kind: Pod\napiVersion: v1\nmetadata: {name: web}\n---\n"
        "kind: Pod\napiVersion: v1\nmetadata: {name: far, namespace: test}\n---\n"
        "kind: Pod\napiVersion: v1\nmetadata: {name: gone}\n"
    )
    found = await rootlet(told, "get", "-f", str(manifest), "-o", "name")
    assert (found.code, found.out, found.err) == (
        1,
        "pod/web\npod/far\n",
        'Error from server (NotFound): pods "gone" not found\n',
    )
    described = await rootlet(told, "describe", "-f", str(manifest))
    assert [line.split()[-1] for line in described.out.splitlines() if line.startswith("Name:")] == ["web", "far"]
    assert described.code == 1
    both = await rootlet(told, "get", "pods", "-f", str(manifest))
    assert both.err.startswith("error: when paths, URLs, or stdin is provided")


async def test_what_is_not_there(told: Master) -> None:
    assert await out(told, "get", "pod", "nope", "--ignore-not-found") == ""
    assert await out(told, "get", "pods", "web", "nope", "--ignore-not-found", "-o=name") == "pod/web\n"
    single = await rootlet(told, "get", "pod", "nope", "-o", "json")
    assert (single.code, single.out, single.err) == (1, "", 'Error from server (NotFound): pods "nope" not found\n')
    nothing = await rootlet(told, "get", "pods,cm", "-l", "app=none")
    assert (nothing.code, nothing.err) == (0, "No resources found in default namespace.\n")
    nodes = await rootlet(told, "get", "nodes", "-l", "app=none")
    assert nodes.err == "No resources found\n"


async def test_raw(told: Master) -> None:
    listed = json.loads(await out(told, "get", "--raw", "/api/v1/namespaces/test/pods?limit=500"))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["far"]
    gone = await rootlet(told, "get", "--raw", "/api/v1/namespaces/test/pods/nope")
    assert (gone.code, gone.err) == (1, 'Error from server (NotFound): pods "nope" not found\n')


async def test_a_watch_with_what_has_happened(told: Master) -> None:
    async with following(told, "get", "pods", "-w", "--output-watch-events") as lines:
        assert [(await lines.readline()).split()[:2] for _ in range(3)] == [
            *([b"EVENT", b"NAME"], [b"ADDED", b"db"], [b"ADDED", b"web"]),
        ]
        told.gone(7, "db")
        assert (await lines.readline()).split()[:2] == [b"DELETED", b"db"]


async def test_a_watch_of_changes_alone(told: Master) -> None:
    """Nobody knows when the command has listed what it leaves out: pods come until it has seen one."""
    async with following(told, "get", "pods", "--watch-only", "-o", "name") as lines:
        line, version = asyncio.ensure_future(lines.readline()), 7
        while not line.done():
            told.feed(pod_changed(version, f"new-{version}", uid=f"uid-{version}"))
            await asyncio.wait([line], timeout=0.1)
            version += 1
        assert line.result().startswith(b"pod/new-")


async def test_a_watch_of_one_that_is_not_there(told: Master) -> None:
    found = await rootlet(told, "get", "pod", "nope", "-w")
    assert (found.code, found.err) == (1, 'Error from server (NotFound): pods "nope" not found\n')


async def test_descriptions(told: Master) -> None:
    found = await out(told, "describe", "pods", "-l", "app")
    assert [line.split()[-1] for line in found.splitlines() if line.startswith("Name:")] == ["db", "web"]
    assert "  Warning  Failed" in found
    assert "Events:" not in await out(told, "describe", "po/web", "--show-events=false")
    prefix = await out(told, "describe", "pod", "we")
    assert prefix.split()[:2] == ["Name:", "web"]
    mixed = await out(told, "describe", "pod/web", "ns/test", "ev/web.2")
    assert "Status:       Active" in mixed
    assert "Involved Object:" in mixed
    everywhere = await out(told, "describe", "pods", "-A")
    assert everywhere.count("\nNamespace:") == 3
    missing = await rootlet(told, "describe", "pod", "web", "nope")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): pods "nope" not found\n')
    none = await rootlet(told, "describe", "cm")
    assert (none.code, none.err) == (0, "No resources found in default namespace.\n")


async def test_events(told: Master) -> None:
    header, *rows = (await out(told, "events", "--for", "pod/web")).splitlines()
    assert header.split("  ")[0] == "LAST SEEN"
    assert [row.split()[1:4] for row in rows] == [["Normal", "Started", "Pod/web"], ["Warning", "Failed", "Pod/web"]]
    warnings = await out(told, "events", "--types=warning", "--no-headers")
    assert warnings.split()[1:3] == ["Warning", "Failed"]
    assert (await out(told, "events", "-A")).startswith("NAMESPACE   LAST SEEN")
    listed = json.loads(await out(told, "events", "-o", "json"))
    assert [event["metadata"]["name"] for event in listed["items"]] == ["web.1", "web.2", "db.1"]
    none = await rootlet(told, "events", "-n", "test")
    assert (none.code, none.err) == (0, "No events found in test namespace.\n")


async def test_events_as_they_come(told: Master) -> None:
    async with following(told, "events", "--for=pod/db", "-w", "--no-headers") as lines:
        assert (await lines.readline()).split()[3] == b"Pod/db"
        told.feed(event_changed(8, "web.3", "web"), event_changed(9, "db.2", "db", reason="Killing"))
        assert (await lines.readline()).split()[1:4] == [b"Normal", b"Killing", b"Pod/db"]


async def test_events_are_exported_for_a_ticket(master: Master) -> None:
    now = rfc3339(wall())
    late = event_changed(2, "db.1", "db", reason="Killing\x1b")
    late = msgspec.structs.replace(late, event=msgspec.structs.replace(late.event, last_timestamp=now))
    master.ready(late, event_changed(1, "web.1", "web"))
    lines = (await out(master, "events", "export")).splitlines()
    assert [json.loads(line)["reason"] for line in lines] == ["Started", "Killing\x1b"]
    assert "\x1b" not in "".join(lines)
    (recent,) = (await out(master, "events", "export", "--since", "10m")).splitlines()
    assert json.loads(recent)["metadata"]["name"] == "db.1"
    document = yaml.safe_load(await out(master, "events", "export", "-oyaml", "--since=0"))
    assert [event["metadata"]["name"] for event in document["items"]] == ["web.1", "db.1"]
    refused = await rootlet(master, "events", "export", "--since=-1s")
    assert (refused.code, refused.err) == (1, "error: --since must be greater than 0\n")
