"""The HTTP/1.1 exchange by which a connection to Podman becomes the streams of a process. h11 speaks the protocol.

Podman takes the connection over after its answer's head (pkg/api/handlers/compat, exec.go and containers_attach.go):
with 101 when it is asked to upgrade, as here, and with 200 otherwise.
"""

from __future__ import annotations

from typing import Final

import h11

from ipc.wire.duplex import Duplex

MAX_HEAD_BYTES: Final = 16 * 1024
"""Largest head of an answer that is taken."""
MAX_REFUSAL_BYTES: Final = 1024 * 1024
"""Most that is read of an answer that refuses; what comes beyond it is cut off."""
SWITCHED: Final = frozenset((101, 200))

_Response = h11.Response | h11.InformationalResponse


class Refused(Exception):
    """Podman has answered with another status."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


async def upgrade(connection: Duplex, path: str, content: bytes) -> bytes:
    """POST ``content`` (JSON) there. Returns what came of the streams together with the head: bounded by one read.

    The caller sets the deadline. Raises Refused; OSError, also for an answer that is no HTTP.
    """
    exchange = _Exchange(connection)
    try:
        await exchange.ask(path, content)
        status = await exchange.status()
        if status in SWITCHED:
            return exchange.rest()
        raise Refused(status, await exchange.body())
    except h11.RemoteProtocolError as error:
        raise ConnectionResetError(f"no HTTP in answer to a request for streams: {error}") from None


class _Exchange:
    """One request and its answer."""

    def __init__(self, connection: Duplex) -> None:
        self._connection = connection
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)

    async def ask(self, path: str, content: bytes) -> None:
        headers = [
            ("Host", "d"),
            ("Connection", "Upgrade"),
            ("Upgrade", "tcp"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(content))),
        ]
        events = (
            h11.Request(method="POST", target=path, headers=headers),
            h11.Data(data=content),
            h11.EndOfMessage(),
        )
        await self._connection.write(b"".join(self._h11.send(event) or b"" for event in events))

    async def status(self) -> int:
        """Of the final answer: what announces it (100, 103) is passed over."""
        while True:
            event = await self._next()
            if isinstance(event, _Response) and (event.status_code >= 200 or event.status_code in SWITCHED):
                return event.status_code

    def rest(self) -> bytes:
        """Bytes that were read and are no HTTP any more."""
        return self._h11.trailing_data[0]

    async def body(self) -> bytes:
        """Beginning of the answer's body; of one that breaks off, as much as has come."""
        kept = bytearray()
        try:
            while len(kept) < MAX_REFUSAL_BYTES and isinstance(event := await self._next(), h11.Data):
                kept += event.data
        except (h11.RemoteProtocolError, OSError):
            return bytes(kept)
        return bytes(kept[:MAX_REFUSAL_BYTES])

    async def _next(self) -> object:
        """Raises RemoteProtocolError, OSError."""
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            self._h11.receive_data(await self._connection.read())
        return event
