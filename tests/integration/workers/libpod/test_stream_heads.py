"""Heads of libpod's streams, on a socket."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.servers.local_servers import answering, handling
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.streams import PodmanStreams


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (b"\r\n\r\n", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"HTTP/1.1\r\n\r\n", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"HTTP/1.1 " + b"9" * 5000 + b"\r\n\r\n", ErrorKind.UNAVAILABLE, "no HTTP"),
        (b"\xff" * 20_000, ErrorKind.UNAVAILABLE, "no answer"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: " + b"9" * 5000 + b'\r\n\r\n{"message":"gone"}', None, "gone"),
        (b'HTTP/1.1 404 Not Found\r\nContent-Length: no\r\n\r\n{"message":"gone"}', None, "gone"),
    ],
)
async def test_a_head_that_is_none(tmp_path: Path, answer: bytes, kind: ErrorKind | None, words: str) -> None:
    streams = PodmanStreams(str(tmp_path / "podman.sock"))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "podman.sock"))
    async with handling(answering(answer), sock=listening):
        with pytest.raises(RuntimeCallError) as failed:
            await streams.start_exec("id", tty=False, size=None)
    assert kind in (None, failed.value.kind)
    assert words in failed.value.message
