"""The API server over its socket, fed by a master that the test plays."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop

from ipc.host.clock import monotonic
from ipc.k8s.kubecontainer.pod_status import SandboxState, SandboxStatus
from ipc.link.messages.api_server import ApplyManifests, DeletePod, EventGone, FeedSynced, Reply, StopAgent, WorkerInfo
from ipc.link.messages.base import Shutdown
from ipc.link.messages.wait_reasons import HELD_UP_CONDITION
from tests.support.api_server import (
    DEADLINE_S,
    SLOT,
    Master,
    agent_changed,
    api_server,
    container_status,
    event_changed,
    eventually,
    listen_at,
    pod_changed,
    status_of,
    watching,
)
from workers.api_server.http_log import HTTP_LOG
from workers.api_server.store.bodies import MAX_BODY_BYTES

PODS = "/api/v1/namespaces/default/pods"


async def test_it_introduces_itself(master: Master) -> None:
    await eventually(lambda: master.introduced_as == os.getpid(), "Ready came")
    assert not master.requests


async def test_list_is_a_v1_pod_list(master: Master) -> None:
    master.ready(pod_changed(2, "web"), pod_changed(1, "db"), pod_changed(3, "other", namespace="test"))
    code, found = await master.get(PODS)
    assert code == 200
    assert (found["kind"], found["apiVersion"]) == ("PodList", "v1")
    assert [p["metadata"]["name"] for p in found["items"]] == ["db", "web"]
    web = found["items"][1]
    assert (web["kind"], web["apiVersion"]) == ("Pod", "v1")
    assert web["status"]["phase"] == "Running"
    assert int(found["metadata"]["resourceVersion"]) > int(web["metadata"]["resourceVersion"])
    _, everywhere = await master.get("/api/v1/pods")
    assert [p["metadata"]["name"] for p in everywhere["items"]] == ["db", "web", "other"]


async def test_selectors(master: Master) -> None:
    master.ready(pod_changed(1, "web", labels={"app": "web"}), pod_changed(2, "db", labels={"app": "db"}))
    _, by_label = await master.get(PODS, labelSelector="app=web")
    _, by_field = await master.get(PODS, fieldSelector="metadata.name=db,status.phase!=Failed")
    assert [p["metadata"]["name"] for p in by_label["items"]] == ["web"]
    assert [p["metadata"]["name"] for p in by_field["items"]] == ["db"]


async def test_a_pod_under_deletion_says_so(master: Master) -> None:
    master.ready(pod_changed(1, "web", deletion_timestamp="2026-01-01T00:00:00Z"))
    _, pod = await master.get(f"{PODS}/web")
    assert pod["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"


async def test_unknown_pod_is_a_v1_status(master: Master) -> None:
    master.ready()
    code, status = await master.get(f"{PODS}/nope")
    assert code == 404
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "nope" not found',
        "reason": "NotFound",
        "details": {"name": "nope", "kind": "pods"},
        "code": 404,
    }


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        (PODS, {"watch": "maybe"}, 400),
        (PODS, {"watch": "true", "resourceVersion": "abc"}, 400),
        (PODS, {"watch": "true", "resourceVersion": "-1"}, 400),
        (PODS, {"watch": "true", "resourceVersion": "9" * 40}, 400),
        (PODS, {"watch": "true", "timeoutSeconds": "0"}, 400),
        (PODS, {"labelSelector": "a=(b"}, 400),
        (PODS, {"labelSelector": "," * 3000}, 400),
        (PODS, {"fieldSelector": "spec.secret=x"}, 400),
        (f"{PODS}/web/log", {"tailLines": "-1"}, 400),
        (f"{PODS}/web/log", {"tailLines": "٣"}, 400),
        (f"{PODS}/web/log", {"sinceSeconds": "0"}, 400),
        (f"{PODS}/web/log", {"sinceTime": "yesterday"}, 400),
        (f"{PODS}/web/log", {"sinceSeconds": "5", "sinceTime": "2026-01-01T00:00:00Z"}, 400),
        (f"{PODS}/web/log", {"container": "../../etc"}, 400),
        (f"{PODS}/..%2F..%2Fweb", {}, 404),
        ("/api/v1/services", {}, 404),
        ("/api/v1/nodes/other", {}, 404),
        ("/rootlet/v1/statistics", {"timeoutSeconds": "0"}, 400),
        ("/rootlet/v1/workers", {"resources": "2"}, 400),
    ],
)
async def test_nonsense_is_refused_with_a_status(master: Master, path: str, query: dict[str, str], code: int) -> None:
    master.ready(pod_changed(1, "web"))
    answered, status = await master.get(path, **query)
    assert (answered, status["kind"], status["code"]) == (code, "Status", code)
    assert status["message"]


async def test_wrong_method(master: Master) -> None:
    async with master.http.post(PODS) as response:
        assert response.status == 405
        assert response.headers["Allow"] == "GET"
        assert (await response.json())["reason"] == "MethodNotAllowed"


async def test_reads_wait_for_the_feed(master: Master) -> None:
    asked = asyncio.create_task(master.get(PODS))
    master.feed(pod_changed(1, "web"))
    await asyncio.sleep(0.05)
    assert not asked.done()
    master.feed(FeedSynced())
    code, found = await asked
    assert (code, len(found["items"])) == (200, 1)


async def test_version(master: Master) -> None:
    master.ready()
    _, version = await master.get("/version")
    assert (version["gitVersion"], version["instance"], version["pid"]) == ("v0.1.0", "test", 4711)


async def test_healthz_needs_no_feed(master: Master) -> None:
    assert await text(master, "/healthz") == (200, "ok")


async def text(master: Master, path: str) -> tuple[int, str]:
    async with master.http.get(path) as response:
        return response.status, await response.text()


async def test_healthz_tells_of_the_sync_loop(master: Master) -> None:
    master.feed(agent_changed(pid=os.getpid()), FeedSynced())
    master.board.record_iteration(monotonic())
    await master.get("/version")
    assert (await text(master, "/healthz/relist"))[0] == 500
    master.board.record_relist(monotonic())
    assert await text(master, "/healthz") == (200, "ok")
    assert await text(master, "/healthz?verbose") == (
        200,
        "[+]ping ok\n[+]log ok\n[+]syncloop ok\n[+]relist ok\n[+]podman ok\nhealthz check passed\n",
    )
    assert await text(master, "/healthz/syncloop") == (200, "ok")
    master.board.record_iteration(monotonic() - 121)
    why = "the sync loop's last iteration was 121 s ago, more than 120 s"
    assert await text(master, "/healthz") == (
        500,
        f"[+]ping ok\n[+]log ok\n[-]syncloop failed: {why}\n[+]relist ok\n[+]podman ok\nhealthz check failed\n",
    )
    assert await text(master, "/healthz/syncloop") == (500, f"internal server error: {why}\n")
    assert await text(master, "/healthz/ping") == (200, "ok")
    assert (await text(master, "/healthz/etcd"))[0] == 404


async def test_workers_are_joined_with_the_board(master: Master) -> None:
    def info(slot: int, pid: int) -> WorkerInfo:
        return WorkerInfo(
            slot=slot, role="api-server", name="api", pid=pid, incarnation=1, state="Running", pods=0, deaths=0
        )

    master.feed(agent_changed(info(SLOT, 1234), info(2, os.getpid()), info(99, 5)), FeedSynced())
    master.board.worker_writer(2).begin(77, 1)  # an earlier life's row
    _, found = await master.get("/rootlet/v1/workers")
    itself, stale, off_board = found["items"]
    assert itself["heartbeatAgeSeconds"] < DEADLINE_S
    assert itself["step"] == "serving the admin socket"
    assert itself["counters"]["syncs"] == 0
    assert (stale["heartbeatAgeSeconds"], stale["counters"]) == (None, None)
    assert off_board["heartbeatAgeSeconds"] is None
    assert itself["resources"] is None
    _, measured = await master.get("/rootlet/v1/workers", resources="true")
    assert measured["items"][1]["resources"]["pssBytes"] > 0


async def test_details_for_describe(master: Master) -> None:
    master.ready(pod_changed(1, "web", next_try={"app": "in 10s"}, summary="started app"))
    _, details = await master.get("/rootlet/v1/pods/default/web")
    assert (details["source"], details["nextTry"], details["summary"]) == ("file", {"app": "in 10s"}, "started app")
    assert (details["worker"], details["sandbox"]) == ("", None)
    assert details["nextStep"]["reason"] == "NextSync"


def no_step(code: int, request: Any) -> Reply | None:
    """None for a master that does not answer."""
    return Reply(request_id=request.request_id, code=code, reason="NotFound") if code else None


async def test_details_are_shown_though_the_master_does_not_say_what_it_does_next(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    for code in (0, 404):
        master.answer = partial(no_step, code)
        status, details = await master.get("/rootlet/v1/pods/default/web")
        assert (status, details["nextStep"], details["source"]) == (200, None, "file")


async def test_what_holds_a_pod_up_is_a_condition_of_its_own_server(master: Master) -> None:
    master.ready(pod_changed(1, "web", waits_for="Paused"), pod_changed(2, "db"))
    _, found = await master.get("/pods")
    conditions = {pod["metadata"]["name"]: pod["status"].get("conditions", []) for pod in found["items"]}
    held_up = [(each["type"], each["reason"]) for each in conditions["web"] if each["type"] == HELD_UP_CONDITION]
    assert held_up == [(HELD_UP_CONDITION, "Paused")]
    assert HELD_UP_CONDITION not in {each["type"] for each in conditions["db"]}


async def test_details_of_who_works_on_a_pod_and_where(master: Master) -> None:
    info = WorkerInfo(slot=3, role="pod-worker", name="pods-1", pid=7, incarnation=2, state="Running", pods=1, deaths=1)
    sandbox = SandboxStatus(id="abc", name="web", infra_id="def", attempt=2, state=SandboxState.READY)
    master.feed(agent_changed(info), pod_changed(1, "web", slot=3, sandbox=sandbox), FeedSynced())
    _, details = await master.get("/rootlet/v1/pods/default/web")
    assert (details["worker"], details["sandbox"]) == ("pods-1", {"id": "abc", "attempt": 2, "state": "ready"})


# --- watches -------------------------------------------------------------------------------------------------------


async def test_watch_tells_what_is_and_what_happens(master: Master) -> None:
    master.ready(pod_changed(1, "web"), pod_changed(2, "db"))
    async with watching(master) as watch:
        assert await watch.take(2) == [("ADDED", "db"), ("ADDED", "web")]
        master.feed(pod_changed(3, "web"), pod_changed(4, "new"))
        master.gone(5, "db")
        assert await watch.take(3) == [("MODIFIED", "web"), ("ADDED", "new"), ("DELETED", "db")]


async def test_watch_with_a_selector_sees_pods_come_and_go(master: Master) -> None:
    master.ready(pod_changed(1, "web", labels={"app": "web"}))
    async with watching(master, labelSelector="app=web") as watch:
        await watch.take(1)
        master.feed(pod_changed(2, "web", labels={"app": "old"}), pod_changed(3, "web", labels={"app": "web"}))
        assert await watch.take(2) == [("DELETED", "web"), ("ADDED", "web")]


async def test_watch_resumes_where_it_stopped(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    _, found = await master.get(PODS)
    master.feed(pod_changed(2, "web"))
    master.gone(3, "web")
    async with watching(master, resourceVersion=found["metadata"]["resourceVersion"]) as watch:
        assert await watch.take(1) == [("MODIFIED", "web")]
        deleted = await watch.next()
        assert deleted is not None
    # A deletion carries its own version: resuming from it does not repeat it.
    master.feed(pod_changed(4, "db"))
    async with watching(master, resourceVersion=deleted["object"]["metadata"]["resourceVersion"]) as watch:
        assert await watch.take(1) == [("ADDED", "db")]


async def test_positions_of_an_earlier_life_are_expired(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    for version in ("1", str(2**62)):
        code, status = await master.get(PODS, watch="true", resourceVersion=version)
        assert (code, status["reason"]) == (410, "Expired")


async def test_bookmarks_move_a_quiet_watch_on(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    async with watching(master, fieldSelector="metadata.name=none", allowWatchBookmarks="true") as watch:
        master.feed(pod_changed(2, "web"))
        event = await watch.next()
        assert event is not None
        assert event["type"] == "BOOKMARK"
        _, found = await master.get(PODS)
        assert event["object"]["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]


async def test_watch_ends_at_its_timeout(master: Master) -> None:
    master.ready()
    begin = monotonic()
    async with watching(master, timeoutSeconds="1") as watch:
        assert await watch.next() is None
    assert 0.9 < monotonic() - begin < DEADLINE_S


async def test_a_slow_watcher_is_cut_off_and_costs_others_nothing(master: Master) -> None:
    big = {"note": "x" * 60_000}
    master.ready(pod_changed(1, "web"))
    reader, writer = await asyncio.open_unix_connection(str(master.socket_path), limit=2**24)
    writer.write(b"GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: rootlet\r\n\r\n")
    await reader.readuntil(b'"ADDED"')
    reader._transport.pause_reading()  # type: ignore[attr-defined] # a client that does not read
    for version in range(2, 1000):
        master.feed(pod_changed(version, "web", labels=big))
        if version % 50 == 0:
            await eventually(lambda: master._channel.pending_bytes < 10_000, "the feed is taken")
    code, found = await master.get(PODS)
    assert (code, len(found["items"])) == (200, 1)
    reader._transport.resume_reading()  # type: ignore[attr-defined]
    async with asyncio.timeout(DEADLINE_S):
        rest = await reader.readuntil(b"\r\n0\r\n\r\n")
    last = json.loads(rest.splitlines()[-4])
    assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")
    writer.close()
    await writer.wait_closed()


async def test_events(master: Master) -> None:
    master.ready(event_changed(1, "web.1", "web"), event_changed(2, "db.1", "db"))
    _, found = await master.get("/api/v1/events", fieldSelector="involvedObject.name=web")
    assert [e["metadata"]["name"] for e in found["items"]] == ["web.1"]
    async with watching(master, "/api/v1/namespaces/default/events") as watch:
        await watch.take(2)
        master.feed(event_changed(3, "web.1", "web", count=2), EventGone(resource_version=4, name="db.1"))
        assert await watch.take(2) == [("MODIFIED", "web.1"), ("DELETED", "db.1")]


# --- changes -------------------------------------------------------------------------------------------------------


async def post(master: Master, path: str, body: bytes = b"", **query: str) -> tuple[int, Any]:
    async with master.http.post(path, data=io.BytesIO(body), params=query) as response:
        return response.status, json.loads(await response.read())


async def test_apply_reaches_the_master(master: Master) -> None:
    master.answer = lambda r: Reply(request_id=r.request_id, code=422, message="web: bad", results=("pod/db created",))
    code, result = await post(master, "/rootlet/v1/apply", b"kind: Pod", file="web.yaml")
    assert master.requests == [ApplyManifests(request_id=1, file="web.yaml", body=b"kind: Pod")]
    assert (code, result["message"], result["results"]) == (422, "web: bad", ["pod/db created"])


async def test_delete_reaches_the_master(master: Master) -> None:
    async with master.http.delete(f"{PODS}/web", params={"gracePeriodSeconds": "3"}) as response:
        assert (response.status, (await response.json())["status"]) == (200, "Success")
    assert master.requests == [DeletePod(request_id=1, namespace="default", name="web", grace_period_s=3)]


async def test_a_refused_deletion_is_a_status(master: Master) -> None:
    master.answer = lambda r: Reply(request_id=r.request_id, code=404, reason="NotFound", message='pods "x" not found')
    async with master.http.delete(f"{PODS}/x") as response:
        status = await response.json()
    assert (response.status, status["reason"], status["message"]) == (404, "NotFound", 'pods "x" not found')


async def test_stop_reaches_the_master(master: Master) -> None:
    code, _ = await post(master, "/rootlet/v1/stop", pods="true")
    assert code == 200
    assert master.requests == [StopAgent(request_id=1, pods=True)]


async def test_too_large_a_body_never_reaches_the_master(master: Master) -> None:
    code, status = await post(master, "/rootlet/v1/apply", b"x" * (MAX_BODY_BYTES + 1))
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")
    code, _ = await post(master, "/rootlet/v1/apply", b"x" * MAX_BODY_BYTES)
    assert code == 200
    assert len(master.requests) == 1


async def test_requests_that_wait_are_bounded(master: Master) -> None:
    master.answer = lambda _request: None
    waiting = [asyncio.create_task(post(master, "/rootlet/v1/stop")) for _ in range(70)]
    await eventually(lambda: sum(task.done() for task in waiting) == 6, "six are refused")
    await eventually(lambda: len(master.requests) == 64, "the others were sent")
    assert {task.result()[0] for task in waiting if task.done()} == {429}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    master.answer = lambda r: Reply(request_id=r.request_id, code=200)
    code, _ = await post(master, "/rootlet/v1/stop")
    assert code == 200


async def test_those_who_wait_are_told_when_the_master_goes(master: Master) -> None:
    master.answer = lambda _request: None
    asked = asyncio.create_task(post(master, "/rootlet/v1/stop"))
    await eventually(lambda: bool(master.requests), "the request came")
    master.feed(Shutdown())
    code, status = await asked
    assert (code, status["reason"]) == (503, "ServiceUnavailable")


async def test_garbage_on_the_socket_hurts_nobody(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    long_line = b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n"
    for garbage in (b"\0" * 4096, long_line, os.urandom(4096), b"POST /x HTTP/9.9\r\n"):
        reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
        writer.write(garbage)
        writer.write_eof()
        async with asyncio.timeout(DEADLINE_S):
            answer = await reader.read()
        assert b" 200 " not in answer[:20]
        writer.close()
    code, _ = await master.get(PODS)
    assert code == 200


async def answer_to(master: Master, request: bytes) -> bytes:
    """Everything that comes back until the connection is closed."""
    reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
    writer.write(request)
    async with asyncio.timeout(DEADLINE_S):
        answer = await reader.read()
    writer.close()
    return answer


async def test_malformed_requests_are_refused_in_a_line_each(master: Master, caplog: pytest.LogCaptureFixture) -> None:
    requests = (
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 10_000 + b"\r\n\r\n",
    )
    for request in requests:
        assert (await answer_to(master, request)).startswith(b"HTTP/1.0 400 ")
    said = [record for record in caplog.records if record.name == HTTP_LOG.name]
    assert len(said) == len(requests)
    for record in said:
        text = logging.Formatter().format(record)
        assert text.startswith("refused a malformed request: 400, message: ")
        assert "\n" not in text
        assert len(text) < 300


async def test_a_body_that_cannot_be_decompressed_is_the_clients_error(
    master: Master, caplog: pytest.LogCaptureFixture
) -> None:
    master.ready()
    headers = {"Content-Encoding": "gzip"}
    async with master.http.post("/rootlet/v1/apply", data=b"no gzip at all", headers=headers) as response:
        status = json.loads(await response.read())
        assert (response.status, status["reason"]) == (400, "BadRequest")
        assert "gzip" in status["message"]
    assert not master.requests
    assert not [record for record in caplog.records if record.exc_info]


async def test_the_next_life_serves_the_same_socket(tmp_path: Path) -> None:
    path = tmp_path / "rootlet.sock"
    listening = listen_at(path)
    async with api_server(tmp_path, listening) as first:
        first.ready(pod_changed(7, "web"))
        _, found = await first.get(PODS)
    assert path.exists()
    async with api_server(tmp_path, listening) as second:
        second.ready(pod_changed(7, "web"))
        version = found["metadata"]["resourceVersion"]
        code, status = await second.get(PODS, watch="true", resourceVersion=version)
        assert (code, status["reason"]) == (410, "Expired")
    listening.close()


# --- logs ----------------------------------------------------------------------------------------------------------


def write_log(master: Master, container: str, attempt: int, *lines: str, pod: str = "web") -> Path:
    path = master.logs_dir / f"default_{pod}_uid-{pod}" / container / f"{attempt}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"2026-01-01T00:00:0{i}.000000000+00:00 stdout F {line}\n" for i, line in enumerate(lines))
    return path


async def get_log(master: Master, pod: str = "web", **query: str) -> tuple[int, str]:
    async with master.http.get(f"{PODS}/{pod}/log", params=query) as response:
        text = await response.text()
        return response.status, text if response.status == 200 else json.loads(text)["message"]


async def test_log_of_the_only_container(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    write_log(master, "app", 0, "one", "two", "three")
    assert await get_log(master) == (200, "one\ntwo\nthree\n")
    assert await get_log(master, tailLines="2") == (200, "two\nthree\n")
    assert await get_log(master, tailLines="0") == (200, "")
    assert await get_log(master, limitBytes="6") == (200, "one\ntw")
    assert await get_log(master, sinceTime="2026-01-01T00:00:01Z") == (200, "two\nthree\n")
    _, stamped = await get_log(master, timestamps="true", tailLines="1")
    assert stamped == "2026-01-01T00:00:02.000000000+00:00 three\n"


async def test_log_needs_a_container_when_there_are_several(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("a", "b")))
    write_log(master, "b", 0, "hello")
    assert await get_log(master, container="b") == (200, "hello\n")
    code, message = await get_log(master)
    assert (code, message) == (400, "a container name must be specified for pod web, choose one of: [a b]")
    assert (await get_log(master, container="a"))[0] == 404


async def test_log_of_the_previous_life(master: Master) -> None:
    ended = {"terminated": {"exitCode": 1, "containerID": "podman://1"}}
    statuses = [container_status("app", restartCount=3, lastState=ended)]
    master.ready(pod_changed(1, "web", status=status_of(phase="Running", containerStatuses=statuses)))
    write_log(master, "app", 2, "before")
    write_log(master, "app", 3, "now")
    assert await get_log(master) == (200, "now\n")
    assert await get_log(master, previous="true") == (200, "before\n")


async def test_followed_log_ends_with_its_container(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    path = write_log(master, "app", 0, "one")
    async with master.http.get(f"{PODS}/web/log", params={"follow": "true"}) as response:
        assert await response.content.readline() == b"one\n"
        write_log(master, "app", 0, "two")
        assert await response.content.readline() == b"two\n"
        path.rename(path.with_name("0.log.20260101"))
        write_log(master, "app", 0, "rotated")
        assert await response.content.readline() == b"rotated\n"
        write_log(master, "app", 0, "last words")
        ended = [container_status("app", state={"terminated": {"exitCode": 0, "containerID": "podman://1"}})]
        master.feed(pod_changed(2, "web", status=status_of(phase="Succeeded", containerStatuses=ended)))
        async with asyncio.timeout(DEADLINE_S):
            assert await response.read() == b"last words\n"


async def test_log_never_leaves_its_directory(master: Master, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("2026-01-01T00:00:00Z stdout F secret\n")
    master.ready(pod_changed(1, "web"), pod_changed(2, "evil", uid="x/../../.."), pod_changed(3, "far"))
    path = write_log(master, "app", 0, "x")
    path.unlink()
    path.symlink_to(secret)
    assert (await get_log(master))[0] == 404
    assert (await get_log(master, "evil"))[0] == 400
    (master.logs_dir / "default_far_uid-far").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "app").mkdir(parents=True)
    (tmp_path / "elsewhere" / "app" / "0.log").write_bytes(secret.read_bytes())
    assert (await get_log(master, "far"))[0] == 404
    path.unlink()
    os.mkfifo(path)
    assert (await get_log(master))[0] == 404


async def test_a_foreign_user_is_refused(master: Master) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    master.ready(pod_changed(1, "web"))
    for directory in (master.socket_path.parent, *master.socket_path.parent.parents):
        if directory.is_relative_to("/tmp") and directory != Path("/tmp"):
            directory.chmod(0o755)
    master.socket_path.chmod(0o666)
    program = (
        "import os,socket,sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "s.sendall(b'GET /version HTTP/1.0\\r\\n\\r\\n'); print(s.recv(20))\n"
    )
    process = await asyncio.create_subprocess_exec(
        "/usr/bin/python3", "-c", program, str(master.socket_path), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert b" 403 " in out


# --- the loop of the real process ----------------------------------------------------------------------------------


def test_on_uvloop(tmp_path: Path) -> None:
    """On uvloop transports and servers are other ones: the same conversation must work there."""

    async def conversation() -> None:
        async with api_server(tmp_path) as master:
            master.ready(pod_changed(1, "web"))
            async with watching(master) as watch:
                await watch.take(1)
                master.gone(2, "web")
                assert await watch.take(1) == [("DELETED", "web")]
            code, _ = await post(master, "/rootlet/v1/apply", b"x" * (MAX_BODY_BYTES + 1))
            assert code == 413
        assert master.socket_path.exists(), "the master's socket is not the API server's to remove"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(conversation())


async def test_a_watcher_that_leaves_is_forgotten_quietly(master: Master, caplog: pytest.LogCaptureFixture) -> None:
    master.ready(pod_changed(1, "web"))
    for version in range(2, 200):  # more than may watch at once
        async with watching(master) as watch:
            assert await watch.take(1) == [("ADDED", "web")]
            master.feed(pod_changed(version, "web"))
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
