"""Bare calls of an HTTP API on a Unix socket, libpod's first of all, with nothing of Rootlet in between."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

from ipc.host.libpod.endpoints import ROOT, Endpoint

CALL_DEADLINE_S = 120.0


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("d", timeout=CALL_DEADLINE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(CALL_DEADLINE_S)
        self.sock.connect(self._path)


class Libpod:
    """One connection; not shared between threads."""

    def __init__(self, path: str) -> None:
        self._connection = UnixConnection(path)

    def close(self) -> None:
        self._connection.close()

    def ask(self, endpoint: Endpoint[object], name: str = "", body: Any = None, query: str = "") -> Any:
        """The same at an endpoint of the table that the agent has."""
        return self.call(endpoint.method, f"{endpoint.at(name)}{query}", body)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """JSON of the answer. Fails for a refusal."""
        data = json.dumps(body) if body is not None else None
        self._connection.request(method, f"{ROOT}{path}", data, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status < 400, f"{method} {path}: {answer.status} {content!r}"
        return json.loads(content) if content.strip() else None
