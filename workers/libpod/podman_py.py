"""Calls through podman-py, for what a node rarely does or what takes long: pulls, lists and removals of images. The
only import of it.

To be imported where and when such a call is made: with requests, urllib3 and what they bring it takes 0.3 s of CPU and
10 MiB. podman-py is the transport (``PodmanClient.api``) and nothing more: its models translate docker's vocabulary and
take a failed pull from an older server for a success.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import urllib3.exceptions
from podman import PodmanClient
from podman.api.client import APIClient
from podman.api.uds import UDSAdapter, UDSConnection, UDSConnectionPool

from ipc.host.libpod.endpoints import API_VERSION, Endpoint
from ipc.host.text.lines import LineSplitter
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod import failures

CONNECT_TIMEOUT_S: Final = 5.0
"""For the service to take the request, in seconds."""
READ_BYTES: Final = 64 * 1024
"""Most that is taken from an answer at a time. Less is passed on as soon as it is there."""
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Longest answer that is read whole: ten thousand images."""


class PodmanPyCall:
    """One call, on a connection of its own, in a thread that another one can end. Raises OSError when that breaks."""

    def __init__(self, socket_path: str) -> None:
        self._podman = PodmanClient(base_url=f"unix://{socket_path}", version=API_VERSION, max_pool_size=1)
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._broken_off = False
        _on_connect(self._podman.api, self._adopt)

    def lines(
        self, endpoint: Endpoint[object], params: Mapping[str, str], headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        """Lines of the answer. Blocks. Raises RuntimeCallError when Podman refuses. ``headers`` may hold secrets."""
        splitter = LineSplitter()
        for part in self._parts(endpoint, params, headers):
            yield from splitter.feed(part)
        yield from splitter.end()

    def whole(self, endpoint: Endpoint[object], params: Mapping[str, str | list[str]]) -> Iterator[bytes]:
        """The answer, in one piece. Blocks. Raises RuntimeCallError, also for one beyond `MAX_BODY_BYTES`."""
        body = bytearray()
        for part in self._parts(endpoint, params, {}):
            body += part
            if len(body) > MAX_BODY_BYTES:
                why = f"an answer of more than {MAX_BODY_BYTES} bytes"
                raise RuntimeCallError(ErrorKind.INTERNAL, endpoint.call, why)
        yield bytes(body)

    def _parts(
        self, endpoint: Endpoint[object], params: Mapping[str, str | list[str]], headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        with contextlib.closing(self._podman.api) as api:
            # The answer may take as long as the caller waits for it.
            timeout = (CONNECT_TIMEOUT_S, None)
            request = getattr(api, endpoint.method.lower())
            answer = request(endpoint.at(), params=dict(params), headers=dict(headers), timeout=timeout, stream=True)
            with contextlib.closing(answer):
                try:
                    if answer.status_code >= 400:
                        raise failures.call_error(endpoint.call, answer.status_code, answer.raw.read(READ_BYTES))
                    yield from answer.iter_content(READ_BYTES)
                except urllib3.exceptions.HTTPError as error:  # those of requests are OSErrors
                    raise ConnectionResetError(str(error)) from error

    def break_off(self) -> None:
        """End the call, from any thread."""
        with self._lock:
            self._broken_off = True
            if self._sock is not None:
                _shut_down(self._sock)

    def _adopt(self, connected: socket.socket) -> None:
        with self._lock:
            self._sock = connected
            if self._broken_off:
                _shut_down(connected)


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed, or the other side was quicker
        sock.shutdown(socket.SHUT_RDWR)


def _on_connect(api: APIClient, connected: Any) -> None:
    """Have every socket of this client shown: neither it nor its libraries let one end a wait for the answer's head."""

    class Connection(UDSConnection):
        def connect(self) -> None:
            super().connect()
            connected(self.sock)

    class ConnectionPool(UDSConnectionPool):
        ConnectionCls = Connection

    adapter = api.get_adapter("http://")
    assert isinstance(adapter, UDSAdapter)
    assert adapter.poolmanager is not None
    adapter.poolmanager.pool_classes_by_scheme = {"http": ConnectionPool}
