"""The source ``http``: what is posted, kept and refused, and what a URL answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ipc.host.clock import SystemClock
from supervisor.config.settings import Seconds, Settings
from supervisor.protocol.manifests import HTTP_SOURCE, SourceSnapshot
from supervisor.protocol.source_updates import PodOperation, PodUpdate
from supervisor.sources.http_source import POSTED, HttpSource
from supervisor.sources.manager import POSTED_FILE, Change, SourceManager
from supervisor.sources.objects.identity import Origin
from supervisor.sources.url_reader import MAX_REDIRECTS, FetchError, UrlReader, fetch
from tests.support.api_server import eventually
from tests.support.manifests import DEADLINE_S, manifest, text

ORIGIN = Origin(instance="test", node_name="node-1", source=HTTP_SOURCE)
MAX_BYTES = 100_000


def source(directory: Path) -> HttpSource:
    return HttpSource(directory / POSTED_FILE, ORIGIN, MAX_BYTES)


def names(snapshot: SourceSnapshot) -> list[str]:
    return [item.pod.metadata.name for item in snapshot.pods]


def pod_list(*pods: dict[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "items": pods}).encode()


# --- what is posted -----------------------------------------------------------------------------------------------


def test_a_posted_set_is_kept_and_replaced(tmp_path: Path) -> None:
    assert names(source(tmp_path).read()) == []
    assert names(source(tmp_path).post(text(manifest("one")), {})) == ["one"]
    assert names(source(tmp_path).read()) == ["one"]
    assert (tmp_path / POSTED_FILE).stat().st_mode & 0o777 == 0o600
    assert names(source(tmp_path).post(pod_list(manifest("two"), manifest("three")), {})) == ["two", "three"]
    assert names(source(tmp_path).read()) == ["two", "three"]
    bare = json.dumps([manifest("four"), manifest("five")]).encode()
    assert names(source(tmp_path).post(bare, {})) == ["four", "five"]
    assert names(source(tmp_path).read()) == ["four", "five"]
    assert source(tmp_path).post(pod_list(), {}).errors == ()
    assert not (tmp_path / POSTED_FILE).exists()


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (b"{", "", ""),
        (b"", "", "has no pod or other object in it"),
        (json.dumps({**manifest("a"), "spec": {"containers": []}}).encode(), "spec.containers", "Required"),
        (pod_list(manifest("a"), {**manifest("b"), "spec": {"oops": 1}}), "items[1].spec", "oops"),
        (json.dumps([manifest("a"), {**manifest("b"), "spec": {"oops": 1}}]).encode(), "[1].spec", "oops"),
        (b"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: hush}\n", "kind", "states pods only"),
        (b"#" * (MAX_BYTES + 1), "", "more than"),
    ],
)
def test_a_bad_set_changes_nothing_and_names_its_field(tmp_path: Path, body: bytes, field: str, message: str) -> None:
    source(tmp_path).post(text(manifest("before")), {})
    refused = source(tmp_path).post(body, {})
    assert refused.pods == ()
    assert field in refused.errors[0].field
    assert message in str(refused.errors[0])
    assert "hush" not in str(refused.errors)
    assert names(source(tmp_path).read()) == ["before"]


def test_a_name_that_another_source_holds_is_refused(tmp_path: Path) -> None:
    refused = source(tmp_path).post(text(manifest("web")), {("default", "web"): "the manifest web.yaml"})
    assert "pod default/web already comes from the manifest web.yaml" in str(refused.errors[0])
    assert names(source(tmp_path).read()) == []


def test_what_was_kept_and_cannot_be_read_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / POSTED_FILE).mkdir()
    assert source(tmp_path).read().held_files() == {POSTED}


# --- what a URL answers -------------------------------------------------------------------------------------------

Answer = Callable[[web.BaseRequest], web.StreamResponse]


class Site:
    """A web server that answers as it is told."""

    def __init__(self) -> None:
        self.answer: Answer = lambda _: web.Response(body=text(manifest("web")))
        self.headers: list[dict[str, str]] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        return self.answer(request)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    runner = web.ServerRunner(web.Server(made.handle))
    await runner.setup()
    tcp = web.TCPSite(runner, "127.0.0.1", 0)
    await tcp.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/m.yaml"
    yield made
    await runner.cleanup()


async def got(site: Site, **headers: str) -> bytes:
    return await fetch(site.url, {name: [value] for name, value in headers.items()}, MAX_BYTES, DEADLINE_S)


async def test_headers_go_along(site: Site) -> None:
    assert await got(site, Authorization="Bearer abc") == text(manifest("web"))
    assert site.headers[0]["Authorization"] == "Bearer abc"
    assert site.headers[0]["Host"] == site.url.split("/")[2]


async def test_redirects_are_followed_and_credentials_do_not_leave_their_host(site: Site) -> None:
    def elsewhere(request: web.BaseRequest) -> web.StreamResponse:
        if request.host.startswith("127."):
            return web.Response(status=302, headers={"Location": site.url.replace("127.0.0.1", "localhost") + "?x"})
        return web.Response(body=b"there")

    site.answer = elsewhere
    assert await got(site, Authorization="Bearer abc") == b"there"
    assert ["Authorization" in headers for headers in site.headers] == [True, False]


def in_a_circle(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=301, headers={"Location": "/again"})


def to_a_file(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=301, headers={"Location": "file:///etc/passwd"})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _: web.Response(status=503), "503 Service Unavailable"),
        (lambda _: web.Response(body=b"x" * (MAX_BYTES + 1)), f"more than {MAX_BYTES} bytes"),
        (in_a_circle, f"stopped after {MAX_REDIRECTS} redirects"),
        (to_a_file, "is no http or https URL"),
    ],
)
async def test_what_is_no_manifest(site: Site, answer: Answer, message: str) -> None:
    site.answer = answer
    with pytest.raises(FetchError, match=message):
        await got(site)


@pytest.mark.parametrize(
    "line", [b"", b"HTTP/1.1 200 OK\r\n", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000]
)
async def test_a_server_that_does_not_answer_as_it_should(line: bytes) -> None:
    ended = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(line)
            await writer.drain()
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        with pytest.raises(FetchError):
            await fetch(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, MAX_BYTES, 0.3)
        ended.set()


async def test_the_same_bytes_are_no_news_and_a_bad_set_keeps_what_is(site: Site, tmp_path: Path) -> None:
    reader = UrlReader(source(tmp_path), site.url.replace("://", "://me:secret@"), {}, MAX_BYTES)
    body = await reader.read()
    assert isinstance(body, bytes)
    assert names(reader.snapshot(body)) == ["web"]
    assert await reader.read() is None
    site.answer = lambda _: web.Response(body=b"kind: [")
    body = await reader.read()
    assert isinstance(body, bytes)
    wrong = reader.snapshot(body)
    assert wrong.held_files() == frozenset({site.url}), "what it stated before stays"
    site.answer = lambda _: web.Response(status=404)
    failed = await reader.read()
    assert isinstance(failed, SourceSnapshot)
    assert not failed.complete
    assert "secret" not in str((wrong, failed))
    nothing = reader.snapshot(b"")
    assert (nothing.complete, nothing.held_files()) == (False, frozenset({site.url})), "a server without its content"


async def test_the_manager_polls_and_does_not_take_what_is_posted(site: Site, tmp_path: Path) -> None:
    manager = SourceManager(
        Settings(
            instance_name="test",
            static_pod_path=tmp_path / "none",
            state_dir=tmp_path,
            memory_dir=tmp_path / "memory",
            static_pod_url=site.url,
            http_check_frequency_s=Seconds(0.05),
        ),
        SystemClock(),
    )
    changes: AsyncIterator[Change] = manager.watch()
    async with contextlib.aclosing(changes):  # type: ignore[type-var]
        assert await until(changes, PodOperation.ADD) == ["web"]
        assert (await manager.post(text(manifest("posted")))).code == 409
        site.answer = lambda _: web.Response(status=500)
        asked = len(site.headers)
        await eventually(lambda: len(site.headers) >= asked + 2, "it has asked again")
        site.answer = lambda _: web.Response(body=pod_list())
        assert await until(changes, PodOperation.REMOVE) == ["web"]


async def until(changes: AsyncIterator[Change], operation: PodOperation) -> list[str]:
    """Names of the first pods of the source with that operation."""
    async with asyncio.timeout(DEADLINE_S):
        async for change in changes:
            for update in change.updates:
                if (
                    isinstance(update, PodUpdate)
                    and (update.source, update.op) == (HTTP_SOURCE, operation)
                    and update.pods
                ):
                    return [pod.metadata.name for pod in update.pods]
    raise AssertionError("it ended")


async def test_the_manager_takes_what_is_posted(tmp_path: Path) -> None:
    settings = Settings(
        instance_name="test", static_pod_path=tmp_path / "none", state_dir=tmp_path, memory_dir=tmp_path / "memory"
    )
    manager = SourceManager(settings, SystemClock())
    changes: AsyncIterator[Change] = manager.watch()
    async with contextlib.aclosing(changes):  # type: ignore[type-var]
        for _ in range(3):
            await anext(changes)
        assert (await manager.post(text(manifest("one")))).results == ("pod default/one",)
        assert await until(changes, PodOperation.ADD) == ["one"]
        refused = await manager.post(b"kind: Pod")
        assert (refused.code, "the posted manifest" in refused.message) == (400, True)
        await manager.post(pod_list())
        assert await until(changes, PodOperation.REMOVE) == ["one"]


def test_a_posted_set_that_went_away_is_written_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    kept = source(state)
    assert kept.keep() == ()
    assert kept.post(pod_list(manifest("a")), {}).errors == ()
    assert kept.keep() == ()
    shutil.rmtree(state)
    assert kept.keep() == (state / POSTED_FILE,)
    assert names(source(state).read()) == ["a"]
    assert kept.post(pod_list(), {}).errors == ()
    assert kept.keep() == ()
    assert names(source(state).read()) == []
