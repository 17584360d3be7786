"""Attacks by clients of the admin socket: whoever may open it is the same user, and may be a program gone wrong."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Sequence
from typing import Final

import psutil

from tests.attack.attack import Attack, Strike
from tests.attack.ground import Ground
from tests.e2e.manifests import STAY, container, pod

TIMEOUT_S: Final = 15.0
GET: Final = b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n"
FLOOD: Final = 300
CLIENTS: Final = 8
FLOOD_S: Final = 6.0
EXECS: Final = 8
MARK: Final = "86123"
"""Seconds that the attack's commands sleep: so they are told from everybody else's."""
PROTOCOL_ERROR: Final = (1002).to_bytes(2, "big")
UPGRADE: Final = (
    "GET /api/v1/namespaces/default/pods/{pod}/exec?command=cat&stdin=true&stdout=true HTTP/1.1\r\nHost: x\r\n"
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
)


def connected(ground: Ground) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(TIMEOUT_S)
    client.connect(str(ground.agent.socket))
    return client


def ask(ground: Ground, *parts: bytes) -> bytes:
    """The beginning of the answer; empty when the connection is closed instead."""
    with connected(ground) as client:
        try:
            for part in parts:
                client.sendall(part)
            return client.recv(65536)
        except (ConnectionError, TimeoutError):
            return b""


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def status_of(answer: bytes) -> int:
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) > 1 else 0


def _malformed(ground: Ground) -> None:
    """Each is the client's error, or its connection is closed: none is the server's."""
    statuses = [
        status_of(ask(ground, request))
        for request in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 100,
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
            GET + b"X: " + b"x" * 1_000_000 + b"\r\n\r\n",
            GET + b"X: y\r\n" * 100_000 + b"\r\n",
            GET + b"Content-Length: -1\r\n\r\n",
            GET + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            GET + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 100_000,
            b"GET /api/v1/namespaces/%00/pods/%2e%2e/log HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /api/v1/pods?limit=" + b"9" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /api/v1/pods?labelSelector=" + b"(" * 6000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /api/v1/pods?fieldSelector=" + b"a=b," * 1500 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            post("/rootlet/v1/apply", b"\x1f\x8bnot gzip at all", "Content-Encoding: gzip"),
            post("/rootlet/v1/apply", b"\x1f\x8bnot gzip at all", "Content-Encoding: deflate"),
            post("/rootlet/v1/apply", b"[" * 500_000),
            post("/rootlet/v1/apply", b"\xff" * 500_000),
            post("/rootlet/v1/workers/%2e%2e/restart", b""),
        )
    ]
    assert not [status for status in statuses if status >= 500], statuses


def _large_body(ground: Ground) -> None:
    """The body is refused before it is there."""
    head = b"POST /rootlet/v1/apply HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
    answer = ask(ground, head, *([b"x" * (1 << 20)] * 100))
    assert status_of(answer) in (0, 400, 413), answer[:100]


def _unmasked(ground: Ground) -> None:
    """The stream ends; nothing of it reaches the command."""
    ground.agent.until_ready(["streams"])
    with connected(ground) as client:
        client.sendall(UPGRADE.format(pod="streams").encode())
        assert b"101" in client.recv(4096)
        client.sendall(b"\x82\x06\x00hello")
        heard = b""
        while PROTOCOL_ERROR not in heard and (data := client.recv(4096)):
            heard += data
            assert PROTOCOL_ERROR in heard


def _idle(ground: Ground) -> None:
    """Connections that say nothing, half a request, or never read what they have asked for."""
    with contextlib.ExitStack() as stack:
        for number in range(FLOOD):
            client = stack.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
            client.settimeout(TIMEOUT_S)
            with contextlib.suppress(OSError):
                client.connect(str(ground.agent.socket))
                client.sendall(
                    (b"", GET, GET + b"\r\n", GET.replace(b"pods", b"events?watch=true", 1) + b"\r\n")[number % 4]
                )
        ground.last(3)
        assert ground.agent.pods()


def _requests(ground: Ground) -> None:
    """As many as go."""
    ended = threading.Event()
    paths = (b"/api/v1/pods", b"/api/v1/events", b"/rootlet/v1/workers", b"/version", b"/nothing")

    def ask_on() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            ask(ground, b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % paths[number % len(paths)])

    threads = [threading.Thread(target=ask_on) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        ground.last(FLOOD_S)
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _zeroes(ground: Ground, *command: str) -> subprocess.Popen[bytes]:
    """The command with /dev/zero as its input."""
    with open("/dev/zero", "rb") as zero:
        words = ground.agent.command(*command)
        return ground.run(*words, stdin=zero, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _floods(*command: str) -> Strike:
    """Input without end, from three clients, for somebody who does not read it."""

    def strike(ground: Ground) -> None:
        ground.agent.until_ready(["streams"])
        for _ in range(3):
            _zeroes(ground, *command)
        ground.last(6)

    return strike


def _leaves(ground: Ground) -> None:
    """Clients of commands are killed: the commands end, too."""
    ground.agent.until_ready(["streams"])
    words: Sequence[str] = ground.agent.command("exec", "streams", "--", "sleep", MARK)
    clients = [ground.run(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(EXECS)]
    ground.until(lambda: len(_commands()) >= EXECS, "they run")
    for client in clients:
        client.kill()
    ground.until(lambda: not _commands(), "they have ended")


def _commands() -> list[int]:
    """Pids of the attack's commands."""
    return [p.pid for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", MARK]]


def _forwards(ground: Ground) -> None:
    """To a port where nobody listens, again and again."""
    ground.agent.until_ready(["streams"])
    ground.run(
        *ground.agent.command("port-forward", "streams", "38471:9"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(FLOOD):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", 38471), 1) as client:
            client.sendall(os.urandom(1000))


_STREAMS: Final = (pod("streams", container(stdin=True, script=STAY)),)

ATTACKS: Final = (
    Attack(
        "client-malformed",
        "Requests are no HTTP, too long, contradictory, no gzip, no JSON, and selectors nest 6,000 deep.",
        "be answered 4xx or closed",
        _malformed,
    ),
    Attack(
        "client-large-body",
        "A request has a body of 100 MB and announces ten times as much.",
        "be answered 413 or closed",
        _large_body,
    ),
    Attack("client-unmasked", "A WebSocket's frames have no mask.", "be closed", _unmasked, _STREAMS),
    Attack(
        "client-idle",
        "Three hundred connections say nothing, half a request, or do not read their answers.",
        "wait",
        _idle,
        is_quick=False,
    ),
    Attack(
        "client-flood",
        "Eight clients ask for everything as fast as they can.",
        "be answered late",
        _requests,
        is_quick=False,
    ),
    Attack(
        "client-leaves",
        "Eight clients of commands that would run for a day are killed.",
        "have their commands ended",
        _leaves,
        _STREAMS,
        is_quick=False,
    ),
    Attack(
        "stdin-exec",
        "Input without end is sent to commands that do not read it.",
        "wait; what is kept of it is bounded",
        _floods("exec", "-i", "streams", "--", "sleep", "600"),
        _STREAMS,
        is_quick=False,
    ),
    Attack(
        "stdin-cat",
        "Input without end is sent to commands that answer it, and the answer is not read.",
        "wait; what is kept of it is bounded",
        _floods("exec", "-i", "streams", "--", "cat"),
        _STREAMS,
        is_quick=False,
    ),
    Attack(
        "stdin-attach",
        "Input without end is sent to a container that does not read it.",
        "wait; what is kept of it is bounded",
        _floods("attach", "-i", "streams"),
        _STREAMS,
        is_quick=False,
    ),
    Attack(
        "port-forward-flood",
        "Three hundred connections are forwarded to a port where nobody listens.",
        "be closed",
        _forwards,
        _STREAMS,
        is_quick=False,
    ),
)
