"""The kinds of probes: what the manifest says of each, and the servers that make it succeed, fail, or wait.

The image has one static binary and no server: servers are in the test and listen in the pod's network. An exec probe
runs the binary, which asks a server too, so that all kinds are played with in the same way.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from tests.e2e.manifests import Json
from tests.e2e.pod_servers import PodServers, few
from tests.support.one_binary import ASK
from tests.support.servers.health_server import NOT_SERVING, SERVING, health, speaking
from tests.support.servers.local_servers import Handler, answering, request_of, response, silent

WEB: Final = 8080


class Kind(NamedTuple):
    """One kind of handler."""

    action: Json
    """Asks at port WEB."""
    well: Handler
    """A server with which it is content."""
    sick: Handler | None
    """One with which it is not; None: whatever is there is good enough."""
    mute: Handler | None
    """One that accepts, and never answers; None: to accept is to answer, so the connection itself has to wait."""
    refused: str
    complaint: str
    late: str
    """Words about a probe when nobody is there, about the sick and about the mute server."""


def saying(told: bytes) -> Handler:
    """For those who only listen."""

    async def handler(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(told)

    return handler


def only(*lines: str) -> Handler:
    """A web server that is content with requests in whose head these lines are, and with no other."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await request_of(reader)).decode().splitlines()
        writer.write(response(status="200 OK" if set(lines) <= set(head) else "404 Not Found"))

    return handler


KINDS: Final = {
    "exec": Kind(
        {"exec": {"command": [*ASK, str(WEB)]}},
        well=saying(b"\0"),
        sick=saying(b"\4ill"),
        mute=silent,
        refused="nobody is there",
        complaint="ill",
        late="timed out after",
    ),
    "httpGet": Kind(
        {"httpGet": {"port": WEB}},
        well=answering(response()),
        sick=answering(response(status="500 Oops")),
        mute=silent,
        refused="connect: connection refused",
        complaint="HTTP probe failed with statuscode: 500",
        late="(Client.Timeout exceeded while awaiting headers)",
    ),
    "tcpSocket": Kind(
        {"tcpSocket": {"port": WEB}},
        well=silent,
        sick=None,
        mute=None,
        refused="connect: connection refused",
        complaint="connect: connection refused",
        late="i/o timeout",
    ),
    "grpc": Kind(
        {"grpc": {"port": WEB}},
        well=health({"": SERVING}),
        sick=health({"": NOT_SERVING}),
        mute=speaking(lambda *_: None),
        refused="timeout: failed to connect service",
        complaint='service unhealthy (responded with "NOT_SERVING")',
        late="health rpc did not complete within",
    ),
}


def answer_few(servers: PodServers, pod: str, kind: Kind, probes: int) -> None:
    """So many attempts succeed; those that come later get no answer."""
    if kind.mute is None:
        servers.connect_few(pod, WEB, probes)
    else:
        servers.serve(pod, WEB, few(kind.well, probes, kind.mute))


def answer_well(servers: PodServers, pod: str, kind: Kind) -> None:
    """From now on. Somebody else was there."""
    servers.stop(pod, WEB)
    servers.serve(pod, WEB, kind.well)


def answer_sick(servers: PodServers, pod: str, kind: Kind) -> None:
    """From now on every attempt fails at once. Somebody else was there."""
    servers.stop(pod, WEB)
    if kind.sick is not None:
        servers.serve(pod, WEB, kind.sick)
