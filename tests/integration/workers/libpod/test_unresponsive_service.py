"""A service that hangs, dribbles or goes away: connections end, the breaker opens and closes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import sleep

import pytest

from ipc.host.clock import monotonic
from ipc.host.libpod import endpoints
from ipc.link.eventloop.backoff import Backoff
from ipc.link.shm.breaker_state import BreakerState
from tests.support.libpod_service import OK, failure, service
from workers.kubecontainer.runtime import ErrorKind
from workers.libpod import circuit_breaker, health
from workers.libpod import client as libpod_client
from workers.libpod.client import CallLimits
from workers.libpod.connection_pool import MAX_KEPT
from workers.libpod.health import Listener
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.timeout(60)

DEADLINE_S = 10.0
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class Heard(Listener):
    def __init__(self) -> None:
        self.states: list[BreakerState] = []
        self.silences = 0

    def breaker_changed(self, state: BreakerState) -> None:
        self.states.append(state)

    def silent(self, why: str) -> None:
        self.silences += 1


class Podman:
    """A service that can be stopped and continued like a process; what it got meanwhile it answers then."""

    def __init__(self, answer: bytes = NO_CONTENT) -> None:
        self.answer = answer
        self.going = threading.Event()
        self.going.set()

    def __call__(self, connection: socket.socket, number: int) -> bool:
        self.going.wait(DEADLINE_S)
        with contextlib.suppress(OSError):
            connection.sendall(self.answer)
            return True
        return False


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything a hundred times as fast, but not the machine."""
    monkeypatch.setattr(health, "DOUBT_S", 0.1)
    monkeypatch.setattr(circuit_breaker, "PINGS", Backoff(0.02, 0.05))
    monkeypatch.setattr(libpod_client, "DEADLINE_S", {**endpoints.DEADLINE_S, endpoints.Kind.PING: 0.2})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "podman.sock"


@contextlib.asynccontextmanager
async def client(path: Path, heard: Listener, request_timeout_s: float = 30.0) -> AsyncIterator[PodmanRuntime]:
    runtime = PodmanRuntime(str(path), "one", limits=CallLimits(request_timeout_s=request_timeout_s), listener=heard)
    try:
        yield runtime
    finally:
        await runtime.close()


