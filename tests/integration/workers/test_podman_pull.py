"""A pull against services that are slow, break off, or are told who we are: real sockets, podman-py's real client."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from pathlib import Path
from socket import socket as Socket

import pytest

from tests.support.libpod_service import service
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.auth import HEADER
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.timeout(30)

IMAGE = "quay.io/a/b:1"
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
DEADLINE_S = 30.0


def line(words: str) -> bytes:
    return chunk({"stream": f"{words}\n"})


def report(**fields: object) -> bytes:
    """The last line."""
    return chunk(fields) + b"0\r\n\r\n"


def chunk(fields: dict[str, object]) -> bytes:
    body = json.dumps(fields).encode() + b"\n"
    return b"%x\r\n%s\r\n" % (len(body), body)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "podman.sock"


async def pull(path: Path, heard: list[str], **options: object) -> str:
    runtime = PodmanRuntime(str(path), "one", **options)  # type: ignore[arg-type]
    try:
        return await runtime.pull_image(IMAGE, heard.append)
    finally:
        await runtime.close()


async def failure(path: Path, **options: object) -> RuntimeCallError:
    with pytest.raises(RuntimeCallError) as caught:
        await pull(path, [], **options)
    return caught.value


async def test_progress_is_heard_while_it_lasts(path: Path) -> None:
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(connection: Socket, number: int) -> bool:
        connection.sendall(HEAD + line("Trying to pull") + line("Copying blob"))
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(DEADLINE_S)
        connection.sendall(report(images=["aed7"], id="aed7"))
        return True

    heard: list[str] = []
    with service(path, slow) as requests:
        pulling = asyncio.create_task(pull(path, heard))
        await begun.wait()
        async with asyncio.timeout(DEADLINE_S):
            while len(heard) < 2:  # noqa: ASYNC110 - another thread's state
                await asyncio.sleep(0.01)
        go_on.set()
        assert await pulling == "aed7"
    assert heard == ["Trying to pull", "Copying blob"]
    assert requests == ["POST /v4.0.0/libpod/images/pull?reference=quay.io%2Fa%2Fb%3A1&policy=always"]


async def test_a_connection_that_breaks_is_no_fault_of_the_registry(path: Path) -> None:
    def break_off(connection: Socket, number: int) -> bool:
        connection.sendall(HEAD + line("Copying blob"))
        return False

    with service(path, break_off):
        assert (await failure(path)).kind is ErrorKind.UNAVAILABLE
    assert (await failure(path)).kind is ErrorKind.UNAVAILABLE, "nobody listens"


async def test_a_pull_has_a_deadline_and_cancelling_it_closes_the_connection(path: Path) -> None:
    closed = threading.Semaphore(0)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless(connection: Socket, number: int) -> bool:
        connection.sendall(HEAD + line("Copying blob"))
        loop.call_soon_threadsafe(begun.set)
        while connection.recv(100):
            pass
        closed.release()
        return False

    with service(path, endless):
        late = await failure(path, pull_timeout_s=0.2)
        assert (late.kind, late.message) == (ErrorKind.TIMEOUT, "not done within 0.2 s")
        assert closed.acquire(timeout=DEADLINE_S)
        begun.clear()
        runtime = PodmanRuntime(str(path), "one")
        pulling = asyncio.create_task(runtime.pull_image(IMAGE, lambda words: None))
        await begun.wait()
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling
        assert await asyncio.to_thread(closed.acquire, timeout=DEADLINE_S)
        await runtime.close()


async def test_a_registry_s_refusal_comes_in_its_own_words(path: Path) -> None:
    def refuse(connection: Socket, number: int) -> bool:
        connection.sendall(HEAD + report(error="manifest unknown"))
        return True

    with service(path, refuse):
        refused = await failure(path)
    assert (refused.kind, refused.message) == (ErrorKind.PULL, "manifest unknown")


async def test_the_logins_of_a_file_go_along(path: Path, tmp_path: Path) -> None:
    heads: list[str] = []

    def answer(connection: Socket, number: int) -> bool:
        connection.sendall(HEAD + report(images=["aed7"], id="aed7"))
        return True

    logins = tmp_path / "auth.json"
    token = base64.b64encode(b"me:hush").decode()
    with service(path, answer, heads):
        logins.write_text(json.dumps({"auths": {"quay.io": {"auth": token}}}))
        assert await pull(path, [], auth_file=str(logins)) == "aed7"
        assert await pull(path, []) == "aed7"
    sent = [[word for word in head.split("\r\n") if word.startswith(HEADER)] for head in heads]
    assert [len(found) for found in sent] == [1, 0]
    told = json.loads(base64.urlsafe_b64decode(sent[0][0].partition(": ")[2]))
    assert told == {"quay.io": {"username": "me", "password": "hush"}}


async def test_logins_that_cannot_be_read_fail_the_pull(path: Path, tmp_path: Path) -> None:
    failed = await failure(path, auth_file=str(tmp_path / "absent"))
    assert failed.kind is ErrorKind.PULL
    assert failed.message == f"cannot read the registry logins in {tmp_path}/absent: No such file or directory"
