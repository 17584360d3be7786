"""Attacks by clients that speak SPDY, or pretend to."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Final

from tests.attack.attack import Attack
from tests.attack.ground import Ground
from tests.e2e.manifests import STAY, container, pod
from workers.spdy.connection import Connection
from workers.spdy.frames import Data, Settings, Window, encode

TIMEOUT_S: Final = 2.0
"""After so long a client whose bytes are not taken gives up: it was stopped, as it should be."""
UPGRADE_TIMEOUT_S: Final = 60.0
"""For exec sessions, which Podman makes one after the other."""
STORM: Final = 20_000
CLIENTS: Final = 4
PORT: Final = "9"
"""Nobody listens there."""
UPGRADE: Final = (
    "POST /api/v1/namespaces/default/pods/spdy/{stream} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
    "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: {protocol}\r\n\r\n"
)
FORWARD: Final = UPGRADE.format(stream="portforward", protocol="portforward.k8s.io")
EXEC: Final = UPGRADE.format(
    stream="exec?command=sleep&command=600&stdin=true&stdout=true", protocol="v4.channel.k8s.io"
)


@contextlib.contextmanager
def _upgraded(ground: Ground, request: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(UPGRADE_TIMEOUT_S)
        client.connect(str(ground.agent.socket))
        client.sendall(request.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 101 ")
        client.settimeout(TIMEOUT_S)
        yield client


def _send(client: socket.socket, data: bytes) -> None:
    """As much as is taken; nothing of the answers is read."""
    with contextlib.suppress(OSError):
        client.sendall(data)


def _broken() -> Iterator[bytes]:
    """Bytes that end a connection, or make it wait."""
    headers = (("streamtype", "error"), ("port", PORT))
    yield b"\x80\x03\x00\x01\x00\x00"
    yield b"\x80\x03\x00\x01\x00\x00\x3f\xff" + bytes(1000)
    yield b"\x80\x03\x00\x01\x00\xff\xff\xff" + bytes(1 << 20)
    yield b"\x00\x00\x00\x63\x00\xff\xff\xff" + bytes(1 << 20)
    yield Connection().open(headers)[1] * 2
    yield Connection(client=True).open((*headers, ("x", "y" * (15 << 20))))[1]
    yield b"GET / HTTP/1.1\r\n\r\n" * 1000


def _resets() -> bytes:
    """Pairs of streams that are opened and reset at once."""
    connection, frames = Connection(client=True, max_streams=STORM), bytearray()
    for number in range(STORM // 10):
        for kind in ("error", "data"):
            stream, frame = connection.open((("streamtype", kind), ("port", PORT), ("requestid", str(number))))
            frames += frame
        frames += connection.reset(stream)
    return bytes(frames)


def _opened() -> bytes:
    """Streams without an end, none of which has its other."""
    connection, frames = Connection(client=True), bytearray()
    for number in range(STORM // 5):
        frames += connection.open((("streamtype", "error"), ("port", PORT), ("requestid", str(number))))[1]
    return bytes(frames)


def _small_frames() -> bytes:
    """Pings, windows of 0, settings, and data of streams that there are not, a byte each."""
    kinds = (Window(1, 0), Settings(), Data(99, b"x"), Data(1, b""))
    connection = Connection(client=True)
    return b"".join(encode(frame, lambda _: b"") for frame in kinds) * STORM + connection.ping() * STORM


def _strike(ground: Ground) -> None:
    ground.agent.until_ready(["spdy"])
    with contextlib.ExitStack() as stack:
        for request in (FORWARD, EXEC):
            for data in (*_broken(), _resets(), _opened(), _small_frames()):
                for _ in range(CLIENTS):
                    _send(stack.enter_context(_upgraded(ground, request)), data)
        ground.last(3)
        assert ground.agent.pods()


ATTACKS: Final = (
    Attack(
        "client-spdy",
        "Eighty clients of SPDY send half frames, headers without end, storms of streams and resets, windows of 0 and "
        "pings, and read nothing.",
        "be stopped or closed",
        _strike,
        (pod("spdy", container(script=STAY)),),
        is_quick=False,
    ),
)
