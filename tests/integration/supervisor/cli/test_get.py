"""`rootlet get` against a real API server whose master is played by the test."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import yaml

from ipc.host.clock import rfc3339, wall
from ipc.link.messages.api_server import WorkerInfo
from tests.support.api_server import (
    DEADLINE_S,
    Master,
    agent_changed,
    api_server,
    container_status,
    event_changed,
    listen_at,
    pod_changed,
    status_of,
)
from tests.support.cli import ROOT, rootlet, start

PENDING = status_of(phase="Pending", conditions=[{"type": "Ready", "status": "False"}])


async def test_get_pods_is_kubectls_table(master: Master) -> None:
    ended = {"terminated": {"exitCode": 1, "finishedAt": rfc3339(wall() - 7200)}}
    crashing = container_status(
        "app",
        ready=False,
        restartCount=3,
        state={"waiting": {"reason": "CrashLoopBackOff"}},
        lastState=ended,
    )
    status = status_of(phase="Running", containerStatuses=[crashing, container_status("log")])
    master.ready(pod_changed(1, "web-with-a-long-name"), pod_changed(2, "db", containers=("app", "log"), status=status))
    found = await rootlet(master, "get", "pods")
    header, db, web = found.out.splitlines()
    assert header == "NAME                   READY   STATUS             RESTARTS       AGE"
    assert db.startswith("db                     1/2     CrashLoopBackOff   3 (120m ago)   ")
    assert web.startswith("web-with-a-long-name   1/1     Running            0              ")
    assert (found.code, found.err) == (0, "")


async def test_get_wide_and_all_namespaces(master: Master) -> None:
    master.ready(pod_changed(1, "web"), pod_changed(2, "web", namespace="test", uid="u2"))
    found = await rootlet(master, "get", "po", "-A", "-o", "wide", "--no-headers")
    rows = [line.split() for line in found.out.splitlines()]
    assert [(row[0], row[1], row[6], row[7]) for row in rows] == [
        ("default", "web", "10.0.0.7", "node-1"),
        ("test", "web", "10.0.0.7", "node-1"),
    ]


async def test_get_json_is_a_list_as_kubectl_prints_it(master: Master) -> None:
    master.ready(pod_changed(1, "web"), pod_changed(2, "db"))
    found = await rootlet(master, "get", "pods", "-o", "json")
    listed = json.loads(found.out)
    assert list(listed) == ["apiVersion", "items", "kind", "metadata"]
    assert (listed["kind"], listed["apiVersion"], listed["metadata"]) == ("List", "v1", {"resourceVersion": ""})
    assert [item["kind"] for item in listed["items"]] == ["Pod", "Pod"]
    assert found.out.startswith(
        '{\n    "apiVersion": "v1",\n    "items": [\n        {\n            "apiVersion": "v1",'
    )


async def test_get_one_pod_as_a_document(master: Master) -> None:
    master.ready(pod_changed(1, "web"), pod_changed(2, "db"))
    as_yaml = await rootlet(master, "get", "pod", "web", "-o", "yaml")
    assert yaml.safe_load(as_yaml.out)["metadata"]["name"] == "web"
    names = await rootlet(master, "get", "pod/web", "-o", "name")
    assert names.out == "pod/web\n"


async def test_get_a_pod_that_is_not_there(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    found = await rootlet(master, "get", "pods", "web", "nope")
    assert found.code == 1
    assert found.out.splitlines()[1].startswith("web ")
    assert found.err == 'Error from server (NotFound): pods "nope" not found\n'


async def test_get_nothing(master: Master) -> None:
    master.ready()
    here = await rootlet(master, "get", "pods")
    everywhere = await rootlet(master, "get", "events", "-A")
    document = await rootlet(master, "get", "pods", "-o", "json")
    assert (here.code, here.out, here.err) == (0, "", "No resources found in default namespace.\n")
    assert everywhere.err == "No resources found\n"
    assert json.loads(document.out)["items"] == []


async def test_get_by_label(master: Master) -> None:
    master.ready(pod_changed(1, "web", labels={"app": "web"}), pod_changed(2, "db"))
    found = await rootlet(master, "get", "pods", "-l", "app=web", "-o", "name")
    assert found.out == "pod/web\n"
    wrong = await rootlet(master, "get", "pods", "-l", "app=(")
    assert wrong.code == 1
    assert wrong.err.startswith("Error from server (BadRequest): unable to parse label selector")


async def test_get_events(master: Master) -> None:
    master.ready(event_changed(1, "web.2", "web", count=3), event_changed(2, "web.1", "web", reason="Pulled"))
    found = await rootlet(master, "get", "events")
    header, started, pulled = found.out.splitlines()
    assert header.split("  ")[0] == "LAST SEEN"
    assert "Normal   Started   pod/web   Started container app" in started
    assert "Pulled" in pulled
    by_name = await rootlet(master, "get", "events", "web.1", "-o", "json")
    assert json.loads(by_name.out)["reason"] == "Pulled"


async def test_get_workers(master: Master) -> None:
    info = WorkerInfo(slot=1, role="api-server", name="api", pid=1234, incarnation=1, state="Running", pods=0, deaths=2)
    master.ready()
    master.feed(agent_changed(info))
    found = await rootlet(master, "get", "workers")
    row = found.out.splitlines()[1].split()
    assert row[:6] == ["api", "api-server", "Running", "0", "2", "1234"]
    assert found.out.rstrip().endswith("serving the admin socket")
    wide = await rootlet(master, "get", "workers", "-o", "wide")
    assert "PSS" in wide.out
    document = await rootlet(master, "get", "workers", "-o", "json")
    assert json.loads(document.out)["items"][0]["name"] == "api"


async def test_watch_prints_rows_as_they_change(master: Master) -> None:
    master.ready(pod_changed(1, "web", status=PENDING))
    process = await start(master, "get", "pods", "-w")
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        assert (await process.stdout.readline()).startswith(b"NAME   READY   STATUS")
        assert b"Pending" in await process.stdout.readline()
        master.feed(pod_changed(2, "web"))
        assert b"Running" in await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out, err.strip()) == (-signal.SIGINT, b"", b"")


async def test_a_watch_survives_the_api_server(tmp_path: Path) -> None:
    """A change that came while there was no server is told by its successor."""
    listening = listen_at(tmp_path / "rootlet.sock")
    async with api_server(tmp_path, listening) as first:
        first.ready(pod_changed(1, "web", status=PENDING), pod_changed(2, "db"))
        process = await start(first, "get", "pods", "-w", "--no-headers")
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            assert (await process.stdout.readline()).startswith(b"db ")
            assert (await process.stdout.readline()).startswith(b"web ")
    async with api_server(tmp_path, listening) as second:
        second.ready(pod_changed(7, "web"))
        async with asyncio.timeout(DEADLINE_S):
            assert (await process.stdout.readline()).startswith(b"db ")
            assert (await process.stdout.readline()).split()[:3] == [b"web", b"1/1", b"Running"]
            second.feed(pod_changed(8, "new"))
            assert (await process.stdout.readline()).startswith(b"new ")
    listening.close()
    async with asyncio.timeout(DEADLINE_S):
        _, err = await process.communicate()
    assert (process.returncode, err.startswith(b"rootlet: no agent answers on ")) == (1, True)


async def test_a_reader_that_goes_away_is_no_error(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    process = await asyncio.create_subprocess_shell(
        f'{sys.executable} -m supervisor --socket {master.socket_path} get pods | true; echo "${{PIPESTATUS[0]}}"',
        cwd=ROOT,
        executable="/bin/bash",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (out, err) == (b"1\n", b"")