async def until(condition: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - other threads' state
            await asyncio.sleep(0.01)
    assert condition(), what


def sockets() -> int:
    links = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
    return sum(os.path.lexists(link) and os.readlink(link).startswith("socket:") for link in links)


async def test_a_hung_service_opens_it_long_before_the_deadline_and_nobody_waits(path: Path) -> None:
    heard, podman = Heard(), Podman()
    with service(path, podman):
        async with client(path, heard) as runtime:
            await runtime.start_container("before")
            podman.going.clear()
            began = monotonic()
            results = await asyncio.gather(
                *(runtime.start_container(str(n)) for n in range(300)), return_exceptions=True
            )
            kinds = [getattr(result, "kind", None) for result in results]
            assert monotonic() - began < 25, "they waited for their deadline"
            assert set(kinds) == {ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE}
            assert kinds.count(ErrorKind.TIMEOUT) <= 4, "only those that were sent have an unknown effect"
            assert list(heard.states) == [BreakerState.CLOSED, BreakerState.OPEN]
            await until(lambda: heard.silences > 0, "the silence is told")
            podman.going.set()
            await until(lambda: heard.states[-1] is not BreakerState.OPEN, "a ping was answered")
            await asyncio.gather(*(runtime.start_container(str(n)) for n in range(20)))
            assert heard.states[-1] is BreakerState.CLOSED


async def test_an_idle_client_closes_it_by_itself(path: Path) -> None:
    heard, podman = Heard(), Podman()
    with service(path, podman):
        async with client(path, heard) as runtime:
            podman.going.clear()
            await failure(lambda: runtime.start_container("x"))
            podman.going.set()
            await until(lambda: heard.states[-1] is BreakerState.CLOSED, "closed without a call")
            assert BreakerState.HALF_OPEN in heard.states


async def test_a_slow_call_of_a_service_that_lives_is_waited_for(path: Path) -> None:
    heard = Heard()

    def slow(connection: socket.socket, number: int) -> bool:
        if number == 1:
            sleep(1.0)
        connection.sendall(NO_CONTENT)
        return True

    with service(path, slow) as requests:
        async with client(path, heard) as runtime:
            await runtime.start_container("slow")
        assert heard.states == [BreakerState.CLOSED]
        assert requests == ["POST /v4.0.0/libpod/containers/slow/start", "GET /v4.0.0/libpod/_ping"]


async def test_a_service_that_refuses_fails_at_once_and_is_found_again(path: Path) -> None:
    heard = Heard()
    async with client(path, heard) as runtime:
        for _ in range(5):
            assert (await failure(runtime.list_containers)).kind is ErrorKind.UNAVAILABLE
        assert heard.states[-1] is BreakerState.OPEN
        with service(path, Podman(OK)):
            await until(lambda: heard.states[-1] is not BreakerState.OPEN, "a ping was answered")
            assert await runtime.version() == "4.3.1"
            assert heard.states.pop() is BreakerState.CLOSED


async def test_errors_are_answers(path: Path) -> None:
    heard = Heard()
    body = b'{"cause":"boom","message":"boom","response":500}'
    answer = b"HTTP/1.1 500 E\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with service(path, Podman(answer)):
        async with client(path, heard) as runtime:
            for _ in range(9):
                assert (await failure(lambda: runtime.start_container("x"))).kind is ErrorKind.INTERNAL
    assert heard.states == [BreakerState.CLOSED]


async def test_calls_behind_the_trial_wait_for_its_outcome(path: Path) -> None:
    heard, podman = Heard(), Podman()
    with service(path, podman):
        async with client(path, heard) as runtime:
            podman.going.clear()
            await failure(lambda: runtime.start_container("x"))
            podman.going.set()
            await until(lambda: heard.states[-1] is not BreakerState.OPEN, "a ping was answered")
            await asyncio.gather(runtime.start_container("a"), runtime.start_container("b"))


@pytest.mark.parametrize("sent", [b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"HTTP/1.1 200 O"])
async def test_an_answer_byte_by_byte_gets_no_more_time(path: Path, sent: bytes) -> None:
    """A socket's own timeout is for one receive only, and would never pass here."""

    def dribble(connection: socket.socket, number: int) -> bool:
        with contextlib.suppress(OSError):
            connection.sendall(sent)
            for _ in range(600):
                connection.sendall(b"x")
                sleep(0.05)
        return False

    with service(path, dribble):
        async with client(path, Heard(), request_timeout_s=0.5) as runtime:
            began = monotonic()
            assert (await failure(lambda: runtime.start_container("x"))).kind is ErrorKind.TIMEOUT
            assert monotonic() - began < 15, "the answer takes half a minute"


async def test_hung_calls_leave_no_connections(path: Path) -> None:
    """Waves of calls against a service that hangs: what they take is bounded, and given back."""
    podman = Podman()
    with service(path, podman):
        async with client(path, Heard(), request_timeout_s=0.3) as runtime:
            await runtime.start_container("x")
            idle, before = sockets(), threading.active_count()
            podman.going.clear()
            for wave in range(5):
                calls = [runtime.start_container(f"{wave}-{n}") for n in range(20)]
                calls += [runtime.kill_container(f"{wave}-{n}", "KILL") for n in range(20)]
                await asyncio.gather(*calls, *(runtime.inspect_pod("x") for _ in range(20)), return_exceptions=True)
            podman.going.set()
            await until(lambda: sockets() <= idle + 2 * MAX_KEPT, "connections are closed or kept in the pool")
            await until(lambda: threading.active_count() <= before + MAX_KEPT, "only the service has had threads")


async def test_a_stream_whose_head_never_comes_ends_when_it_is_closed(path: Path) -> None:
    closed = threading.Event()
    with service(path, lambda connection, number: closed_by_client(connection, closed)) as requests:
        async with client(path, Heard()) as runtime:
            events = asyncio.ensure_future(anext(aiter(runtime.events())))
            await until(lambda: len(requests) == 1, "asked for events")
            events.cancel()
            await asyncio.gather(events, return_exceptions=True)
            await until(closed.is_set, "its connection is closed")


async def test_an_exec_whose_start_hangs_ends_its_connection_with_its_time(path: Path) -> None:
    closed = threading.Event()

    def answer(connection: socket.socket, number: int) -> bool:
        bodies = {1: b'{"Id":"c","State":{"Status":"running"}}', 2: b'{"Id":"e1"}'}
        if body := bodies.get(number):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            return True
        return closed_by_client(connection, closed)

    with service(path, answer):
        async with client(path, Heard(), request_timeout_s=0.5) as runtime:
            error = await failure(lambda: runtime.exec_container("c", ["true"], 0.3))
            assert error.kind is ErrorKind.TIMEOUT
            await until(closed.is_set, "its connection is closed")


def closed_by_client(connection: socket.socket, closed: threading.Event) -> bool:
    """Say nothing until the client goes."""
    connection.settimeout(DEADLINE_S)
    if not connection.recv(1):
        closed.set()
    return False
