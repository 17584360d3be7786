"""The transport against services that misbehave: real sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.support.libpod_service import OK, always_ok, client, failure, service
from workers.kubecontainer.runtime import ErrorKind
from workers.libpod.client import CallLimits
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "podman.sock"


async def test_no_socket_is_unavailable(path: Path) -> None:
    async with client(path) as runtime:
        for call in (runtime.version, lambda: runtime.start_container("x")):
            error = await failure(call)
            assert error.kind is ErrorKind.UNAVAILABLE
            assert "No such file" in error.message


async def test_a_socket_nobody_listens_on_is_unavailable(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        async with client(path) as runtime:
            assert (await failure(lambda: runtime.start_container("x"))).kind is ErrorKind.UNAVAILABLE


async def test_silence_ends_at_the_deadline(path: Path) -> None:
    release = threading.Event()
    with service(path, lambda connection, number: release.wait(60) and False) as requests:
        async with client(path, request_timeout_s=0.2) as runtime:
            began = time.perf_counter()
            for call in (runtime.version, lambda: runtime.start_container("x")):
                error = await failure(call)
                assert (error.kind, error.message) == (ErrorKind.TIMEOUT, "no answer within 0.2 s")
            assert time.perf_counter() - began < 20
        release.set()
        assert requests.count("POST /v4.0.0/libpod/containers/x/start") == 1


async def test_half_an_answer_ends_at_the_deadline(path: Path) -> None:
    release = threading.Event()

    def half(connection: socket.socket, number: int) -> bool:
        connection.sendall(OK[:-1])
        return release.wait(10) and False

    with service(path, half):
        async with client(path, request_timeout_s=0.2) as runtime:
            assert (await failure(runtime.version)).kind is ErrorKind.TIMEOUT
        release.set()


async def test_a_get_is_repeated_once_when_its_connection_breaks(path: Path) -> None:
    def first_breaks(connection: socket.socket, number: int) -> bool:
        return number > 1 and always_ok(connection, number)

    with service(path, first_breaks) as requests:
        async with client(path) as runtime:
            assert await runtime.version() == "4.3.1"
            assert requests == ["GET /v4.0.0/libpod/_ping"] * 2
            assert runtime.counts().errors == 0


async def test_a_get_whose_connection_breaks_twice_is_unavailable(path: Path) -> None:
    with service(path, lambda connection, number: False) as requests:
        async with client(path) as runtime:
            assert (await failure(runtime.version)).kind is ErrorKind.UNAVAILABLE
        assert len(requests) == 2


async def test_a_mutation_whose_connection_breaks_is_unknown_and_not_repeated(path: Path) -> None:
    with service(path, lambda connection, number: False) as requests:
        async with client(path) as runtime:
            assert (await failure(lambda: runtime.start_container("x"))).kind is ErrorKind.TIMEOUT
        assert requests == ["POST /v4.0.0/libpod/containers/x/start"]


async def test_a_service_that_restarts_between_two_calls_is_not_noticed(path: Path) -> None:
    async with client(path) as runtime:
        with service(path, lambda connection, number: always_ok(connection, number) and False):
            assert await runtime.version() == "4.3.1"
        with service(path, always_ok):
            assert await runtime.version() == "4.3.1"


async def test_nonsense_is_an_error_of_its_own(path: Path) -> None:
    with service(path, always_ok):
        async with client(path) as runtime:
            error = await failure(runtime.list_containers)
            assert error.kind is ErrorKind.INTERNAL
            assert "another shape" in error.message


async def test_what_is_no_http_is_unavailable(path: Path) -> None:
    def garbage(connection: socket.socket, number: int) -> bool:
        connection.sendall(b"\x00\x01garbage\r\n\r\n")
        return False

    with service(path, garbage):
        async with client(path) as runtime:
            assert (await failure(runtime.version)).kind is ErrorKind.UNAVAILABLE


async def test_calls_in_flight_are_bounded_and_pulls_do_not_block_mutations(path: Path) -> None:
    release, lock = threading.Event(), threading.Lock()
    now, most = 0, 0
    heard: list[str] = []

    def slow(connection: socket.socket, number: int) -> bool:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        release.wait(10)
        with lock:
            now -= 1
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        return True

    with service(path, slow) as requests:
        runtime = PodmanRuntime(str(path), "one", limits=CallLimits(max_mutations=2))
        starts = [asyncio.create_task(runtime.start_container(str(n))) for n in range(6)]
        pulls = [asyncio.create_task(runtime.pull_image("localhost/x", heard.append)) for _ in range(2)]
        async with asyncio.timeout(5):
            while len(requests) < 4:  # noqa: ASYNC110 - another thread's state
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert (len(requests), most) == (4, 4)
        release.set()
        await asyncio.gather(*starts)
        await asyncio.gather(*pulls, return_exceptions=True)
        assert most == 4
        await runtime.close()


async def test_names_are_quoted_and_filters_are_json(path: Path) -> None:
    with service(path, always_ok) as requests:
        async with client(path) as runtime:
            await failure(lambda: runtime.inspect_pod("a b?c#d"))
            await failure(lambda: runtime.inspect_image("localhost:5000/a/b:1@sha256:ab"))
            await failure(lambda: runtime.list_pods("u1"))
    pod, image, pods = requests
    assert pod == "GET /v4.0.0/libpod/pods/a%20b%3Fc%23d/json"
    assert image == "GET /v4.0.0/libpod/images/localhost:5000/a/b:1@sha256:ab/json"
    assert pods.startswith(
        "GET /v4.0.0/libpod/pods/json?filters=%7B%22label%22%3A%5B%22rootlet.dev%2Finstance%3Done%22"
    )


async def test_who_asks_for_the_ids_at_the_same_time_asks_once_and_again_after_a_failure(path: Path) -> None:
    body = b'{"host":{"idMappings":{}}}'
    answers = {
        1: b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}",
        2: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body),
    }

    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall(answers[number])
        return True

    with service(path, answer) as requests:
        async with client(path) as runtime:
            failed = await asyncio.gather(*(runtime.id_ranges() for _ in range(3)), return_exceptions=True)
            assert {getattr(one, "kind", None) for one in failed} == {ErrorKind.INTERNAL}
            gives_up, *others = [asyncio.create_task(runtime.id_ranges()) for _ in range(3)]
            await asyncio.sleep(0)
            gives_up.cancel()
            found = await asyncio.gather(*others, runtime.id_ranges())
            assert [found[0]] * 3 == found
    assert requests == ["GET /v4.0.0/libpod/info"] * 2


async def test_a_cancelled_call_closes_its_connection_and_gives_its_turn_to_the_next(path: Path) -> None:
    closed = threading.Event()

    def first_hangs(connection: socket.socket, number: int) -> bool:
        if number > 1:
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            return True
        connection.settimeout(10)
        if not connection.recv(1):
            closed.set()
        return False

    with service(path, first_hangs) as requests:
        runtime = PodmanRuntime(str(path), "one", limits=CallLimits(max_mutations=1))
        hung = asyncio.create_task(runtime.start_container("hung"))
        async with asyncio.timeout(5):
            while not requests:  # noqa: ASYNC110 - another thread's state
                await asyncio.sleep(0.01)
        waiting = asyncio.create_task(runtime.start_container("next"))
        hung.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hung
        await asyncio.wait_for(waiting, 5)
        assert await asyncio.to_thread(closed.wait, 5)
        assert [request.split("/")[-2] for request in requests] == ["hung", "next"]
        await runtime.close()


async def test_no_event_is_lost_on_a_slow_reader(path: Path) -> None:
    """An event that is not read waits in the service."""
    many = 20_000
    line = b'{"Action":"start","Type":"container","Actor":{"ID":"c%05d","Attributes":{}}}\n'

    def tell(connection: socket.socket, number: int) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(many):
            event = line % at
            connection.sendall(b"%x\r\n%s\r\n" % (len(event), event))
        connection.sendall(b"0\r\n\r\n")
        return False

    with service(path, tell):
        async with client(path) as runtime:
            seen = []
            async for event in runtime.events():
                seen.append(event.container_id)
                if len(seen) % 1000 == 1:
                    await asyncio.sleep(0.01)
    assert seen == [f"c{at:05}" for at in range(many)]


async def test_closing_the_client_closes_a_stream_that_nobody_reads(path: Path) -> None:
    closed = threading.Event()

    def tell(connection: socket.socket, number: int) -> bool:
        event = b'{"Action":"start","Type":"container","Actor":{"ID":"c","Attributes":{}}}\n'
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(event), event))
        connection.settimeout(10)
        if not connection.recv(1):
            closed.set()
        return False

    with service(path, tell):
        async with client(path) as runtime:
            events = aiter(runtime.events())
            assert (await anext(events)).container_id == "c"
        assert await asyncio.to_thread(closed.wait, 5)


async def test_events_wait_for_a_service_that_has_just_been_started(path: Path) -> None:
    """A stream that breaks makes everything be listed: nothing is lost while our own service begins to listen."""

    def tell(connection: socket.socket, number: int) -> bool:
        event = b'{"Action":"start","Type":"container","Actor":{"ID":"c","Attributes":{}}}\n'
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(event), event))
        return False

    runtime = PodmanRuntime(str(path), "one", starting_s=30.0)
    try:
        first = asyncio.ensure_future(anext(aiter(runtime.events())))
        await asyncio.sleep(0.1)
        assert not first.done()
        with service(path, tell):
            assert (await first).container_id == "c"
    finally:
        await runtime.close()
