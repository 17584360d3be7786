"""Streams of a Podman service that answers anything."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from ipc.link.wire.stream_channels import Channel
from tests.support.servers.local_servers import answering, handling
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.streams import MAX_ANSWER_BYTES, Piece, PodmanStreams

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
    async with handling(answering(answer), sock=listening(tmp_path)):
        with pytest.raises(RuntimeCallError) as failed:
            await PodmanStreams(str(tmp_path / "podman.sock")).start_exec("id", tty=False, size=None)
    assert failed.value.kind is kind
    assert words in failed.value.message


async def test_a_refusal_without_end_is_cut_off(tmp_path: Path) -> None:
    answer = GONE + b"\r\n" + b"x" * (3 * MAX_ANSWER_BYTES)
    async with handling(answering(answer), sock=listening(tmp_path)):
        with pytest.raises(RuntimeCallError) as failed:
            await PodmanStreams(str(tmp_path / "podman.sock")).start_exec("id", tty=False, size=None)
    assert failed.value.kind is ErrorKind.NOT_FOUND


UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
HIJACKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n"


@pytest.mark.parametrize("head", [UPGRADED, HIJACKED, b"HTTP/1.1 100 Continue\r\n\r\n" + UPGRADED])
@pytest.mark.parametrize("rest", [b"", b"\r\n\r\nHTTP/1.1 404\r\n\r\n", b"\x01\0\0\0\0\0\0\x02ok"])
async def test_what_follows_the_head_is_left_as_it_is(tmp_path: Path, head: bytes, rest: bytes) -> None:
    async with handling(answering(head + rest), sock=listening(tmp_path)):
        streams = await PodmanStreams(str(tmp_path / "podman.sock")).start_exec("id", tty=True, size=None)
        got = [piece async for piece in streams.output()]
        streams.close()
    assert b"".join(piece.data for piece in got) == rest
    assert all(piece == Piece(Channel.STDOUT, piece.data) for piece in got)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK", b"HTTP/1.1 204 N\r\n\r\n"])
async def test_an_answer_with_an_end_of_its_own_is_no_stream(tmp_path: Path, answer: bytes) -> None:
    async with handling(answering(answer), sock=listening(tmp_path)):
        with pytest.raises(RuntimeCallError):
            await PodmanStreams(str(tmp_path / "podman.sock")).attach("id", stdin=True, tty=False)


def listening(directory: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(directory / "podman.sock"))
    return sock


RESET = b"Error: read unixpacket @->/proc/self/fd/15/attach: read: connection reset by peer\n"
NOT_FOUND = b"Error: crun: executable file `no` not found: OCI runtime attempted to invoke a command\n"


def frame(data: bytes, stream: int = 2) -> bytes:
    return bytes((stream, 0, 0, 0)) + len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("pieces", "tty", "said"),
    [
        ([frame(RESET)], False, b""),
        ([frame(b"out\n", 1), frame(RESET)], False, b"out\n"),
        ([frame(NOT_FOUND), frame(RESET)], False, NOT_FOUND),
        ([frame(RESET.replace(b"read", b"write"))], False, b""),
        ([frame(RESET.replace(b"connection reset by peer", b"broken pipe"))], False, b""),
        ([frame(RESET)[:20], frame(RESET)[20:60], frame(RESET)[60:]], False, b""),
        ([b"typed", RESET], True, b"typed"),
        ([b"typed" + RESET], True, b"typed"),
        # Words of a process itself:
        ([frame(RESET), frame(b"more\n")], False, RESET + b"more\n"),
        ([frame(b"it says " + RESET)], False, b"it says " + RESET),
        ([frame(RESET + b"more\n")], False, RESET + b"more\n"),
        ([frame(RESET.replace(b"unixpacket", b"tcp"))], False, RESET.replace(b"unixpacket", b"tcp")),
        ([RESET, b"more"], True, RESET + b"more"),
        ([frame(b"Error: read unixpacket " * 40)], False, b"Error: read unixpacket " * 40),
    ],
)
async def test_podmans_words_about_unread_input_are_nobodys_output(
    tmp_path: Path, pieces: list[bytes], tty: bool, said: bytes
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(UPGRADED)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    async with handling(answer, sock=listening(tmp_path)):
        streams = await PodmanStreams(str(tmp_path / "podman.sock")).attach("id", stdin=True, tty=tty)
        got = [piece async for piece in streams.output()]
        streams.close()
    assert b"".join(piece.data for piece in got) == said
