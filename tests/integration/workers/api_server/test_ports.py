"""The kubelet's server on TCP: who is let in, who is not, and what hostile connections may take."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from ipc.link.wire.server_settings import Port, ServerSettings
from tests.support.api_server import DEADLINE_S, Master, api_server, eventually, pod_changed
from tests.support.certificates import Authority, client_context
from workers.api_server.core import connection_guard, port_listener
from workers.api_server.core.connection_guard import MAX_HEAD_BYTES

SECRET: Final = "pod-that-nobody-may-know"
TOKENS: Final = '# a comment\nabc,prometheus,1\nxyz,admin,2,"ops,dev"\n'
RULES: Final = {"prometheus": ("metrics", "healthz"), "group:ops": ("*",), "curl": ("pods",)}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


@pytest.fixture
def settings(tmp_path: Path, authority: Authority) -> ServerSettings:
    """Everything on."""
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(TOKENS)
    return ServerSettings(
        ports=(Port.SECURE, Port.READ_ONLY, Port.HEALTHZ),
        addresses=("node-1", "localhost", "127.0.0.1"),
        pki_dir=str(tmp_path / "pki"),
        client_ca_file=str(authority.file),
        token_file=str(tokens),
        rules=RULES,
    )


@pytest.fixture
async def master(tmp_path: Path, settings: ServerSettings) -> AsyncIterator[Master]:
    async with serving(tmp_path, settings) as started:
        yield started


@contextlib.asynccontextmanager
async def serving(tmp_path: Path, settings: ServerSettings, **changes: Any) -> AsyncIterator[Master]:
    make_directory(tmp_path)
    async with api_server(tmp_path, server=msgspec.structs.replace(settings, **changes)) as started:
        started.ready(pod_changed(1, SECRET))
        yield started


async def ask(
    master: Master,
    path: str,
    *,
    port: Port = Port.SECURE,
    method: str = "GET",
    pem: Path | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str, dict[str, str]]:
    """Status, text and headers of one request on a connection of its own."""
    scheme = "https" if port is Port.SECURE else "http"
    url = f"{scheme}://127.0.0.1:{master.ports[port]}{path}"
    timeout = aiohttp.ClientTimeout(total=DEADLINE_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        context = client_context(pem)
        async with session.request(method, url, headers=headers, ssl=context, allow_redirects=False) as response:
            return response.status, await response.text(), dict(response.headers)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


def make_directory(path: Path) -> None:
    path.mkdir(exist_ok=True)
    (path / "rootlet.sock").unlink(missing_ok=True)


def modes(directory: Path) -> list[int]:
    """Modes of a directory and of all in it."""
    return [path.stat().st_mode & 0o777 for path in (directory, *directory.iterdir())]


# --- who is let in --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/pods", "/healthz", "/nosuch", "/", "/exec/default/a/b", "/metrics", "/configz"])
@pytest.mark.parametrize("headers", [{}, bearer("abd"), bearer("ab"), bearer(""), {"Authorization": "Basic YTpi"}])
async def test_who_shows_nothing_or_a_wrong_token_is_refused(
    master: Master, path: str, headers: dict[str, str]
) -> None:
    code, text, answered = await ask(master, path, headers=headers)
    assert (code, text) == (401, "Unauthorized")
    assert "Server" not in answered


async def test_nobody_is_told_to_go_on_before_it_is_known_who_asks(master: Master) -> None:
    head = "POST /run/default/web/app HTTP/1.1\r\nHost: node\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", master.ports[Port.SECURE], ssl=context)
    async with asyncio.timeout(DEADLINE_S):
        writer.write(head.encode())
        assert await reader.readline() == b"HTTP/1.1 401 Unauthorized\r\n"
        writer.close()


async def test_a_certificate_names_user_and_groups(master: Master, authority: Authority) -> None:
    code, text, _ = await ask(master, "/pods", pem=authority.client("curl"))
    assert code == 200
    assert SECRET in text
    assert (await ask(master, "/runningpods/", pem=authority.client("someone", "ops")))[0] == 200


async def test_the_right_authority_and_a_wrong_name(master: Master, authority: Authority) -> None:
    code, text, _ = await ask(master, "/pods", pem=authority.client("mallory"))
    assert (code, text) == (
        403,
        "Forbidden (user=mallory, verb=get, resource=nodes, subresource(s)=[pods proxy])\n",
    )
    code, text, _ = await ask(master, "/nosuch", method="POST", pem=authority.client("mallory"))
    assert (code, text) == (403, "Forbidden (user=mallory, verb=create, resource=nodes, subresource(s)=[proxy])\n")


async def test_a_certificate_without_a_name_is_nobody(master: Master, authority: Authority) -> None:
    assert (await ask(master, "/pods", pem=authority.client("", "ops")))[0] == 401


@pytest.mark.parametrize("wrong", ["authority", "expired", "server"])
async def test_a_certificate_that_does_not_hold_ends_its_handshake(
    master: Master, authority: Authority, tmp_path: Path, wrong: str
) -> None:
    pem = {
        "authority": lambda: Authority(tmp_path / "other").client("curl"),
        "expired": lambda: authority.client("curl", days=-1),
        "server": lambda: authority.server("curl"),
    }[wrong]()
    with pytest.raises(aiohttp.ClientError):
        await ask(master, "/pods", pem=pem)
    assert (await ask(master, "/pods", pem=authority.client("curl")))[0] == 200


async def test_tokens(master: Master) -> None:
    assert (await ask(master, "/pods", headers=bearer("xyz")))[0] == 200
    code, text, _ = await ask(master, "/pods", headers=bearer("abc"))
    assert (code, "user=prometheus" in text) == (403, True)
    assert SECRET not in text
    assert (await ask(master, "/healthz/ping", headers=bearer("abc")))[:2] == (200, "ok")


async def test_tokens_change_while_running(master: Master, settings: ServerSettings) -> None:
    write(settings.token_file, "new,admin,2,ops\n")
    assert (await ask(master, "/pods", headers=bearer("xyz")))[0] == 401
    assert (await ask(master, "/pods", headers=bearer("new")))[0] == 200
    write(settings.token_file, "new\n")
    assert (await ask(master, "/pods", headers=bearer("new")))[0] == 401


async def test_anonymous_where_it_is_allowed(tmp_path: Path, settings: ServerSettings) -> None:
    async with serving(tmp_path, settings, anonymous=True, rules=None) as master:
        assert (await ask(master, "/pods"))[0] == 200
        assert (await ask(master, "/pods", headers=bearer("wrong")))[0] == 401
    async with serving(tmp_path / "b", settings, anonymous=True) as master:
        code, text, _ = await ask(master, "/pods")
        assert (code, "user=system:anonymous" in text) == (403, True)


# --- what is where --------------------------------------------------------------------------------------------------


async def test_the_read_only_port(master: Master) -> None:
    for path in ("/pods", "/allocatedPods", f"/allocatedPods/default/{SECRET}", "/healthz/ping"):
        assert (await ask(master, path, port=Port.READ_ONLY))[0] == 200
    for path in (
        "/runningpods/",
        "/containerLogs/default/a/b",
        "/exec/default/a/b",
        "/run/x",
        "/logs/",
        "/debug/pprof/",
    ):
        answered = await ask(master, path, port=Port.READ_ONLY)
        assert (path, *answered[:2]) == (path, 405, "Debug endpoints are disabled.\n")
    for path in (
        "/configz",
        "/statusz",
        "/nosuch",
        "/api/v1/pods",
        "/rootlet/v1/workers",
        "/debug/flags/v",
        "/checkpoint/a/b/c",
    ):
        assert (await ask(master, path, port=Port.READ_ONLY))[:2] == (404, "404 page not found\n")
    code, text, headers = await ask(master, "/pods", port=Port.READ_ONLY, method="POST")
    assert (code, text, headers["Allow"]) == (405, "405: Method Not Allowed", "GET")


async def test_the_port_for_health(master: Master) -> None:
    assert (await ask(master, "/healthz", port=Port.HEALTHZ))[:2] == (200, "ok")
    assert (await ask(master, "/healthz?verbose", port=Port.HEALTHZ))[1] == "[+]ping ok\nhealthz check passed\n"
    for path in ("/metrics", "/healthz/syncloop", "/pods"):
        assert (await ask(master, path, port=Port.HEALTHZ))[:2] == (404, "404 page not found\n")


async def test_what_is_the_admin_sockets_alone(master: Master) -> None:
    for method, path in (("GET", "/api/v1/pods"), ("POST", "/rootlet/v1/stop"), ("POST", "/rootlet/v1/apply")):
        assert (await ask(master, path, method=method, headers=bearer("xyz")))[0] == 404
    assert not master.requests


async def test_without_debugging_handlers(tmp_path: Path, settings: ServerSettings) -> None:
    async with serving(tmp_path, settings, debugging=False) as master:
        assert (await ask(master, "/pods", headers=bearer("xyz")))[0] == 200
        answered = await ask(master, "/runningpods/", headers=bearer("xyz"))
        assert answered[:2] == (405, "Debug endpoints are disabled.\n")
        assert (await ask(master, "/runningpods/"))[0] == 401


async def test_a_missing_slash(master: Master) -> None:
    code, text, headers = await ask(master, "/runningpods?a=1", headers=bearer("xyz"))
    assert (code, headers["Location"]) == (307, "/runningpods/?a=1")
    assert text == '<a href="/runningpods/">Temporary Redirect</a>.\n\n'


# --- certificates of the server -------------------------------------------------------------------------------------


async def test_a_certificate_is_made_kept_and_private(tmp_path: Path, settings: ServerSettings) -> None:
    async with serving(tmp_path, settings) as master:
        first = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", master.ports[Port.SECURE]))
    assert modes(tmp_path / "pki") == [0o700, 0o600]
    async with serving(tmp_path, settings) as master:
        again = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", master.ports[Port.SECURE]))
        trusting = ssl.create_default_context(cadata=first)
        with socket.create_connection(("127.0.0.1", master.ports[Port.SECURE])) as plain:
            plain.setblocking(False)
            _, writer = await asyncio.open_connection(sock=plain, ssl=trusting, server_hostname="localhost")
            writer.close()
    assert first == again


async def test_given_files_are_read_again(
    tmp_path: Path, settings: ServerSettings, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.api_server.access.certificates.CHECK_PERIOD_S", 0.0)
    given = tmp_path / "server.pem"
    given.write_bytes(authority.server("one").read_bytes())

    async with serving(tmp_path, settings, cert_file=str(given), key_file=str(given)) as master:
        where = ("127.0.0.1", master.ports[Port.SECURE])

        async def shown() -> str:
            return await asyncio.to_thread(ssl.get_server_certificate, where)

        before = await shown()
        given.write_bytes(authority.server("two").read_bytes())
        after = await shown()
        assert after != before
        given.write_text("no certificate")
        assert await shown() == after
        assert (await ask(master, "/pods", headers=bearer("xyz")))[0] == 200


async def test_without_a_usable_certificate_everything_else_goes_on(
    tmp_path: Path, settings: ServerSettings, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.api_server.access.certificates.CHECK_PERIOD_S", 0.0)
    given = tmp_path / "server.pem"
    async with serving(tmp_path, settings, cert_file=str(given), key_file=str(given)) as master:
        with pytest.raises(aiohttp.ClientError):
            await ask(master, "/pods", headers=bearer("xyz"))
        assert (await ask(master, "/healthz", port=Port.HEALTHZ))[0] == 200
        assert (await master.get("/api/v1/pods"))[0] == 200
        given.write_bytes(authority.server().read_bytes())
        assert (await ask(master, "/pods", headers=bearer("xyz")))[0] == 200


async def test_the_oldest_version_and_the_suites(tmp_path: Path, settings: ServerSettings) -> None:
    suites = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)
    async with serving(tmp_path, settings, tls_cipher_suites=suites) as master:
        assert await negotiated(master, ssl.TLSVersion.TLSv1_2) == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2")
    async with serving(tmp_path / "b", settings, tls_min_version="VersionTLS13") as master:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await negotiated(master, ssl.TLSVersion.TLSv1_2)
        assert (await negotiated(master, ssl.TLSVersion.TLSv1_3))[1] == "TLSv1.3"


async def negotiated(master: Master, newest: ssl.TLSVersion) -> tuple[str, str]:
    context = client_context()
    context.maximum_version = newest
    _, writer = await asyncio.open_connection("127.0.0.1", master.ports[Port.SECURE], ssl=context)
    name, version, _ = writer.get_extra_info("cipher")
    writer.close()
    return name, version if newest is ssl.TLSVersion.TLSv1_3 else writer.get_extra_info("ssl_object").version()


# --- hostile connections --------------------------------------------------------------------------------------------


async def test_who_says_nothing_is_hung_up_on(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_guard, "HEAD_TIMEOUT_S", 0.3)
    monkeypatch.setattr(port_listener, "HANDSHAKE_TIMEOUT_S", 0.3)
    for port in Port:
        reader, writer = await asyncio.open_connection("127.0.0.1", master.ports[port])
        async with asyncio.timeout(DEADLINE_S):
            assert await reader.read() == b""
        writer.close()


async def test_a_request_that_never_ends_is_hung_up_on(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_guard, "HEAD_TIMEOUT_S", 0.3)
    reader, writer = await asyncio.open_connection("127.0.0.1", master.ports[Port.READ_ONLY])
    async with asyncio.timeout(DEADLINE_S):
        writer.write(b"GET /healthz/ping HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


async def test_who_does_not_come_again_is_hung_up_on(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_guard, "IDLE_TIMEOUT_S", 0.3)
    reader, writer = await asyncio.open_connection("127.0.0.1", master.ports[Port.READ_ONLY])
    writer.write(b"GET /healthz/ping HTTP/1.1\r\nHost: a\r\n\r\n")
    async with asyncio.timeout(DEADLINE_S):
        assert (await reader.read()).endswith(b"\r\n\r\nok")
    writer.close()


@pytest.mark.parametrize("line", [b"X-Long: " + b"a" * 4000 + b"\r\n", b"X: y\r\n", b"X" * 4000])
async def test_a_huge_head_is_refused(master: Master, line: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", master.ports[Port.READ_ONLY])
    writer.write(b"GET /healthz/ping HTTP/1.1\r\nHost: a\r\n")
    async with asyncio.timeout(DEADLINE_S):
        with contextlib.suppress(ConnectionError):
            for _ in range(2 * MAX_HEAD_BYTES // len(line)):
                writer.write(line)
                await writer.drain()
            answer = await reader.read()
            assert answer.split(b" ")[1] in (b"400", b"431")
    writer.close()
    assert (await ask(master, "/healthz/ping", port=Port.READ_ONLY))[0] == 200


async def test_who_does_not_read_is_hung_up_on(
    tmp_path: Path, settings: ServerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_guard, "IDLE_TIMEOUT_S", 0.2)
    large = {"a": "x" * 3_000_000}
    async with api_server(tmp_path, server=settings) as master:
        master.ready(*(pod_changed(number, f"large-{number}", annotations=large) for number in range(1, 7)))
        reader, writer = await asyncio.open_connection("127.0.0.1", master.ports[Port.READ_ONLY], limit=1024)
        async with asyncio.timeout(DEADLINE_S):
            writer.write(b"GET /pods HTTP/1.1\r\nHost: a\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            wanted = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            await asyncio.sleep(1.0)  # Our loop is the server's: its timer is due before this one.
            received = 0
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(1 << 20):
                    received += len(data)
        writer.close()
        assert received < wanted


async def test_at_most_so_many_connections_and_the_others_wait(
    tmp_path: Path, settings: ServerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_listener, "MAX_CONNECTIONS", 3)
    async with serving(tmp_path, settings) as master:
        async with contextlib.AsyncExitStack() as stack:
            held = []
            for _ in range(6):
                _, writer = await asyncio.open_connection("127.0.0.1", master.ports[Port.READ_ONLY])
                stack.callback(writer.close)
                held.append(writer)
            late = asyncio.create_task(ask(master, "/healthz/ping", port=Port.READ_ONLY))
            # The admin socket and the other ports are none of their business.
            assert (await master.get("/api/v1/pods"))[0] == 200
            assert (await ask(master, "/pods", headers=bearer("xyz")))[0] == 200
            assert not late.done()
        assert (await late)[0] == 200


async def test_what_is_no_tls_on_the_secure_port(master: Master) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", master.ports[Port.SECURE])
    writer.write(b"GET /pods HTTP/1.1\r\nHost: a\r\n\r\n")
    async with asyncio.timeout(DEADLINE_S):
        with contextlib.suppress(ConnectionError):
            assert SECRET.encode() not in await reader.read()
    writer.close()
    assert (await ask(master, "/pods", headers=bearer("xyz")))[0] == 200


async def test_it_leaves_when_nobody_comes_to_any_port(tmp_path: Path, settings: ServerSettings) -> None:
    async with api_server(tmp_path, server=settings, idle_timeout_s=0.2) as master:
        master.ready()
        assert master.server is not None
        server = master.server
        await eventually(server.done, "it has left")
        assert server.result() == 5
