"""Choice of the protocol of a stream: what its request asks for, held against what its handler has. Pure."""

from __future__ import annotations

import base64
import enum
from collections.abc import Sequence
from typing import Final

import msgspec
from aiohttp import hdrs, web

from ipc.link.wire.stream_channels import PROTOCOLS
from workers.api_server.core.status_errors import ApiError, bad_request

SPDY_UPGRADE: Final = "SPDY/3.1"
PROTOCOL_HEADER: Final = "X-Stream-Protocol-Version"
ACCEPTED_HEADER: Final = "X-Accepted-Stream-Protocol-Versions"
"""apimachinery pkg/util/httpstream, httpstream.go."""

COMMAND_V4: Final = "v4.channel.k8s.io"
COMMAND_V3: Final = "v3.channel.k8s.io"
COMMAND_V2: Final = "v2.channel.k8s.io"
COMMAND_V1: Final = "channel.k8s.io"
"""apimachinery pkg/util/remotecommand, constants.go."""
COMMAND_V4_BASE64: Final = "v4.base64.channel.k8s.io"
COMMAND_V1_BASE64: Final = "base64.channel.k8s.io"
UNNAMED: Final = ""
"""A WebSocket of a client that names no protocol: as v1."""
BASE64_PROTOCOLS: Final = frozenset((COMMAND_V4_BASE64, COMMAND_V1_BASE64))
STATUS_PROTOCOLS: Final = frozenset((*PROTOCOLS, COMMAND_V4_BASE64))
"""The end of a command is a v1 Status; in the others it is the text of a failure or nothing."""
COMMAND_PROTOCOLS: Final = (*PROTOCOLS, COMMAND_V4_BASE64, COMMAND_V1, COMMAND_V1_BASE64, UNNAMED)
"""Protocols of WebSockets (cri-streaming pkg/streaming/remotecommand, websocket.go)."""
PORT_FORWARD: Final = "portforward.k8s.io"
TUNNEL: Final = f"{SPDY_UPGRADE}+{PORT_FORWARD}"
"""SPDY's bytes in the messages of a WebSocket (apimachinery pkg/util/portforward, constants.go)."""

_VERSIONS: Final = ("13", "8", "7")
"""Versions of the protocol of WebSockets that aiohttp speaks."""
_KEY_BYTES: Final = 16


class Carrier(enum.Enum):
    """Carriers of a stream's channels."""

    WEBSOCKET = enum.auto()
    SPDY = enum.auto()
    SPDY_IN_WEBSOCKET = enum.auto()


class Offer(msgspec.Struct, frozen=True):
    """Protocols that a handler has."""

    websocket: Sequence[str]
    spdy: Sequence[str]


COMMANDS: Final = Offer(COMMAND_PROTOCOLS, (COMMAND_V4, COMMAND_V3, COMMAND_V2, COMMAND_V1))
PORTS: Final = Offer((TUNNEL, *PROTOCOLS), (PORT_FORWARD,))


class Upgrade(msgspec.Struct, frozen=True):
    """The protocol that both sides speak: of those that are offered the one that the client likes best."""

    carrier: Carrier
    protocol: str


def negotiated(request: web.BaseRequest, offer: Offer) -> Upgrade:
    """Raises ApiError 400 without a word of an upgrade or with a wrong one, 400 or 403 without a common protocol."""
    asked = request.headers.get(hdrs.UPGRADE, "").lower()
    if asked == "websocket" and request.method == hdrs.METH_GET:
        _check_handshake(request)
        return _websocket(_words(request, hdrs.SEC_WEBSOCKET_PROTOCOL) or [UNNAMED], offer.websocket)
    if asked == SPDY_UPGRADE.lower():
        return _spdy(_words(request, PROTOCOL_HEADER), offer.spdy)
    raise bad_request("Upgrade request required")


def _check_handshake(request: web.BaseRequest) -> None:
    """Version and key of a WebSocket (RFC 6455, 4.2.1), which may be any bytes. Raises ApiError 400."""
    if request.headers.get(hdrs.SEC_WEBSOCKET_VERSION) not in _VERSIONS:
        raise bad_request(f"unable to upgrade: Unsupported version of {hdrs.SEC_WEBSOCKET_VERSION}")
    try:
        is_key = len(base64.b64decode(request.headers.get(hdrs.SEC_WEBSOCKET_KEY, ""), validate=True)) == _KEY_BYTES
    except ValueError:
        is_key = False
    if not is_key:
        raise bad_request(f"unable to upgrade: {hdrs.SEC_WEBSOCKET_KEY} must be the base64 of {_KEY_BYTES} bytes")


def _websocket(client: list[str], server: Sequence[str]) -> Upgrade:
    found = _common(client, server)
    if found is None:
        raise bad_request(_no_common(client, server))
    return Upgrade(Carrier.SPDY_IN_WEBSOCKET if found == TUNNEL else Carrier.WEBSOCKET, found)


def _spdy(client: list[str], server: Sequence[str]) -> Upgrade:
    """As the kubelet has it (httpstream.go, Handshake)."""
    if not client:
        raise bad_request(f"unable to upgrade: {PROTOCOL_HEADER} is required")
    found = _common(client, server)
    if found is None:
        accepted = tuple((ACCEPTED_HEADER, each) for each in server)
        raise ApiError(403, _no_common(client, server), headers=accepted)
    return Upgrade(Carrier.SPDY, found)


def _words(request: web.BaseRequest, header: str) -> list[str]:
    """Values of a header that may come several times, each with several values."""
    return [word.strip() for line in request.headers.getall(header, []) for word in line.split(",") if word.strip()]


def _common(client: list[str], server: Sequence[str]) -> str | None:
    return next((each for each in client if each in server), None)


def _no_common(client: list[str], server: Sequence[str]) -> str:
    return f"unable to upgrade: unable to negotiate protocol: client supports {client}, server accepts {list(server)}"
