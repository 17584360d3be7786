"""One request and its answer, HTTP/1.1 over a Unix socket: blocking, on a connection of its own. Knows no resource.

Without a loop and without a library for all of HTTP: a command that asks two questions pays for what it imports, not
for its two connections.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import h11

from supervisor.client.errors import AgentUnreachable, ConnectionLost

CONNECT_TIMEOUT_S: Final = 5
MAX_HEAD_BYTES: Final = 64 * 1024
"""Largest head of an answer, or of one of its chunks."""
RECEIVE_BYTES: Final = 256 * 1024
"""Most that is read at once: as much as a Unix socket holds."""
_AGAIN: Final = "try again in a moment"


class Answer:
    """An answer whose head has arrived. Its body is read once, as `pieces` or as `content`."""

    def __init__(self, sock: socket.socket, http: h11.Connection, path: Path) -> None:
        """Waits for the head. Raises ConnectionLost."""
        self._sock = sock
        self._path = path
        self._http = http
        self._heard = False
        event = self._next_event()
        while isinstance(event, h11.InformationalResponse):
            event = self._next_event()
        assert isinstance(event, h11.Response), "h11 tells of a body after its head"
        self.status: int = event.status_code

    def pieces(self) -> Iterator[bytes]:
        """The body, as it comes. Raises ConnectionLost."""
        while isinstance(event := self._next_event(), h11.Data):
            yield bytes(event.data)

    def content(self) -> bytes:
        """The whole body. Raises ConnectionLost."""
        return b"".join(self.pieces())

    def _next_event(self) -> object:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                data = self._sock.recv(RECEIVE_BYTES)
                if not data and self._http.their_state is h11.SEND_RESPONSE:
                    raise self._cut_off()
                self._heard = True
                self._http.receive_data(data)
        except TimeoutError:
            raise ConnectionLost(
                f"the agent at {self._path} has not answered within {self._sock.gettimeout():g} s: it is stopped, or "
                f"waits for Podman; its log says more"
            ) from None
        except ConnectionError:
            raise self._cut_off() from None
        except (OSError, h11.RemoteProtocolError) as error:
            # An answer that breaks off is one, too; before its first byte it is not known to be ours.
            raise ConnectionLost(f"{self._path}: the answer is not an agent's, or was cut off ({error})") from None
        return event

    def _cut_off(self) -> ConnectionLost:
        """Some bytes of an answer are more likely those of another protocol."""
        if self._heard:
            return ConnectionLost(f"{self._path}: the answer is not an agent's, or was cut off")
        return ConnectionLost(f"the agent at {self._path} ended before it had answered: {_AGAIN}")


@contextlib.contextmanager
def exchange(
    path: Path, method: str, target: str, body: bytes = b"", *, silence_s: float | None = None, accept: str = ""
) -> Iterator[Answer]:
    """Ask the server at this socket; the connection ends with the block.

    ``silence_s`` is how long nothing may come, None for ever. Raises AgentUnreachable when nobody listens, and
    ConnectionLost when the answer does not come or breaks off.
    """
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    with _connected(path) as sock:
        sock.settimeout(silence_s)
        # A server that has said no may have stopped reading: its answer is there all the same.
        with contextlib.suppress(ConnectionError):
            sock.sendall(_encoded(http, method, target, body, accept))
        yield Answer(sock, http, path)


@contextlib.contextmanager
def upload(path: Path, target: str, pieces: Iterable[bytes], *, silence_s: float) -> Iterator[Answer]:
    """PUT a body of unknown length, piece by piece. Raises as `exchange` does."""
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    headers = [("Host", "rootlet"), ("Connection", "close"), ("Transfer-Encoding", "chunked")]
    with _connected(path) as sock:
        sock.settimeout(silence_s)
        with contextlib.suppress(ConnectionError):  # as of an exchange
            sock.sendall(http.send(h11.Request(method="PUT", target=target, headers=headers)) or b"")
            for piece in pieces:
                sock.sendall(http.send(h11.Data(data=piece)) or b"")
            sock.sendall(http.send(h11.EndOfMessage()) or b"")
        yield Answer(sock, http, path)


def _connected(path: Path) -> socket.socket:
    """Waits its turn when the backlog is full: a socket with a timeout of Python's own would be refused (EAGAIN)."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", CONNECT_TIMEOUT_S, 0))
        sock.connect(str(path))
    except OSError as error:
        sock.close()
        raise AgentUnreachable(path, error) from None
    return sock


def _encoded(http: h11.Connection, method: str, target: str, body: bytes, accept: str) -> bytes:
    headers = [("Host", "rootlet"), ("Connection", "close")]
    if accept:
        headers.append(("Accept", accept))
    if body or method == "POST":
        headers.append(("Content-Length", str(len(body))))
    events = (h11.Request(method=method, target=target, headers=headers), h11.Data(data=body), h11.EndOfMessage())
    return b"".join(http.send(event) or b"" for event in events)
