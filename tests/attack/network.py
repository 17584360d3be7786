"""Attacks on the ports of the kubelet's server, by clients that nobody knows."""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import Final

from tests.attack.attack import Attack
from tests.attack.ground import Ground
from tests.support.certificates import client_context

TIMEOUT_S: Final = 15.0
CROWD: Final = 1_000
PATHS: Final = (
    *("/pods", "/configz", "/healthz", "/nothing", "/logs/../../etc/passwd", "/metrics/../exec/default/canary/main"),
    *(
        "/run/default/canary/main?cmd=id",
        "/api/v1/pods",
        "/rootlet/v1/stop",
        "/containers",
        "/debug/pprof/heap?start=1",
    ),
)
METHODS: Final = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
CREDENTIALS: Final = (
    *("", "Authorization: Bearer \r\n", "Authorization: Bearer x\r\n", "Authorization: Basic Og==\r\n"),
    *("Authorization: Bearer " + "x" * 4000 + "\r\n", "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n"),
)
MALFORMED: Final = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 100,
    b"GET\r\n\r\n",
    b"GET /pods HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
    b"GET /pods HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
    b"GET /pods HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /containers HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * (1 << 20),
    b"GET /exec/default/canary/main?command=id&output=1 HTTP/1.1\r\nHost: x\r\nUpgrade: SPDY/3.1\r\n"
    b"Connection: Upgrade\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n" + b"\x80\x03\x00\x01" * 1000,
)


def _exchange(port: int, request: bytes, tls: ssl.SSLContext | None = None) -> bytes:
    """The beginning of the answer; empty when the connection is closed instead."""
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT_S))
        with contextlib.suppress(OSError):
            if tls is not None:
                client = stack.enter_context(tls.wrap_socket(client))
            client.sendall(request)
            return client.recv(65536)
    return b""


def _strangers(ground: Ground) -> None:
    """All are answered the same."""
    tls = client_context()
    answers = {
        _exchange(ground.port, f"{method} {path} HTTP/1.1\r\nHost: x\r\n{shown}\r\n".encode(), tls).split(b"\r\n")[0]
        for path in PATHS
        for method, shown in zip(METHODS, CREDENTIALS, strict=True)
    }
    assert answers == {b"HTTP/1.1 401 Unauthorized"}, answers


def _malformed(ground: Ground) -> None:
    """Each is the client's error, or its connection is closed."""
    tls = client_context()
    for request in MALFORMED:
        for answer in (
            _exchange(ground.read_only_port, request),
            _exchange(ground.port, request),
            _exchange(ground.port, request, tls),
        ):
            assert answer == b"" or answer.split(b" ")[1][:1] == b"4", answer[:100]


def _crowd(ground: Ground) -> None:
    """Connections that say nothing, or half a request."""
    with contextlib.ExitStack() as stack:
        for number in range(CROWD):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", (ground.port, ground.read_only_port)[number % 2]))
            with contextlib.suppress(OSError):
                client.send((b"", b"GET /pods HTTP/1.1\r\n", b"\x16\x03\x01")[number % 3])
        ground.last(3)
        assert ground.agent.pods()


ATTACKS: Final = (
    Attack(
        "server-strangers",
        "Clients without a certificate, with invented tokens and headers, ask for all kinds of paths.",
        "be answered 401, whatever they ask for",
        _strangers,
    ),
    Attack(
        "server-malformed",
        "Requests to the TCP ports are no TLS, no HTTP, too long or contradictory, or are to be SPDY.",
        "be answered 4xx or closed",
        _malformed,
    ),
    Attack(
        "server-crowd",
        "A thousand connections to the TCP ports say nothing, or half a request.",
        "wait, and be closed",
        _crowd,
        is_quick=False,
    ),
)
