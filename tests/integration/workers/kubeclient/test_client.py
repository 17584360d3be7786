"""The client against servers that answer, hesitate, break off and ask for certificates."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ipc.host.clock import Clock, Instant, SystemClock, monotonic
from ipc.k8s.kubeconfig.types import ClusterAccess, Credentials, ExecPlugin
from tests.integration.workers.kubeclient.api_servers import (
    OBJECT,
    STREAM,
    Asked,
    SmallServer,
    always,
    chunk,
    replaced,
    saying,
    server_tls,
    small_server,
)
from tests.support.certificates import Authority
from tests.support.servers.kube_api.lies import NO_OBJECTS, Lie
from workers.kubeclient import client as client_module
from workers.kubeclient import exec_plugin
from workers.kubeclient.client import ApiClient
from workers.kubeclient.errors import ApiError, Unreachable
from workers.kubeclient.protocol import DEFAULT_DEADLINE_S, STRATEGIC_MERGE_PATCH, Verb, WatchEvent
from workers.kubeclient.rate_limit import RateLimit

pytestmark = pytest.mark.timeout(60)

PATH: Final = "/api/v1/pods"
EVENT: Final = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'


class TickingClock(Clock):
    """A second passes with each look, so that files are looked at each time."""

    def __init__(self) -> None:
        self.mono = 0.0

    def now(self) -> Instant:
        self.mono += 1.0
        return Instant(self.mono, SystemClock().now().wall)


def client_of(server: SmallServer | str, credentials: Credentials | None = None, **access: Any) -> ApiClient:
    url = server if isinstance(server, str) else server.url
    return ApiClient(
        ClusterAccess(server=url, credentials=credentials or Credentials(), **access),
        TickingClock(),
        user_agent="rootlet/test",
        limit=RateLimit(0, 0),
    )


@contextlib.asynccontextmanager
async def asking(*answers: bytes) -> AsyncIterator[tuple[SmallServer, ApiClient]]:
    async with small_server(always(*answers)) as server:
        client = client_of(server)
        yield server, client
        client.close()


async def test_a_request_as_the_server_gets_it() -> None:
    async with asking(saying("200 OK", OBJECT)) as (server, client):
        body = await client.request(
            "PATCH", PATH, query={"fieldSelector": "a=b"}, body=b"{}", content_type=STRATEGIC_MERGE_PATCH
        )
        await client.request("GET", PATH)
    assert body == OBJECT
    patch, get = server.asked
    assert (patch.verb, patch.target, patch.body) == ("PATCH", f"{PATH}?fieldSelector=a%3Db", b"{}")
    assert patch.headers["content-type"] == STRATEGIC_MERGE_PATCH
    assert patch.headers["user-agent"] == "rootlet/test"
    assert patch.headers["accept"] == "application/json, */*"
    assert "authorization" not in patch.headers
    assert "content-type" not in get.headers
    assert server.connections == 1, "it is kept"


async def test_a_path_of_the_server_comes_first_and_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with small_server(always(saying("200 OK"))) as server:
        await client_of(f"{server.url}/k8s/c1").request("GET", PATH)
    assert server.asked[0].target == f"/k8s/c1{PATH}"


async def test_errors_are_the_servers() -> None:
    status = b'{"kind":"Status","status":"Failure","reason":"NotFound","message":"pods \\"a\\" not found","code":404}'
    async with asking(saying("404 Not Found", status)) as (_, client):
        with pytest.raises(ApiError, match='pods "a" not found') as raised:
            await client.request("GET", PATH)
    assert raised.value.is_not_found


@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_a_server_that_says_when_is_asked_again_then(verb: Verb) -> None:
    busy = saying("429 Too Many Requests", b"{}", "Retry-After: 1")
    async with asking(busy, saying("200 OK", OBJECT)) as (server, client):
        began = monotonic()
        assert await client.request(verb, PATH, body=b"{}" if verb == "POST" else None) == OBJECT
    assert monotonic() - began >= 0.9
    assert [asked.body for asked in server.asked] == [b"{}" if verb == "POST" else b""] * 2


async def test_a_server_that_wants_more_time_than_there_is_has_answered() -> None:
    async with asking(saying("503 Service Unavailable", b"{}", "Retry-After: 60")) as (server, client):
        with pytest.raises(ApiError) as raised:
            await client.request("GET", PATH, deadline_s=5.0)
    assert raised.value.retry_after_s == 60.0
    assert len(server.asked) == 1


async def test_a_server_that_does_not_say_when_is_not_asked_again() -> None:
    async with asking(saying("500 Internal Server Error", b"no"), saying("200 OK")) as (server, client):
        with pytest.raises(ApiError, match="no"):
            await client.request("GET", PATH)
    assert len(server.asked) == 1


async def test_a_read_whose_connection_breaks_is_sent_again_and_a_change_is_not() -> None:
    async def break_off(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.connection % 2:
            writer.transport.abort()
        else:
            writer.write(saying("200 OK", OBJECT, "Connection: close"))

    async with small_server(break_off) as server:
        client = client_of(server)
        assert await client.request("GET", PATH) == OBJECT
        with pytest.raises(Unreachable):
            await client.request("POST", PATH, body=b"{}")
    assert [asked.verb for asked in server.asked] == ["GET", "GET", "POST"]


async def test_a_kept_connection_that_has_ended_is_not_used() -> None:
    async with asking(saying("200 OK", OBJECT)) as (server, client):
        await client.request("GET", PATH)
        server.drop()
        await asyncio.sleep(0.05)  # the end has to come
        assert await client.request("POST", PATH, body=b"{}") == OBJECT
    assert server.connections == 2


async def test_a_silent_server_is_given_up() -> None:
    async def silent(_: Asked, __: asyncio.StreamWriter) -> None: ...

    async with small_server(silent) as server:
        with pytest.raises(Unreachable, match=r"no answer within 0.2 s"):
            await client_of(server).request("GET", PATH, deadline_s=0.2)


async def test_nobody_there_is_said_at_once() -> None:
    async with small_server(always(b"")) as server:
        url = server.url
    began = monotonic()
    with pytest.raises(Unreachable, match="Connection refused"):
        await client_of(url).request("GET", PATH)
    assert monotonic() - began < DEFAULT_DEADLINE_S, "it waits for nothing"


async def test_an_answer_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_ANSWER_BYTES", 1000)
    async with asking(saying("200 OK", b"x" * 1001)) as (_, client):
        with pytest.raises(Unreachable, match="more than 1000 bytes"):
            await client.request("GET", PATH)


async def test_the_rate_is_limited() -> None:
    async with small_server(always(saying("200 OK"))) as server:
        access = ClusterAccess(server=server.url)
        client = ApiClient(access, TickingClock(), user_agent="a", limit=RateLimit(20.0, 2))
        began = monotonic()
        await asyncio.gather(*(client.request("GET", PATH) for _ in range(6)))
        assert monotonic() - began >= 0.15
        with pytest.raises(Unreachable, match="rate limiter"):
            await asyncio.gather(*(client.request("GET", PATH, deadline_s=0.01) for _ in range(6)))


# --- watches ------------------------------------------------------------------------------------------------------


async def test_events_come_as_they_are_sent_and_the_watch_ends_with_the_server() -> None:
    go_on = asyncio.Event()

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(EVENT))
        await go_on.wait()
        writer.write(chunk(EVENT[:10]) + chunk(EVENT[10:]) + chunk(b""))

    async with small_server(answer) as server:
        watch = client_of(server).watch(PATH, query={"watch": "true"})
        assert await anext(watch) == WatchEvent("ADDED", b'{"metadata":{"name":"a"}}')
        go_on.set()
        assert [event.type async for event in watch] == ["ADDED"]
    assert server.asked[0].target == f"{PATH}?watch=true"


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("lie", NO_OBJECTS, ids=lambda lie: lie.name)
async def test_an_answer_that_is_no_object_is_none_and_names_what_was_asked(lie: Lie, verb: Verb) -> None:
    async with asking(saying("200 OK", lie.body)) as (_, client):
        with pytest.raises(Unreachable, match=f"^{verb} {PATH}: the answer is no object: "):
            await client.request(verb, PATH)


async def test_a_watch_that_is_refused_says_why() -> None:
    async with asking(saying("410 Gone", b'{"kind":"Status","reason":"Expired","code":410}')) as (_, client):
        with pytest.raises(ApiError) as raised:
            await anext(client.watch(PATH, query={}))
    assert raised.value.is_expired


@pytest.mark.parametrize(
    "said",
    [STREAM + chunk(EVENT) + b"5\r\n", STREAM + b"no chunk", b"SSH-2.0-x\r\n", b""],
    ids=["broken off", "no chunk", "no HTTP", "nothing"],
)
async def test_a_watch_that_breaks_is_unreachable(said: bytes) -> None:
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        writer.close()

    async with small_server(answer) as server:
        with pytest.raises(Unreachable):
            async for _ in client_of(server).watch(PATH, query={}):
                pass


async def test_a_silent_watch_ends_so_that_it_is_begun_anew() -> None:
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(EVENT))

    async with small_server(answer) as server:
        client = ApiClient(
            ClusterAccess(server=server.url),
            TickingClock(),
            user_agent="a",
            limit=RateLimit(0, 0),
            max_watch_silence_s=0.2,
        )
        assert len([event async for event in client.watch(PATH, query={})]) == 1


async def test_connections_can_be_closed_from_outside() -> None:
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(EVENT))

    async with small_server(answer) as server:
        client = client_of(server)
        watch = client.watch(PATH, query={})
        await anext(watch)
        client.close_connections()
        with pytest.raises(Unreachable):
            await anext(watch)


# --- credentials --------------------------------------------------------------------------------------------------


def with_certificate(file: Path) -> Credentials:
    return Credentials(certificate_file=str(file), key_file=str(file))


async def test_a_certificate_is_shown_and_the_next_one_after_a_rotation(tmp_path: Path) -> None:
    users = Authority(tmp_path / "users")
    servers = Authority(tmp_path / "servers")
    seen: list[str] = []

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        subject = writer.get_extra_info("peercert")["subject"]
        seen.append(next(value for pairs in subject for key, value in pairs if key == "commonName"))
        writer.write(saying("200 OK"))

    file = tmp_path / "current.pem"
    file.write_bytes(users.client("first").read_bytes())
    async with small_server(answer, server_tls(servers, users)) as server:
        client = client_of(server, with_certificate(file), ca_file=str(servers.file))
        await client.request("GET", PATH)
        await client.request("GET", PATH)
        replaced(file, users.client("second").read_bytes())
        await client.request("GET", PATH)
        replaced(file, b"no certificate")
        await client.request("GET", PATH)
    assert seen == ["first", "first", "second", "second"]
    assert server.connections == 2


async def test_inline_certificates(tmp_path: Path) -> None:
    users = Authority(tmp_path / "users")
    servers = Authority(tmp_path / "servers")
    pem = users.client("inline").read_bytes()
    async with small_server(always(saying("200 OK", OBJECT)), server_tls(servers, users)) as server:
        credentials = Credentials(certificate_pem=pem, key_pem=pem)
        client = client_of(server, credentials, ca_pem=servers.file.read_bytes())
        assert await client.request("GET", PATH) == OBJECT


async def test_a_server_of_another_authority_is_not_asked(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    async with small_server(always(saying("200 OK")), server_tls(other)) as server:
        client = client_of(server, Credentials(token="secret-token"), ca_file=str(ours.file))
        with pytest.raises(Unreachable, match="certificate") as raised:
            await client.request("GET", PATH)
    assert server.asked == []
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(("name", "taken"), [("kubernetes.default", True), ("other.default", False)])
async def test_the_servers_name(tmp_path: Path, name: str, taken: bool) -> None:
    authority = Authority(tmp_path)
    async with small_server(always(saying("200 OK")), server_tls(authority, name="kubernetes.default")) as server:
        client = client_of(server, ca_file=str(authority.file), tls_server_name=name)
        if taken:
            await client.request("GET", PATH)
        else:
            with pytest.raises(Unreachable):
                await client.request("GET", PATH)


async def test_a_server_that_nobody_vouches_for_where_that_is_said(tmp_path: Path) -> None:
    async with small_server(always(saying("200 OK", OBJECT)), server_tls(Authority(tmp_path))) as server:
        assert await client_of(server, insecure_skip_tls_verify=True).request("GET", PATH) == OBJECT


async def test_a_token_and_the_file_of_one(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    async with small_server(always(saying("200 OK"))) as server:
        await client_of(server, Credentials(token="plain")).request("GET", PATH)
        client = client_of(server, Credentials(token="older", token_file=str(file)))
        await client.request("GET", PATH)
        replaced(file, b"second")
        await client.request("GET", PATH)
        file.unlink()
        await client.request("GET", PATH)
        await client_of(server, Credentials(username="u", password="p")).request("GET", PATH)
    shown = [asked.headers["authorization"] for asked in server.asked]
    assert shown == ["Bearer plain", "Bearer first", "Bearer second", "Bearer second", "Basic dTpw"]


async def test_without_its_token_nothing_is_asked(tmp_path: Path) -> None:
    async with small_server(always(saying("200 OK"))) as server:
        with pytest.raises(Unreachable, match="token: No such file"):
            await client_of(server, Credentials(token_file=str(tmp_path / "token"))).request("GET", PATH)
    assert server.asked == []


def plugin(tmp_path: Path, script: str) -> ExecPlugin:
    """A program that appends a line to ``runs`` when it runs."""
    file = tmp_path / "plugin"
    file.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\n{script}\n")
    file.chmod(0o700)
    return ExecPlugin(api_version="client.authentication.k8s.io/v1", command=str(file), env=(("GIVEN", "tok"),))


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


PRINTS: Final = """printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":%s}' """


