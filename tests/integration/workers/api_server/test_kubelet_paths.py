"""The kubelet's own paths on the admin socket: answers, codes and texts, beside the recordings of a real kubelet."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from ipc.host.clock import monotonic, rfc3339_micro
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.kubecontainer.pod_status import SandboxState, SandboxStatus
from ipc.k8s.podresources.allocation import PodResourceInfo
from ipc.link.messages.api_server import PostManifests, ReadConfiguration, ReadProfile, Reply
from ipc.link.wire.server_settings import ServerSettings
from ipc.link.wire.stream_channels import decode_status
from tests.kubelet_tables.runner import SHARED
from tests.support.api_server import (
    DEADLINE_S,
    STARTED,
    Master,
    agent_changed,
    api_server,
    container_status,
    pod_changed,
    status_of,
)
from tests.support.podman_streams import PodmanEnd, Process
from tests.support.spdy_client import spdy_client
from workers.api_server.core.spdy_session import IDLE_TIMEOUT_S
from workers.api_server.core.stream_sockets import StreamSockets
from workers.api_server.core.upgrades import COMMAND_V4
from workers.api_server.kubelet.node_logs import LOG_NAME

RECORDINGS: Final = SHARED / "kubernetes_wire.json"
SANDBOX: Final = SandboxStatus(
    id="pod", name="pod", attempt=0, state=SandboxState.READY, created_at=0.0, infra_id="infra"
)
WAITING: Final = status_of(
    phase="Pending",
    containerStatuses=[container_status("c", ready=False, state={"waiting": {"reason": "ErrImageNeverPull"}})],
)


def recorded(scene: str = "kubelet-http-10250") -> list[dict[str, Any]]:
    """Requests without credentials of their own and their answers."""
    if not RECORDINGS.exists():
        pytest.skip(f"not there: {RECORDINGS}")
    records = json.loads(RECORDINGS.read_text())["records"]
    return [record for record in records if record["scene"] == scene and not record.get("note")]


async def ask(master: Master, method: str, path: str, **options: Any) -> tuple[int, str, str]:
    """Status, content type and text."""
    async with master.http.request(method, path, allow_redirects=False, **options) as response:
        return response.status, response.headers.get("Content-Type", ""), await response.text()


async def text_of(master: Master, path: str, method: str = "GET", **options: Any) -> tuple[int, str]:
    code, _, text = await ask(master, method, path, **options)
    return code, text


def world(master: Master) -> None:
    """The pods of the recordings, as far as answers name them."""
    running = status_of(
        phase="Running", containerStatuses=[container_status("c", containerID="podman://c1", imageID="sha256:abc")]
    )
    two = [container_status(name, containerID=f"podman://{name}") for name in ("a", "b")]
    master.ready(
        pod_changed(1, "web", containers=("c",), status=running, sandbox=SANDBOX),
        pod_changed(2, "two", containers=("a", "b"), status=status_of(phase="Running", containerStatuses=two)),
        pod_changed(3, "badimg", containers=("c",), status=WAITING, sandbox=SANDBOX),
    )


# --- pods -----------------------------------------------------------------------------------------------------------


async def test_pods(master: Master) -> None:
    world(master)
    for path in ("/pods", "/pods/"):
        code, content_type, text = await ask(master, "GET", path)
        found = json.loads(text)
        assert (code, content_type) == (200, "application/json")
        assert (found["kind"], found["apiVersion"], found["metadata"]) == ("PodList", "v1", {})
        assert [pod["metadata"]["name"] for pod in found["items"]] == ["badimg", "two", "web"]


async def test_allocated_pods_have_their_resources_and_no_status(master: Master) -> None:
    had = PodResourceInfo(container_resources={"app": ResourceRequirements(requests={"cpu": "100m"})})
    master.ready(
        pod_changed(1, "web", allocated=had),
        pod_changed(2, "plain"),
        pod_changed(3, "done", status=status_of(phase="Succeeded")),
    )
    for path in ("/allocatedPods", "/allocatedPods/"):
        code, content_type, text = await ask(master, "GET", path)
        found = json.loads(text)
        assert (code, content_type, found["kind"]) == (200, "application/json", "PodList")
        plain, web = found["items"]
        assert [pod["metadata"]["name"] for pod in (plain, web)] == ["plain", "web"], "what is done takes nothing"
        assert web["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "100m"}}
        assert web["status"] == plain["status"] == {}
    wanted = {pod["metadata"]["name"]: pod for pod in json.loads((await text_of(master, "/pods"))[1])["items"]}
    assert plain == {**wanted["plain"], "status": {}}
    assert wanted["web"]["spec"]["containers"][0]["resources"] == {}
    for one in ("uid-web", "default/web", "default/web/uid-web"):
        code, text = await text_of(master, f"/allocatedPods/{one}")
        assert (code, json.loads(text)) == (200, web)
    for none in ("uid-none", "default/none", "other/web", "default/web/uid-plain", "default/done", "uid-done"):
        assert await text_of(master, f"/allocatedPods/{none}") == (404, "pod does not exist")


async def test_running_pods_are_what_the_runtime_has(master: Master) -> None:
    world(master)
    _, text = await text_of(master, "/runningpods/")
    items = {item["metadata"]["name"]: item for item in json.loads(text)["items"]}
    assert items["web"] == {
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
        "spec": {"containers": [{"name": "c", "image": "sha256:abc", "resources": {}}]},
        "status": {},
    }
    assert items["badimg"]["spec"] == {"containers": None}
    code, content_type, text = await ask(master, "GET", "/runningpods")
    assert (code, content_type) == (307, "text/html; charset=utf-8")


async def test_pod_info(master: Master) -> None:
    world(master)
    _, text = await text_of(master, "/podInfo?podID=two&podNamespace=default")
    assert {name: status["name"] for name, status in json.loads(text).items()} == {"a": "a", "b": "b"}
    assert (await text_of(master, "/podInfo?podID=none"))[0] == 404
    assert await text_of(master, "/podInfo") == (400, "Missing 'podID=' query entry.")


# --- pages ----------------------------------------------------------------------------------------------------------


async def test_pages(master: Master) -> None:
    configuration = {"kind": "RootletConfiguration", "server": {"port": 10250}, "nodeLabels": {}}
    master.answer = lambda request: Reply(request_id=request.request_id, code=200, message=json.dumps(configuration))
    world(master)
    assert json.loads((await text_of(master, "/configz"))[1]) == {"kubeletconfig": configuration}
    assert isinstance(master.requests[0], ReadConfiguration)
    code, text = await text_of(master, "/flagz")
    assert code == 200
    assert text.startswith("\nrootlet flagz\nWarning: This endpoint is not meant to be machine parseable")
    assert text.splitlines()[3:] == ["kind:RootletConfiguration", "nodeLabels:{}", "server.port:10250"]
    accept = {"Accept": "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"}
    code, content_type, text = await ask(master, "GET", "/flagz", headers=accept)
    assert content_type == "application/json;g=config.k8s.io;v=v1beta1;as=Flagz"
    assert json.loads(text)["flags"]["server.port"] == "10250"
    code, text = await text_of(master, "/statusz")
    assert "Started= Tue Nov 14 22:13:20 UTC 2023\n" in text
    assert "Binary version= 0.1.0\n" in text
    code, content_type, text = await ask(master, "GET", "/statusz", headers={"Accept": "application/json"})
    assert (code, json.loads(text)["reason"]) == (406, "NotAcceptable")


# --- logs of containers ---------------------------------------------------------------------------------------------


def write_log(master: Master, *lines: str) -> None:
    directory = master.logs_dir / "default_web_uid-web" / "c"
    directory.mkdir(parents=True)
    stamp = rfc3339_micro(STARTED)
    (directory / "0.log").write_text("".join(f"{stamp} {line}\n" for line in lines))


async def test_container_logs(master: Master) -> None:
    write_log(master, "stdout F one", "stderr F two", "stdout F three")
    world(master)
    path = "/containerLogs/default/web/c"
    assert await text_of(master, path) == (200, "one\ntwo\nthree\n")
    assert await text_of(master, f"{path}?tailLines=1") == (200, "three\n")
    assert await text_of(master, f"{path}?tail=2") == (200, "two\nthree\n")
    assert await text_of(master, f"{path}?tail=all&stream=Stdout") == (200, "one\nthree\n")
    assert await text_of(master, f"{path}?stream=Stderr") == (200, "two\n")
    assert await text_of(master, f"{path}?stream=All&limitBytes=5") == (200, "one\nt")
    assert await text_of(master, "/api/v1/namespaces/default/pods/web/log?stream=Stderr") == (200, "two\n")


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("nosuch/c", 404, 'pod "nosuch" does not exist'),
        ("two/zz", 404, 'container "zz" not found in pod "two"'),
        ("badimg/c", 400, 'container "c" in pod "badimg" is waiting to start: ErrImageNeverPull'),
        ("web/c?previous=true", 400, 'previous terminated container "c" in pod "web" not found'),
        ("web/c?tailLines=-1", 422, '{"message": "Invalid request."}'),
        ("web/c?tailLines=1&stream=Stderr", 422, '{"message": "Invalid request."}'),
        ("web/c?stream=stderr", 422, '{"message": "Invalid request."}'),
        ("web/c?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, '{"message": "Invalid request."}'),
        ("web/c?tailLines=many", 400, '{"message": "Unable to decode query."}'),
        ("web/c?follow=perhaps", 400, '{"message": "Unable to decode query."}'),
    ],
)
async def test_a_log_that_is_not_there_or_asked_for_wrongly(master: Master, path: str, code: int, text: str) -> None:
    world(master)
    assert await text_of(master, f"/containerLogs/default/{path}") == (code, text)


# --- streams --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "code", "text"),
    [
        ("GET", "/exec/default/web/c?command=id&output=1", 500, "Upgrade request required\n"),
        ("POST", "/exec/default/web/c?command=id&output=1", 500, "Upgrade request required\n"),
        ("GET", "/exec/default/web/c?command=id", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("POST", "/exec/default/nosuch/c?command=id&output=1", 404, "pod does not exist"),
        ("GET", "/exec/default/web/another-uid/c?command=id&output=1", 404, "pod does not exist"),
        ("GET", "/exec/default/web/uid-web/c?command=id&output=1", 500, "Upgrade request required\n"),
        ("GET", "/attach/default/web/c?output=1", 500, "Upgrade request required\n"),
        ("GET", "/attach/default/web/zz?output=1", 500, 'container not found ("zz")'),
        ("GET", "/portForward/default/web", 500, "Upgrade request required\n"),
        ("GET", "/portForward/default/nosuch", 404, "pod does not exist"),
        ("POST", "/run/default/nosuch/c?cmd=id", 404, "pod does not exist"),
        ("POST", "/run/default/web/zz?cmd=id", 500, 'container not found ("zz")'),
        ("POST", "/run/default/badimg/c?cmd=id", 500, 'container not found ("c")'),
        ("POST", "/checkpoint/default/nosuch/c", 404, "pod does not exist"),
    ],
)
async def test_streams_that_do_not_begin(master: Master, method: str, path: str, code: int, text: str) -> None:
    world(master)
    assert await text_of(master, path, method) == (code, text)


async def test_a_checkpoint_is_refused_in_words(master: Master) -> None:
    world(master)
    code, text = await text_of(master, "/checkpoint/default/web/c", "POST")
    assert code == 500
    assert text.startswith("checkpointing of default/web/c failed (")


async def test_attributes_of_codes_and_texts_are_the_recorded_ones(master: Master) -> None:
    """Every refusal of the recordings whose pod is in our world, word for word."""
    world(master)
    compared = 0
    for record in recorded():
        path, expected = record["path"], record["response_body"]
        ours = not any(
            word in path for word in ("/stats", "/metrics", "/spec", "/debug/flags", "ticker", "/checkpoint")
        )
        is_run = path.startswith("/run/") and record["status"] == 500 and "exited with" in str(expected)
        if record["status"] < 400 or not ours or is_run or path in ("/version", "/api"):
            continue  # of other handlers, of other pods, or of the admin socket alone
        if isinstance(expected, dict):
            expected = json.dumps(expected)
        code, text = await text_of(master, path, record["method"], params=record["query"])
        if text.startswith("{") and json.loads(text).get("kind") == "Status":
            text = expected  # what has no route is a Status on this socket; test_ports has the port's words
        assert (record["method"], path, code, text) == (record["method"], path, record["status"], expected)
        compared += 1
    assert compared > 20


async def test_lists_have_the_shape_of_the_recorded_ones(master: Master) -> None:
    world(master)
    answers = {record["path"]: record["response_body"] for record in recorded() if record["status"] == 200}
    for path in ("/pods", "/runningpods/"):
        expected, found = answers[path], json.loads((await text_of(master, path))[1])
        expected = json.loads(expected) if isinstance(expected, str) else expected
        assert found.keys() == expected.keys() - {"_trimmed"}
        spec_of = {item["metadata"]["name"]: item for item in expected["items"]}
        assert set(found["items"][0]) - {"kind", "apiVersion"} == set(next(iter(spec_of.values())))


async def test_every_other_answer_has_the_recorded_code_type_and_shape(master: Master) -> None:
    """Metrics and statistics have tests of their own; files below /logs/ are the host's."""
    master.answer = lambda request: Reply(request_id=request.request_id, code=200, message=json.dumps({"kind": "ours"}))
    world(master)
    master.feed(agent_changed(pid=os.getpid()))
    master.board.record_iteration(monotonic())
    master.board.record_relist(monotonic())
    others = ("/metrics", "/stats", "/debug", "/run/", "/containerLogs", "/exec", "/attach", "/logs/")
    compared = []
    for record in recorded():
        path, expected = record["path"], record["response_body"]
        is_page = record["status"] in (200, 307, 406)
        if not is_page or path.startswith(others):
            continue
        headers = {"Accept": accept} if (accept := record["request_headers"].get("Accept")) else {}
        async with master.http.request(
            record["method"], path, params=record["query"], headers=headers, allow_redirects=False
        ) as response:
            text = await response.text()
        named = f"{record['method']} {path} {headers}"
        wanted = {name: record["response_headers"].get(name) for name in ("Content-Type", "Location")}
        assert response.status == record["status"], named
        assert {name: response.headers.get(name) for name in wanted} == wanted, named
        assert shape(text) == shape(expected), named
        compared.append(path)
    assert len(compared) > 15


