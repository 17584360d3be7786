"""One exchange over a Unix socket with servers that do what none should."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from supervisor.client.errors import AgentUnreachable, ConnectionLost
from supervisor.client.exchange import MAX_HEAD_BYTES, exchange

DEADLINE_S = 20.0
Serve = Callable[[socket.socket], None]


@contextlib.contextmanager
def server(directory: Path, serve: Serve) -> Iterator[Path]:
    """Accepts one connection; what it does with it ends before the block does."""
    path = directory / "server.sock"
    with listening(path) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield path
        finally:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()


@contextlib.contextmanager
def listening(path: Path, backlog: int = 4) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen(backlog)
        listener.settimeout(DEADLINE_S)
        yield listener


def request_of(connection: socket.socket) -> bytes:
    """Head, and the body whose length it states."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while lengths and len(body) < lengths[0]:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def answering(*answer: bytes) -> Serve:
    """Reads the request, then sends these pieces."""

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        for piece in answer:
            connection.sendall(piece)

    return serve


def test_a_request_as_it_is_sent(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        seen.append(request_of(connection))
        connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")

    with server(tmp_path, serve) as path, exchange(path, "POST", "/a?b=c", b"body") as answer:
        assert (answer.status, answer.content()) == (201, b"ok")
    head, _, body = seen[0].partition(b"\r\n\r\n")
    line, *headers = head.split(b"\r\n")
    assert (line, body) == (b"POST /a?b=c HTTP/1.1", b"body")
    assert {header.lower() for header in headers} == {b"host: rootlet", b"connection: close", b"content-length: 4"}


def test_chunks_come_as_they_are_sent(tmp_path: Path) -> None:
    go_on = threading.Event()

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        assert go_on.wait(DEADLINE_S)
        connection.sendall(b"3\r\ntwo\r\n0\r\n\r\n")

    with server(tmp_path, serve) as path, exchange(path, "GET", "/") as answer:
        pieces = answer.pieces()
        assert next(pieces) == b"one"  # before the second was sent
        go_on.set()
        assert list(pieces) == [b"two"]


def test_what_comes_before_the_answer_is_passed_over(tmp_path: Path) -> None:
    answer_bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
    with server(tmp_path, answering(answer_bytes)) as path, exchange(path, "GET", "/") as answer:
        assert (answer.status, answer.content()) == (200, b"x")


def test_a_refusal_of_a_body_that_was_not_read(tmp_path: Path) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        connection.shutdown(socket.SHUT_RD)  # the rest of the request finds nobody

    with server(tmp_path, serve) as path, exchange(path, "POST", "/", b"x" * 4_000_000) as answer:
        assert (answer.status, answer.content()) == (413, b"no")


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (b"HTTP/1.1 200",),
        (b"no HTTP at all\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal",),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n",),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 2 * MAX_HEAD_BYTES),
    ],
)
def test_an_answer_that_breaks_off(tmp_path: Path, pieces: tuple[bytes, ...]) -> None:
    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(ConnectionError):  # of a head that nobody reads to its end
            answering(*pieces)(connection)

    with server(tmp_path, serve) as path, pytest.raises(ConnectionLost), exchange(path, "GET", "/") as answer:
        answer.content()


def test_a_server_that_is_silent(tmp_path: Path) -> None:
    def serve(connection: socket.socket) -> None:
        request_of(connection)
        assert connection.recv(1) == b""  # until the client has had enough

    with (
        server(tmp_path, serve) as path,
        pytest.raises(ConnectionLost, match="has not answered within"),
        exchange(path, "GET", "/", silence_s=0.05),
    ):
        pass


def test_nobody_listens(tmp_path: Path) -> None:
    for path in (tmp_path / "none.sock", tmp_path / ("x" * 200)):
        with pytest.raises(AgentUnreachable), exchange(path, "GET", "/"):
            pass


def test_a_full_backlog_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with listening(path, backlog=0) as listener, contextlib.ExitStack() as others:
        waiting = _fill(path, others)
        found: list[bytes] = []

        def ask() -> None:
            with exchange(path, "GET", "/", silence_s=DEADLINE_S) as answer:
                found.append(answer.content())

        asking = threading.Thread(target=ask)
        asking.start()
        for _ in range(waiting):
            listener.accept()[0].close()
        connection, _ = listener.accept()
        with connection:
            answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(connection)
        asking.join(DEADLINE_S)
        assert found == [b"ok"]


def _fill(path: Path, others: contextlib.ExitStack) -> int:
    """Connect until one more would be refused; how many."""
    for count in range(100):
        sock = others.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        sock.setblocking(False)
        try:
            sock.connect(str(path))
        except BlockingIOError:
            return count
    raise AssertionError("the backlog is never full")
