"""Streams of a Podman service that answers anything."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ipc.wire.duplex import Duplex
from tests.servers.local_servers import answering, handling
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.streams import PodmanStreams
from workers.libpod.upgrade import MAX_REFUSAL_BYTES, Refused, upgrade

GONE = b"HTTP/1.1 404 Not Found\r\n"
SAYS = b'\r\n\r\n{"message":"gone"}'


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (b"\r\n\r\n", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"HTTP/1.1\r\n\r\n", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"HTTP/1.1 " + b"9" * 5000 + b"\r\n\r\n", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"HTTP/1.1 2\xb2\xb2 OK\r\n\r\n", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"\xff" * 20_000, ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"HTTP/1.1 101 UPGRADED\r\nX: " + b"x" * 20_000, ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"HTTP/1.1 101 UPGRADED\r\nX: y", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"HTTP/1.1 101 UPGRADED\r\n folded\r\n\r\n", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"", ErrorKind.UNAVAILABLE, "no HTTP"),
        (GONE + b"Content-Length: " + b"9" * 5000 + SAYS, ErrorKind.UNAVAILABLE, "no HTTP"),
        (GONE + b"Content-Length: no" + SAYS, ErrorKind.UNAVAILABLE, "no HTTP"),
        (GONE + b"Content-Length: -1" + SAYS, ErrorKind.UNAVAILABLE, "no HTTP"),
        (GONE + b"Content-Length: 1\r\nContent-Length: 2" + SAYS, ErrorKind.UNAVAILABLE, "no HTTP"),
        (GONE + b"Content-Length: 18" + SAYS, ErrorKind.NOT_FOUND, "gone"),
        (GONE + b"Content-Length: 9999" + SAYS, ErrorKind.NOT_FOUND, ""),
        (GONE + b"Content-Type: text/plain" + SAYS, ErrorKind.NOT_FOUND, "gone"),
        (GONE + b"Transfer-Encoding: chunked\r\n\r\n12\r\n" + SAYS[4:] + b"\r\n0\r\n\r\n", ErrorKind.NOT_FOUND, "gone"),
        (GONE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", ErrorKind.NOT_FOUND, ""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + GONE + b"Content-Length: 18" + SAYS, ErrorKind.NOT_FOUND, "gone"),
        (b"HTTP/1.1 302 Found\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", ErrorKind.INTERNAL, ""),
    ],
)
async def test_what_is_no_stream(tmp_path: Path, answer: bytes, kind: ErrorKind, words: str) -> None:
    streams = PodmanStreams(str(tmp_path / "podman.sock"))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "podman.sock"))
    async with handling(answering(answer), sock=listening):
        with pytest.raises(RuntimeCallError) as failed:
            await streams.start_exec("id", tty=False, size=None)
    assert failed.value.kind is kind
    assert words in failed.value.message


async def test_a_refusal_without_end_is_cut_off(tmp_path: Path) -> None:
    """And nothing is read beyond the bound."""
    answer = GONE + b"\r\n" + b"x" * (3 * MAX_REFUSAL_BYTES)
    async with podman_that_answers(answer, tmp_path) as connection:
        with pytest.raises(Refused) as refused:
            await upgrade(connection, "/x", b"{}")
    assert len(refused.value.body) == MAX_REFUSAL_BYTES


@pytest.mark.parametrize("head", [b"HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
@pytest.mark.parametrize("rest", [b"", b"\r\n\r\nHTTP/1.1 404\r\n\r\n", b"\x01\0\0\0\0\0\0\x02ok"])
async def test_what_follows_the_head_is_left_as_it_is(tmp_path: Path, head: bytes, rest: bytes) -> None:
    async with podman_that_answers(head + rest, tmp_path) as connection:
        got = await upgrade(connection, "/x", b"{}")
        while data := await connection.read():
            got += data
    assert got == rest


@contextlib.asynccontextmanager
async def podman_that_answers(answer: bytes, directory: Path) -> AsyncIterator[Duplex]:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(directory / "podman.sock"))
    async with handling(answering(answer), sock=listening):
        connected = socket.socket(socket.AF_UNIX)
        connected.connect(str(directory / "podman.sock"))
        connection = Duplex(connected)
        try:
            yield connection
        finally:
            connection.close()