def shape(answer: Any) -> Any:
    """Shape of an answer: keys of an object, heading of a page, marks of checks, all of short texts."""
    if isinstance(answer, str) and answer.startswith("{"):
        answer = json.loads(answer)
    if isinstance(answer, Mapping):
        return answer.keys() - {"_trimmed"}
    lines = answer.splitlines()
    if answer.startswith("\n"):
        return lines[1].split()[1], lines[2]
    return {line.partition(" ")[0][:3] for line in lines} if answer.startswith("[") else answer


# --- node logs, profiles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["nosuch", "../etc/passwd", "%2e%2e/etc/passwd", "/etc/passwd", "syslog"])
async def test_nothing_else_of_the_host_is_served(master: Master, path: str) -> None:
    master.ready()
    assert (await text_of(master, f"/logs/{path}"))[0] == 404


async def test_our_own_log(master: Master, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "err").write_text("one\ntwo\n")
    monkeypatch.setattr("workers.api_server.kubelet.node_logs.own_log", lambda: str(tmp_path / "err"))
    master.ready()
    code, content_type, text = await ask(master, "GET", "/logs/")
    assert (code, content_type) == (200, "text/html; charset=utf-8")
    assert f'<a href="{LOG_NAME}">{LOG_NAME}</a>' in text
    assert await text_of(master, f"/logs/{LOG_NAME}") == (200, "one\ntwo\n")
    assert await text_of(master, "/logs/?query=rootlet&tailLines=1") == (200, "two\n")


