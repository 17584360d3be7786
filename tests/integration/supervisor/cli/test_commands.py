"""The commands against a real API server whose master is played by the test."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from ipc.host.clock import rfc3339, wall
from ipc.messages.api_server import ApplyManifests, DeletePod, Reply, StopAgent, WorkerInfo
from supervisor.version import VERSION
from tests.harness.api_server import (
    DEADLINE_S,
    Master,
    agent_changed,
    api_server,
    container_status,
    event_changed,
    eventually,
    listen_at,
    pod_changed,
    status_of,
)
from tests.harness.cli import ROOT, rootlet, run_here, start

PENDING = status_of(phase="Pending", conditions=[{"type": "Ready", "status": "False"}])
MANIFEST = b"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: db}\n"


# --- get -----------------------------------------------------------------------------------------------------------


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
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


async def test_a_watch_survives_the_api_server(tmp_path: Path) -> None:
    """What changed while there was none is told by its successor."""
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


# --- describe, logs ------------------------------------------------------------------------------------------------


async def test_describe(master: Master) -> None:
    master.ready(
        pod_changed(1, "web", next_try={"app": "in 20s: back-off after exit code 1"}, summary="nothing to do"),
        event_changed(2, "web.1", "web", count=2),
        event_changed(3, "db.1", "db", reason="Other"),
    )
    found = await rootlet(master, "describe", "pod", "web")
    lines = found.out.splitlines()
    assert lines[0] == "Name:         web"
    assert ["Source:", "file"] in [line.split() for line in lines]
    assert "  app:  in 20s: back-off after exit code 1" in lines
    assert "Other" not in found.out
    assert lines[-1].endswith("Started container app")
    missing = await rootlet(master, "describe", "pod/nope")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): pods "nope" not found\n')


def write_log(master: Master, container: str, text: str) -> None:
    path = master.logs_dir / "default_web_uid-web" / container / "0.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_logs(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "side")))
    lines = [f"2026-01-01T00:00:0{n}.5Z stdout F line {n}\n" for n in range(5)]
    write_log(master, "app", "".join(lines))
    found = await rootlet(master, "logs", "web", "--tail", "2", "--timestamps")
    assert found.out == "2026-01-01T00:00:03.5Z line 3\n2026-01-01T00:00:04.5Z line 4\n"
    assert found.err == 'Defaulted container "app" out of: app, side\n'
    chosen = await rootlet(master, "logs", "pod/web", "-c", "app", "--limit-bytes", "6")
    assert (chosen.out, chosen.err) == ("line 0", "")
    assert (await rootlet(master, "logs", "web", "--since=0", "--tail=-1")).out.count("line ") == len(lines)
    none = await rootlet(master, "logs", "web", "-p", "-c", "app")
    assert none.err.startswith("Error from server (BadRequest): previous terminated container")


FIRST, DEFAULTED = "the app\n", 'Defaulted container "app" out of: app, debug (ephem), setup (init)\n'


@pytest.mark.parametrize(
    ("annotation", "out", "err"),
    [
        (None, FIRST, DEFAULTED),
        ("setup", "the setup\n", ""),
        ("debug", "the debug\n", ""),
        ("nope", FIRST, f'Default container name "nope" not found in pod web\n{DEFAULTED}'),
    ],
)
async def test_whose_log_is_meant(master: Master, annotation: str | None, out: str, err: str) -> None:
    annotations = {"kubectl.kubernetes.io/default-container": annotation} if annotation else {}
    master.ready(pod_changed(1, "web", init=("setup",), ephemeral=("debug",), annotations=annotations))
    for name in ("setup", "app", "debug"):
        write_log(master, name, f"2026-01-01T00:00:00Z stdout F the {name}\n")
    found = await rootlet(master, "logs", "web")
    assert (found.code, found.out, found.err) == (0, out, err)


async def test_logs_of_all_containers(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "side"), init=("setup",), ephemeral=("debug",)))
    for name in ("app", "debug", "setup"):
        write_log(master, name, f"2026-01-01T00:00:00Z stdout F 1 {name}\n2026-01-01T00:00:00Z stdout F 2 {name}\n")
    found = await rootlet(master, "logs", "web", "--all-containers", "--prefix", "--tail=1")
    assert found.out == "[pod/web/setup] 2 setup\n[pod/web/app] 2 app\n[pod/web/debug] 2 debug\n"
    # What cannot be read keeps nobody else's log back.
    assert (found.code, found.err.count("\n")) == (1, 1)
    assert "there is no log 0.log" in found.err
    crowd = await rootlet(master, "logs", "web", "--all-containers", "-f", "--max-log-requests=3")
    assert (crowd.code, crowd.out) == (1, "")
    assert crowd.err.startswith("error: you are attempting to follow 4 log streams, but maximum allowed")


async def test_logs_of_selected_pods(master: Master) -> None:
    master.ready(pod_changed(1, "web", labels={"app": "web"}), pod_changed(2, "db", uid="uid-db"))
    lines = [f"2026-01-01T00:00:00.{n:03}Z stdout F line {n}\n" for n in range(15)]
    write_log(master, "app", "".join(lines))
    by_label = await rootlet(master, "logs", "-l", "app=web")
    assert by_label.out == "".join(f"line {n}\n" for n in range(5, 15))
    everything = await rootlet(master, "logs", "-l", "app=web", "--tail=-1", "-c", "app", "--prefix")
    assert everything.out.splitlines()[0] == "[pod/web/app] line 0"
    pods = await rootlet(master, "logs", "--all-pods", "--tail=1", "--ignore-errors")
    assert (pods.code, pods.out) == (0, "[pod/web/app] line 14\n")
    assert pods.err.startswith("error: Error from server (NotFound): there is no log 0.log")
    none = await rootlet(master, "logs", "-l", "app=none")
    assert (none.code, none.err) == (0, "No resources found in default namespace.\n")
    wrong = await rootlet(master, "logs", "web", "-c", "zz")
    assert (wrong.code, wrong.err) == (1, "error: container zz is not valid for pod web out of: app\n")
    both = await rootlet(master, "logs", "web", "-l", "app=web")
    assert (both.code, both.err) == (1, "error: only a selector (-l) or a POD name is allowed\n")
    neither = await rootlet(master, "logs")
    assert (neither.code, neither.err.splitlines()[0]) == (
        1,
        "error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.",
    )


async def test_all_logs_are_followed_at_once(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "side")))
    write_log(master, "app", "2026-01-01T00:00:00Z stdout F one\n")
    write_log(master, "side", "2026-01-01T00:00:00Z stdout F two\n")
    process = await start(master, "logs", "-f", "web", "--all-containers")
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        assert {await process.stdout.readline() for _ in range(2)} == {b"one\n", b"two\n"}
        master.gone(2, "web")
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")


async def test_an_interrupt_ends_what_is_followed(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "side")))
    for name in ("app", "side"):
        write_log(master, name, "2026-01-01T00:00:00Z stdout F said\n")
    process = await start(master, "logs", "-f", "web", "--all-containers")
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        assert [await process.stdout.readline() for _ in range(2)] == [b"said\n", b"said\n"]
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


async def test_logs_follow_until_the_end(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    write_log(master, "app", "2026-01-01T00:00:00Z stdout F one\n")
    process = await start(master, "logs", "-f", "web")
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        assert await process.stdout.readline() == b"one\n"
        master.gone(2, "web")
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")


# --- wait ----------------------------------------------------------------------------------------------------------


async def test_wait_for_a_condition(master: Master) -> None:
    master.ready(pod_changed(1, "web", status=PENDING), pod_changed(2, "db"))
    waiting = asyncio.create_task(rootlet(master, "wait", "--for=condition=Ready", "pod/web", "pod/db"))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    master.feed(pod_changed(3, "web"))
    found = await waiting
    assert (found.code, found.out, found.err) == (0, "pod/db condition met\npod/web condition met\n", "")


async def test_wait_in_vain(master: Master) -> None:
    master.ready(pod_changed(1, "web", status=PENDING))
    found = await rootlet(master, "wait", "--for=condition=ready", "pod", "web", "nope", "--timeout=0.2s")
    assert found.code == 1
    assert found.err.splitlines() == [
        'Error from server (NotFound): pods "nope" not found',
        "error: timed out waiting for the condition on pods/web",
    ]
    opposite = await rootlet(master, "wait", "--for=condition=Ready=false", "--all", "--timeout=0")
    assert (opposite.code, opposite.out) == (0, "pod/web condition met\n")


async def test_wait_for_the_end(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    waiting = asyncio.create_task(rootlet(master, "wait", "--for=delete", "pod/web"))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    master.gone(2, "web")
    assert (await waiting).code == 0
    never = await rootlet(master, "wait", "--for=delete", "pod/never", "--timeout=0")
    assert (never.code, never.out) == (0, "")


@pytest.mark.parametrize("goal", ["condition", "condition=", "ready"])
async def test_wait_for_nonsense(master: Master, goal: str) -> None:
    found = await rootlet(master, "wait", f"--for={goal}", "pod/web")
    assert found.code == 1
    assert "unrecognized condition" in found.err


async def test_wait_for_what_a_path_finds(master: Master) -> None:
    master.ready(pod_changed(1, "web", status=PENDING))
    arguments = ("--for=jsonpath={.status.phase}=Running", "pods", "--all")
    waiting = asyncio.create_task(rootlet(master, "wait", *arguments))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    master.feed(pod_changed(3, "web"))
    found = await waiting
    assert (found.code, found.out, found.err) == (0, "pod/web condition met\n", "")
    there = await rootlet(master, "wait", "--for=jsonpath={.metadata.name}", "pod/web", "--timeout=0")
    assert (there.code, there.out) == (0, "pod/web condition met\n")
    wrong = await rootlet(master, "wait", "--for=jsonpath={.metadata.name}=", "pod/web")
    assert "jsonpath wait format must be" in wrong.err
    nested = await rootlet(master, "wait", "--for=jsonpath={.metadata}=x", "pod/web")
    assert nested.err == "error: jsonpath leads to a nested object or list which is not supported\n"


async def test_wait_for_what_is_not_there_yet(master: Master) -> None:
    master.ready(pod_changed(1, "db"))
    waiting = asyncio.create_task(rootlet(master, "wait", "--for=create", "pod/web"))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    master.feed(pod_changed(3, "web"))
    found = await waiting
    assert (found.code, found.out, found.err) == (0, "pod/web condition met\n", "")
    late = await rootlet(master, "wait", "--for=create", "pod/never", "--timeout=0")
    assert (late.code, late.err) == (1, "error: timed out waiting for the condition on pods/never\n")
    none = await rootlet(master, "wait", "--for=condition=Ready", "-l", "app=none")
    assert (none.code, none.err) == (1, "error: no matching resources found\n")
    node = await rootlet(master, "wait", "--for=jsonpath=metadata.name=node-1", "nodes", "--all", "--timeout=0")
    assert (node.code, node.out) == (0, "node/node-1 condition met\n")


# --- changes -------------------------------------------------------------------------------------------------------


async def test_apply(master: Master, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_bytes(MANIFEST)
    master.answer = lambda r: Reply(request_id=r.request_id, code=200, results=("pod/web created", "pod/db unchanged"))
    found = await rootlet(master, "apply", "-f", str(file))
    assert (found.code, found.out) == (0, "pod/web created\npod/db unchanged\n")
    assert master.requests == [ApplyManifests(request_id=1, file=str(file), body=MANIFEST)]


async def test_apply_stdin_and_directory(master: Master, tmp_path: Path) -> None:
    master.ready()
    (tmp_path / "pods").mkdir()
    for name in ("b.yaml", "a.json", "README.md"):
        (tmp_path / "pods" / name).write_text(name)
    found = await rootlet(master, "apply", "-f", "-", "-f", str(tmp_path / "pods"), stdin=b"kind: Pod")
    assert found.code == 0
    bodies = [r.body for r in master.requests if isinstance(r, ApplyManifests)]
    assert bodies == [b"kind: Pod", b"a.json", b"b.yaml"]


async def test_apply_what_is_wrong(master: Master, tmp_path: Path) -> None:
    message = "web.yaml: document 1: spec.containers[0].image: required"
    master.answer = lambda r: Reply(request_id=r.request_id, code=422, reason="Invalid", message=message)
    found = await rootlet(master, "apply", "-f", "-", stdin=b"kind: Pod")
    assert (found.code, found.out, found.err) == (1, "", f"error: {message}\n")
    missing = await rootlet(master, "apply", "-f", str(tmp_path / "none.yaml"))
    assert (missing.code, missing.err) == (1, f"rootlet: {tmp_path}/none.yaml: No such file or directory\n")
    large = await rootlet(master, "apply", "-f", "-", stdin=b"#" * (1024 * 1024 + 1))
    assert (large.code, large.err) == (1, "rootlet: -: larger than 1048576 bytes\n")


async def test_delete_waits_for_the_end(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    deleting = asyncio.create_task(rootlet(master, "delete", "pod", "web", "--grace-period=1"))
    await eventually(lambda: bool(master.requests), "the deletion came")
    assert master.requests == [DeletePod(request_id=1, namespace="default", name="web", grace_period_s=1)]
    await asyncio.sleep(0.2)
    assert not deleting.done()
    master.gone(2, "web")
    found = await deleting
    assert (found.code, found.out) == (0, 'pod "web" deleted from default namespace\n')


async def test_delete_what_a_manifest_names(master: Master, tmp_path: Path) -> None:
    master.ready(pod_changed(1, "web"))
    file = tmp_path / "web.yaml"
    file.write_bytes(MANIFEST)

    def answer(request: Any) -> Reply:
        if request.name == "web":
            return Reply(request_id=request.request_id, code=200)
        return Reply(request_id=request.request_id, code=404, reason="NotFound", message='pods "db" not found')

    master.answer = answer
    found = await rootlet(master, "delete", "-f", str(file), "--no-wait")
    assert (found.code, found.out) == (1, 'pod "web" deleted from default namespace\n')
    assert found.err == 'Error from server (NotFound): pods "db" not found\n'
    found = await rootlet(master, "delete", "-f", str(file), "--no-wait", "--ignore-not-found")
    assert found.code == 0


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"kind: [", b"kind: Service", b"kind: Pod", b"- 1", b"kind: List\nitems: [3]"]
)
async def test_delete_with_a_broken_manifest(master: Master, body: bytes) -> None:
    master.ready()
    found = await rootlet(master, "delete", "-f", "-", stdin=body)
    assert found.code == 1
    assert found.err.startswith("rootlet: -: ")
    assert "Traceback" not in found.err
    assert not master.requests


async def test_stop_returns_when_the_agent_is_gone(master: Master) -> None:
    agent = await asyncio.create_subprocess_exec("sleep", "60")
    master.ready()
    master.feed(agent_changed(pid=agent.pid))

    def answer(request: Any) -> Reply:
        agent.terminate()
        return Reply(request_id=request.request_id, code=202, results=("stopping",))

    master.answer = answer
    stopping = asyncio.create_task(rootlet(master, "stop", "--pods"))
    await agent.wait()
    found = await stopping
    assert (found.code, found.out) == (0, "agent stopped\n")
    assert master.requests == [StopAgent(request_id=1, pods=True)]


async def test_version(master: Master) -> None:
    master.ready()
    found = await rootlet(master, "version")
    assert "Agent Version: v0.1.0" in found.out
    assert "Podman API Version: 4.3.1 (healthy)" in found.out
    document = await rootlet(master, "version", "-o", "json")
    assert json.loads(document.out)["agent"]["instance"] == "test"
    assert found.err == document.err == ""


async def test_an_agent_of_another_version_is_warned_of(master: Master) -> None:
    master.ready()
    master.feed(msgspec.structs.replace(agent_changed(), version="0.0.9"))
    words = f"this command is v{VERSION}: restart the agent to have both the same"
    found = await rootlet(master, "version", "-o", "json")
    assert json.loads(found.out)["agent"]["gitVersion"] == "v0.0.9"
    assert (found.code, found.err) == (0, f"warning: the agent is v0.0.9, {words}\n")
    assert words in (await rootlet(master, "status")).out
    assert (await rootlet(master, "version", "--client")).err == ""


# --- the agent's absence, and which one is meant -------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "pods"),
        ("get", "workers"),
        ("get", "pods", "-w"),
        ("describe", "pod", "web"),
        ("logs", "web"),
        ("wait", "--for=delete", "pod/web"),
        ("delete", "pod", "web"),
        ("stop",),
    ],
)
def test_no_agent_is_one_clear_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    socket = tmp_path / "none.sock"
    found = run_here("--socket", str(socket), *arguments)
    assert (found.code, found.out) == (1, "")
    assert found.err == f"rootlet: no agent answers on {socket}: start one with 'rootlet run'\n"


def test_a_file_that_is_no_socket(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    path.write_text("")
    assert run_here("get", "pods", "--socket", str(path)).err.startswith(f"rootlet: {path} is not a socket but a file")


def test_which_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def asked(*arguments: str) -> str:
        return run_here(*arguments).err.split(" answers on ")[1].split(": ")[0]

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("ROOTLET_SOCKET", raising=False)
    monkeypatch.delenv("ROOTLET_INSTANCE", raising=False)
    default = str(tmp_path / "rootlet")
    assert asked("get", "pods") == f"{default}/rootlet.sock"
    assert asked("get", "pods", "--instance", "two") == f"{default}/two.sock"
    assert asked("--instance", "two", "get", "pods") == f"{default}/two.sock"
    monkeypatch.setenv("ROOTLET_INSTANCE", "three")
    assert asked("get", "pods") == f"{default}/three.sock"
    assert asked("get", "pods", "--instance", "two") == f"{default}/two.sock"
    monkeypatch.setenv("ROOTLET_SOCKET", "/elsewhere.sock")
    assert asked("get", "pods") == "/elsewhere.sock"
    assert asked("--instance", "two", "get", "pods") == f"{default}/two.sock"
    assert run_here("--instance", "../x", "get", "pods").code == 1


def test_config_check(tmp_path: Path) -> None:
    head = "apiVersion: rootlet.dev/v1alpha1\nkind: RootletConfiguration\n"
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(head)
    bad.write_text(f"{head}workers: {{count: many}}\n")
    found = run_here("config", "check", str(good))
    assert (found.code, found.out) == (0, f"{good}: valid\n")
    for command in (("config", "check", str(bad)), ("run", "--config", str(bad))):
        found = run_here(*command)
        assert (found.code, found.out) == (2, "")
        assert found.err.startswith(f"rootlet: {bad}: workers.count: ")
    assert run_here("run", "--config", str(tmp_path / "none.yaml")).code == 2


def test_only_run_imports_the_agent() -> None:
    program = (
        "import sys\n"
        "from supervisor.__main__ import load_worker_main\n"
        "from supervisor.cli.main import run_cli\n"
        "code = run_cli(['--socket', '/nowhere', 'get', 'pods'], load_worker_main)\n"
        "heavy = {'workers', 'podman', 'aiohttp', 'uvloop', 'supervisor.master', 'psutil', 'yaml'} & set(sys.modules)\n"
        "print(code, sorted(heavy))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "1 []\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("wait", "--for=delete"), "name the objects"),
        (("wait", "--for=delete", "--all", "pod/web"), "name the objects"),
        (("delete",), "say which by name"),
        (("apply",), "must specify one of -f and -k"),
        (("logs", "web", "--since", "yesterday"), "invalid duration"),
        (("logs", "web", "app", "-c", "app"), "only one of -c or an inline [CONTAINER] arg"),
        (("logs", "web", "app", "--all-containers"), "should not be specified with container name app"),
        (("frobnicate",), 'unknown command "frobnicate" for "rootlet"'),
        (("top", "pods", "--sort-by", "name"), "must be one of cpu, memory"),
        (("top", "deployments"), 'unknown command "deployments" for "rootlet top"'),
        (("stats", "service/web"), "is not a pod"),
    ],
)
def test_wrong_command_lines_exit_1(arguments: tuple[str, ...], words: str) -> None:
    found = run_here("--socket", "/nowhere", *arguments)
    assert found.code == 1
    assert words in found.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("get",), "You must specify the type of resource to get."),
        (("get", "services"), 'error: the server doesn\'t have a resource type "services"'),
        (("get", "pods", "-o", "xml"), 'error: unable to match a printer suitable for the output format "xml"'),
        (("get", "pods", "-o", "go-template={{.}}"), "error: go-template is not supported"),
        (("get", "pods", "-o", "jsonpath={.items[}"), "error: error parsing jsonpath {.items[}, unterminated array"),
        (("get", "pods", "-A", "web"), "error: a resource cannot be retrieved by name across all namespaces"),
        (("get", "pods", "web", "-l", "a=b"), "error: name cannot be provided when a selector is specified"),
        (("get", "pod/web", "db"), "error: there is no need to specify a resource type as a separate argument"),
        (("describe",), "You must specify the type of resource to describe."),
        (("describe", "service/web"), 'error: the server doesn\'t have a resource type "service"'),
        (("describe", "service", "x"), 'error: the server doesn\'t have a resource type "service"'),
        (("events", "--types=Odd"), "error: valid --types are Normal or Warning"),
        (("events", "--for=web"), "error: --for must be in resource/name form"),
        (("logs", "web", "--since", "-1s"), "error: --since must be greater than 0\n"),
        (("logs", "web", "--since=-1h30m"), "error: --since must be greater than 0\n"),
        (("logs", "web", "--since=-1"), "error: --since must be greater than 0\n"),
        (("logs", "web", "--tail", "-2"), "error: --tail must be greater than or equal to -1\n"),
        (("logs", "web", "--since=1s", "--since-time=2026-01-01T00:00:00Z"), "error: at most one of `sinceTime` or"),
        (("get", "pod/web", "cm/a", "-w"), "error: you may only specify a single resource type"),
    ],
)
def test_wrong_requests_are_said_as_kubectl_says_them(arguments: tuple[str, ...], words: str) -> None:
    found = run_here("--socket", "/nowhere", *arguments)
    assert found.code == 1
    assert found.err.startswith(words)


def test_help_names_every_command() -> None:
    found = run_here("--help")
    assert found.code == 0
    for name in ("run", "get", "describe", "logs", "wait", "apply", "delete", "stop", "version", "config", "load-test"):
        assert f"  {name} " in found.out