async def test_a_plugin_is_run_once_and_again_after_401(tmp_path: Path) -> None:
    given = plugin(tmp_path, PRINTS + """ "{\\"token\\":\\"$GIVEN-$(wc -l < $(dirname $0)/runs)\\"}" """)
    answers = (saying("200 OK"), saying("200 OK"), saying("401 Unauthorized"), saying("200 OK"))
    async with small_server(always(*answers)) as server:
        client = client_of(server, Credentials(exec_plugin=given))
        await asyncio.gather(client.request("GET", PATH), client.request("GET", PATH))
        assert runs(tmp_path) == 1
        with pytest.raises(ApiError):
            await client.request("GET", PATH)
        await client.request("GET", PATH)
    shown = [asked.headers["authorization"] for asked in server.asked]
    assert shown == ["Bearer tok-1", "Bearer tok-1", "Bearer tok-1", "Bearer tok-2"]


async def test_a_plugin_is_run_again_when_what_it_gave_has_ended(tmp_path: Path) -> None:
    status = '{"token":"t","expirationTimestamp":"2020-01-01T00:00:00Z"}'
    given = plugin(tmp_path, PRINTS + f"'{status}'")
    async with small_server(always(saying("200 OK"))) as server:
        client = client_of(server, Credentials(exec_plugin=given))
        await client.request("GET", PATH)
        await client.request("GET", PATH)
    assert runs(tmp_path) == 2


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 3", "exit code 3"), ("echo secret", "no ExecCredential"), ("sleep 60", "within 0.3 s")],
)
async def test_a_plugin_that_gives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setattr(exec_plugin, "DEADLINE_S", 0.3)
    async with small_server(always(saying("200 OK"))) as server:
        with pytest.raises(Unreachable, match=words) as raised:
            await client_of(server, Credentials(exec_plugin=plugin(tmp_path, script))).request("GET", PATH)
    assert server.asked == []
    assert "secret" not in str(raised.value)


async def test_a_plugins_certificate(tmp_path: Path) -> None:
    users, servers = Authority(tmp_path / "users"), Authority(tmp_path / "servers")
    pem = users.client("plugged").read_text()
    (tmp_path / "answer").write_bytes(
        msgspec.json.encode(
            {
                "kind": "ExecCredential",
                "apiVersion": "client.authentication.k8s.io/v1",
                "status": {"clientCertificateData": pem, "clientKeyData": pem},
            }
        )
    )
    given = plugin(tmp_path, f"cat {tmp_path}/answer")
    async with small_server(always(saying("200 OK", OBJECT)), server_tls(servers, users)) as server:
        client = client_of(server, Credentials(exec_plugin=given), ca_file=str(servers.file))
        assert await client.request("GET", PATH) == OBJECT