async def test_a_query_of_the_journal_is_the_users_own(
    master: Master, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "journalctl"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    master.ready()
    query = "query=a.service&query=b&tailLines=5&sinceTime=2026-01-01T00:00:00Z&boot=-1&pattern=x%20y"
    code, text = await text_of(master, f"/logs/?{query}")
    assert code == 200
    assert text.split("\n")[:-1] == [
        *("--user", "--utc", "--no-pager", "--quiet", "--output=short-precise", "--unit=a.service", "--unit=b"),
        *("--since=@1767225600.000000", "--lines=5", "--boot=-1", "--grep=x y"),
    ]


@pytest.mark.parametrize(
    "query",
    [
        "query=--all",
        "query=a%20b",
        "query=" + "a" * 300,
        "query=a&tailLines=x",
        "query=a&sinceTime=now",
        "query=a&boot=1",
        "query=a&query=b&query=c&query=d&query=e",
        "query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z",
    ],
)
async def test_a_query_that_means_nothing(master: Master, query: str) -> None:
    master.ready()
    assert (await text_of(master, f"/logs/?{query}"))[0] == 400


async def test_profiles(master: Master) -> None:
    master.ready()
    assert await text_of(master, "/debug/pprof/") == (404, "404: Page Not Found")
    assert (await text_of(master, "/debug/pprof/mutex"))[0] == 404
    assert "\0" in (await text_of(master, "/debug/pprof/cmdline"))[1]
    assert "task profile: total" in (await text_of(master, "/debug/pprof/goroutine?debug=1"))[1]
    first, second = await asyncio.gather(*(text_of(master, "/debug/pprof/profile?seconds=1") for _ in range(2)))
    assert sorted((first[0], second[0])) == [200, 500], "one at a time"
    sampled = max(first, second, key=lambda answer: len(answer[1]))[1]
    stack, _, count = sampled.splitlines()[0].rpartition(" ")
    assert ";" in stack
    assert int(count) > 0


async def test_heap_only_where_it_is_switched_on(master: Master) -> None:
    master.ready()
    assert (await text_of(master, "/debug/pprof/heap"))[0] == 400
    assert (await text_of(master, "/debug/pprof/heap?start=1"))[0] == 200
    assert (await text_of(master, "/debug/pprof/heap"))[1].startswith("heap profile: ")
    assert (await text_of(master, "/debug/pprof/heap?stop=1"))[0] == 200
    assert (await text_of(master, "/debug/pprof/heap"))[0] == 400


async def test_a_profile_of_another_process_is_the_masters_to_get(master: Master) -> None:
    answers = {"node": Reply(request_id=0, code=200, message="main;serve 3\n"), "podman": Reply(request_id=0, code=404)}
    master.answer = lambda asked: msgspec.structs.replace(answers[asked.process], request_id=asked.request_id)
    master.ready()
    assert await text_of(master, "/debug/pprof/profile?seconds=7&process=node") == (200, "main;serve 3\n")
    assert (await text_of(master, "/debug/pprof/heap?start=1&process=podman"))[0] == 404
    assert master.requests == [
        ReadProfile(request_id=1, process="node", profile="profile", seconds=7),
        ReadProfile(request_id=2, process="podman", profile="heap", seconds=30, action="start"),
    ]
    assert (await text_of(master, "/debug/pprof/profile?seconds=301&process=node"))[0] == 400
    assert len(master.requests) == 2


# --- manifests by request -------------------------------------------------------------------------------------------


async def test_manifests_go_to_the_master(master: Master) -> None:
    master.answer = lambda request: Reply(request_id=request.request_id, code=200, results=("pod default/a",))
    master.ready()
    for path in ("/container", "/containers"):
        assert await text_of(master, path, "POST", data=b"body") == (200, "pod default/a\n")
    assert master.requests == [PostManifests(request_id=number, body=b"body") for number in (1, 2)]


async def test_a_bad_manifest_is_400_with_its_field(master: Master) -> None:
    master.answer = lambda request: Reply(request_id=request.request_id, code=400, message="document 1: spec: no")
    master.ready()
    assert await text_of(master, "/containers", "POST", data=b"body") == (400, "document 1: spec: no")


async def test_a_connection_that_is_no_websocket_is_told_so(master: Master, podman: PodmanEnd) -> None:
    world(master)
    headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
    code, text = await text_of(master, "/exec/default/web/c?command=id&output=1", headers=headers)
    assert (code, "Unsupported version" in text) == (400, True)
    assert isinstance(master.http, aiohttp.ClientSession)


# --- streams that nobody uses ---------------------------------------------------------------------------------------


async def until_cut_off(process: Process) -> int:
    await process.input.read()
    return 0


async def test_a_stream_over_which_nothing_goes_is_ended(
    tmp_path: Path, podman: PodmanEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StreamSockets.__init__, "__defaults__", (0.05, IDLE_TIMEOUT_S))
    settings = ServerSettings(streaming_idle_timeout_s=0.2)
    async with api_server(tmp_path, server=settings) as master:
        world(master)
        path = "/exec/default/web/c?command=sleep&input=1&output=1"
        podman.program = until_cut_off
        async with asyncio.timeout(DEADLINE_S), master.http.ws_connect(path, protocols=["v5.channel.k8s.io"]) as client:
            assert [message async for message in client] == []


async def echoed(process: Process) -> int:
    await process.say(await process.input.read())
    return 0


async def test_spdy_on_the_kubelets_paths(master: Master, podman: PodmanEnd) -> None:
    podman.program = echoed
    world(master)
    query = (("command", "cat"), ("input", "1"), ("output", "1"))
    path = "/exec/default/web/c"
    async with spdy_client(master, path, query, (COMMAND_V4,)) as client:
        streams = {kind: await client.open(streamtype=kind) for kind in ("error", "stdin", "stdout")}
        await client.send(streams["stdin"], b"hello", fin=True)
        assert await client.rest(streams["stdout"]) == b"hello"
        assert decode_status(await client.rest(streams["error"])).exit_code() == 0
