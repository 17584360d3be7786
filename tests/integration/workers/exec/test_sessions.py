"""Commands in containers against services that misbehave: real sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from tests.support.libpod_service import Answer, client, service
from workers.exec.sessions import MAX_FRAMED_BYTES
from workers.kubecontainer.runtime import ErrorKind, ExecResult, RuntimeCallError
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.timeout(30)

RUNNING = b'{"Id":"c1","State":{"Status":"running","Pid":4,"ConmonPid":0}}'
"""Without a monitor on this host: a command can only go through the service."""
CREATED = b'{"Id":"e1"}'
ENDED = b'{"ID":"e1","Running":false,"ExitCode":4,"Pid":0}'
RUNS = b'{"ID":"e1","Running":true,"ExitCode":0,"Pid":0}'
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n"
HI = b"\x01\x00\x00\x00\x00\x00\x00\x03hi\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


def whole(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def script(*answers: bytes | None) -> Answer:
    """One answer after the other; each but a whole one ends its connection. None is silence."""

    def answer(connection: socket.socket, number: int) -> bool:
        said = answers[number - 1]
        if said is None:
            connection.recv(1)
            return False
        connection.sendall(said)
        return b"Content-Length" in said

    return answer


async def run(runtime: PodmanRuntime, timeout_s: float = 10.0) -> ExecResult:
    return await runtime.exec_container("c1", ["true"], timeout_s)


async def kind_of_failure(runtime: PodmanRuntime, timeout_s: float = 10.0) -> ErrorKind:
    with pytest.raises(RuntimeCallError) as caught:
        await run(runtime, timeout_s)
    return caught.value.kind


async def test_a_command_is_created_started_read_and_asked_for_its_exit_code(path: Path) -> None:
    with service(path, script(whole(RUNNING), whole(CREATED), STREAM + HI, whole(ENDED))) as requests:
        async with client(path) as runtime:
            assert await run(runtime) == ExecResult(exit_code=4, output=b"hi\n")
    assert [request.rpartition("/libpod/")[2] for request in requests] == [
        "containers/c1/json",
        "containers/c1/exec",
        "exec/e1/start",
        "exec/e1/json",
    ]


async def test_how_a_container_is_reached_is_asked_once(path: Path) -> None:
    session = (whole(CREATED), STREAM + HI, whole(ENDED))
    with service(path, script(whole(RUNNING), *session, *session)) as requests:
        async with client(path) as runtime:
            assert await run(runtime) == await run(runtime)
    assert len(requests) == 7


@pytest.mark.parametrize("state", ["created", "exited", "paused"])
async def test_a_container_that_does_not_run(path: Path, state: str) -> None:
    with service(path, script(whole(RUNNING.replace(b"running", state.encode())))):
        async with client(path) as runtime:
            assert await kind_of_failure(runtime) is ErrorKind.WRONG_STATE


async def test_nobody_answers(path: Path) -> None:
    async with client(path) as runtime:
        assert await kind_of_failure(runtime) is ErrorKind.UNAVAILABLE


async def test_a_container_that_ended_in_between(path: Path) -> None:
    refusal = whole(b'{"cause":"cannot exec in a container that is not running","response":409}', "409 Conflict")
    with service(path, script(whole(RUNNING), whole(CREATED), refusal)):
        async with client(path) as runtime:
            assert await kind_of_failure(runtime) is ErrorKind.WRONG_STATE


async def test_a_service_that_dies_over_it_leaves_nothing_to_believe(path: Path) -> None:
    """The end of the answer looks like the end of the command; the session says that it is none."""
    with service(path, script(whole(RUNNING), whole(CREATED), STREAM + HI, whole(RUNS))):
        async with client(path) as runtime:
            assert await kind_of_failure(runtime) is ErrorKind.UNAVAILABLE


async def test_a_command_that_says_nothing_ends_at_the_deadline(path: Path) -> None:
    with service(path, script(whole(RUNNING), whole(CREATED), None, whole(RUNS))) as requests:
        async with client(path) as runtime:
            assert await kind_of_failure(runtime, 0.3) is ErrorKind.TIMEOUT
    assert requests[-1].endswith("exec/e1/json"), "which process it was"


async def test_who_gives_up_closes_the_connection(path: Path) -> None:
    closed = threading.Event()

    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall({1: whole(RUNNING), 2: whole(CREATED)}.get(number, STREAM + HI))
        if number < 3:
            return True
        connection.settimeout(10)
        if not connection.recv(1):
            closed.set()
        return False

    with service(path, answer) as requests:
        async with client(path) as runtime:
            command = asyncio.ensure_future(run(runtime))
            async with asyncio.timeout(10):
                while len(requests) < 3:  # noqa: ASYNC110 - another thread's state
                    await asyncio.sleep(0.01)
            command.cancel()
            with pytest.raises(asyncio.CancelledError):
                await command
            assert await asyncio.to_thread(closed.wait, 10)


async def test_of_a_long_output_the_head_is_kept_and_the_end_waited_for(path: Path) -> None:
    many = 40 * HI * 1024

    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall({1: whole(RUNNING), 2: whole(CREATED), 3: STREAM + many}.get(number, whole(ENDED)))
        return number != 3

    with service(path, answer):
        async with client(path) as runtime:
            result = await run(runtime)
    assert (result.exit_code, result.limited) == (4, True)
    assert 0 < len(result.output) < MAX_FRAMED_BYTES
