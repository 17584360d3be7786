"""Requests whose bytes are no text, and bodies that wait: refused in words, and nothing is logged as a fault."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from ipc.link.wire.server_settings import Port, ServerSettings
from tests.support.api_server import DEADLINE_S, Master, api_server, container_status, pod_changed, status_of
from tests.support.podman_streams import PodmanEnd
from tests.support.source_master import SourceMaster, real_sources

HALF: Final = "\\ud800"
"""Half of a surrogate pair, as JSON writes it."""
POD: Final = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "app", "image": "web:1"}]},
    }
)
KEY: Final = base64.b64encode(bytes(16)).decode()
CONTAINER_ID: Final = "a" * 64
CONTINUE: Final = b"HTTP/1.1 100 Continue"


@pytest.fixture
async def sources(master: Master, tmp_path: Path, memory: Path) -> AsyncIterator[SourceMaster]:
    async with real_sources(master, tmp_path, memory) as found:
        yield found


async def answered(master: Master, request: bytes) -> tuple[int, bytes]:
    """Code and all that comes, with it."""
    reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
    return await _conversation(reader, writer, request)


async def answered_at(master: Master, port: Port, request: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", master.ports[port])
    return await _conversation(reader, writer, request)


async def _conversation(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, bytes]:
    async with asyncio.timeout(DEADLINE_S):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        body = await reader.readexactly(int(length[1])) if length else b""
        writer.close()
        await writer.wait_closed()
    return int(head.split()[1]), head + body


def sent(method: str, target: bytes | str, *headers: bytes | str, body: bytes = b"") -> bytes:
    lines: list[bytes | str] = [f"Content-Length: {len(body)}"] if body else []
    lines = [b" ".join((method.encode(), _bytes(target), b"HTTP/1.1")), "Host: rootlet", "Connection: close", *lines]
    return b"\r\n".join((*map(_bytes, (*lines, *headers)), b"", b"")) + body


def _bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


# --- lone surrogates ------------------------------------------------------------------------------------------------


def manifest(metadata: str = "", container: str = "") -> str:
    return POD.replace('"name": "web"', f'"name": "web"{metadata}').replace('"web:1"', f'"web:1"{container}')


MANIFESTS: Final = {
    "a value of an annotation": manifest(f', "annotations": {{"a": "{HALF}"}}'),
    "its key": manifest(f', "annotations": {{"{HALF}": "a"}}'),
    "a label": manifest(f', "labels": {{"a": "{HALF}"}}'),
    "a name": POD.replace('"web"', f'"{HALF}"'),
    "a namespace": manifest(f', "namespace": "{HALF}"'),
    "a variable": manifest(container=f', "env": [{{"name": "A", "value": "{HALF}"}}]'),
    "an unknown field": manifest(container=f', "{HALF}": 1'),
    "a kind": f'{{"kind": "{HALF}"}}',
    "a list of items": f'{{"apiVersion": "v1", "kind": "PodList", "items": ["{HALF}"]}}',
    "another kind": f'{{"apiVersion": "v1", "kind": "ConfigMap", "data": {{"a": "{HALF}"}}}}',
    "no object": f'{{"{HALF}": [',
}


@pytest.mark.parametrize("path", ["/rootlet/v1/apply", "/containers"])
@pytest.mark.parametrize("body", MANIFESTS.values(), ids=MANIFESTS)
async def test_half_a_pair_in_a_manifest(
    master: Master, sources: SourceMaster, caplog: pytest.LogCaptureFixture, path: str, body: str
) -> None:
    code, text = await answered(master, sent("POST", path, body=body.encode()))
    assert code in (400, 422), text
    assert errors(caplog) == []


PATCHES: Final = [
    ("strategic", f'{{"metadata": {{"annotations": {{"a": "{HALF}"}}}}}}'),
    ("strategic", f'{{"metadata": {{"annotations": {{"{HALF}": "a"}}}}}}'),
    ("strategic", f'{{"{HALF}": 1}}'),
    (
        "strategic",
        f'{{"spec": {{"$setElementOrder/containers": [{{"name": "{HALF}"}}], "containers": [{{"name": "a"}}]}}}}',
    ),
    ("strategic", f'{{"spec": {{"$patch": "{HALF}"}}}}'),
    ("merge", f'{{"metadata": {{"labels": {{"a": "{HALF}"}}}}}}'),
    ("merge", f'{{"metadata": {{"name": "{HALF}"}}}}'),
    ("json", f'[{{"op": "add", "path": "/metadata/labels", "value": {{"a": "{HALF}"}}}}]'),
    ("json", f'[{{"op": "remove", "path": "/{HALF}"}}]'),
    ("json", f'[{{"op": "{HALF}", "path": "/a"}}]'),
    ("json", f'[{{"op": "copy", "from": "/{HALF}", "path": "/a"}}]'),
    ("json", f'[{{"op": "test", "path": "/metadata/name", "value": "{HALF}"}}]'),
]


@pytest.mark.parametrize(("patch_type", "body"), PATCHES)
async def test_half_a_pair_in_a_patch(
    master: Master, sources: SourceMaster, caplog: pytest.LogCaptureFixture, patch_type: str, body: str
) -> None:
    assert (await answered(master, sent("POST", "/rootlet/v1/apply", body=POD.encode())))[0] == 200
    target = f"/rootlet/v1/patch?kind=Pod&namespace=default&name=web&type={patch_type}"
    code, text = await answered(master, sent("POST", target, body=body.encode()))
    assert code in (400, 422), text
    assert errors(caplog) == []
    (applied,) = [holder.pod for holder in sources.sources._config.desired()]
    assert (applied.metadata.name, applied.metadata.labels) == ("web", {})


# --- bytes in the head of a request ---------------------------------------------------------------------------------

WEBSOCKET: Final = ("Connection: Upgrade", "Upgrade: websocket")
EXEC: Final = "/api/v1/namespaces/default/pods/web/exec?command=id&stdout=1&container=app"
HEADS: Final = {
    "a key that is no base64": sent("GET", EXEC, *WEBSOCKET, "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: !!!"),
    "a key of other letters": sent(
        "GET", EXEC, *WEBSOCKET, "Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: \xc3\xa4\xff" + KEY.encode()
    ),
    "a short key": sent("GET", EXEC, *WEBSOCKET, "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA"),
    "no key": sent("GET", EXEC, *WEBSOCKET, "Sec-WebSocket-Version: 13"),
    "a version": sent("GET", EXEC, *WEBSOCKET, b"Sec-WebSocket-Version: \xff", f"Sec-WebSocket-Key: {KEY}"),
    "a protocol": sent(
        "GET",
        EXEC,
        *WEBSOCKET,
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {KEY}",
        b"Sec-WebSocket-Protocol: \xff",
    ),
    "an upgrade": sent("GET", EXEC, "Connection: Upgrade", b"Upgrade: web\xffsocket"),
    "no connection": sent("GET", EXEC, b"Connection: \xff", "Upgrade: websocket", f"Sec-WebSocket-Key: {KEY}"),
    "a protocol of SPDY": sent(
        "POST", EXEC, "Connection: Upgrade", "Upgrade: SPDY/3.1", b"X-Stream-Protocol-Version: \xff"
    ),
    "a path": sent("GET", b"/api/v1/namespaces/default/pods/\xff"),
    "a path in per cent": sent("GET", "/api/v1/namespaces/default/pods/%ff"),
    "half a pair in a path": sent("GET", "/api/v1/namespaces/default/pods/%ed%a0%80"),
    "half a pair in an unknown path": sent("GET", "/%ed%a0%80"),
    "half a pair in a query": sent("GET", "/api/v1/pods?fieldSelector=%ed%a0%80"),
    "a selector of bytes": sent("GET", b"/api/v1/pods?labelSelector=\xff"),
    "a name of a file": sent("POST", "/rootlet/v1/apply?file=%ed%a0%80&verb=%ed%a0%80", body=b"{"),
    "a kind": sent("POST", "/rootlet/v1/patch?kind=%ff&name=%ed%a0%80&type=%ff", body=b"{}"),
    "a media type": sent("PATCH", "/api/v1/namespaces/default/pods/web", b"Content-Type: \xff", body=b"{}"),
    "an expectation": sent("GET", "/version", b"Expect: \xff"),
    "a length": sent("POST", "/rootlet/v1/apply", b"Content-Length: \xff"),
}


@pytest.mark.parametrize("request_bytes", HEADS.values(), ids=HEADS)
async def test_bytes_that_are_no_text(
    master: Master, podman: PodmanEnd, caplog: pytest.LogCaptureFixture, request_bytes: bytes
) -> None:
    running = status_of(
        phase="Running", containerStatuses=[container_status("app", containerID=f"podman://{CONTAINER_ID}")]
    )
    master.ready(pod_changed(1, "web", status=running))
    code, text = await answered(master, request_bytes)
    assert 400 <= code < 500, text
    assert errors(caplog) == []


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


# --- clients that wait with their bodies ----------------------------------------------------------------------------

EXPECT: Final = "Expect: 100-continue"


def waiting(path: str, *headers: str, method: str = "POST", size: int = len(POD)) -> bytes:
    """The head of a request whose body is still to come."""
    return sent(method, path, EXPECT, f"Content-Length: {size}", *headers)


async def test_a_client_goes_on_when_its_body_is_wanted(master: Master, sources: SourceMaster) -> None:
    reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
    async with asyncio.timeout(DEADLINE_S):
        writer.write(waiting("/rootlet/v1/apply"))
        assert await reader.readuntil(b"\r\n\r\n") == CONTINUE + b"\r\n\r\n"
        writer.write(POD.encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
        writer.close()


@pytest.mark.parametrize(
    ("path", "method", "size", "code"),
    [
        ("/nope", "POST", 10, 404),
        ("/rootlet/v1/apply", "GET", 10, 405),
        ("/rootlet/v1/apply?verb=nope", "POST", 10, 400),
        ("/rootlet/v1/apply", "POST", 1 << 30, 413),
        ("/rootlet/v1/patch?kind=nope", "POST", 10, 400),
        ("/version", "GET", 10, 200),
        ("/rootlet/v1/pods/default/nope/files?path=/x", "PUT", 10, 404),
    ],
)
async def test_no_client_goes_on_for_nothing(master: Master, path: str, method: str, size: int, code: int) -> None:
    """The connection closes then: nobody knows whether a body or another request would come."""
    master.ready()
    found, text = await answered(master, waiting(path, method=method, size=size).replace(b"Connection: close\r\n", b""))
    assert found == code, text
    assert b"connection: close" in text.lower()


async def test_access_is_decided_first(tmp_path: Path) -> None:
    settings = ServerSettings(ports=(Port.READ_ONLY,))
    async with api_server(tmp_path, server=settings) as master:
        master.ready()
        for path in ("/containers", "/nope"):
            code, text = await answered_at(master, Port.READ_ONLY, waiting(path))
            assert (code, CONTINUE in text) == (404, False), text
