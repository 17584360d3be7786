"""A few requests to a cluster's API server, from the command line, which has no loop."""

from __future__ import annotations

import http.client
import ssl
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ipc.host.atomic_file import UntrustedFile
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.kubeconfig.client_tls import client_context, read_file
from ipc.k8s.kubeconfig.types import ClusterAccess

TIMEOUT_S: Final = 15.0
"""How long connecting, and each wait for bytes, may take, in seconds."""
MAX_ANSWER_BYTES: Final = 4 << 20
USER_AGENT: Final = "rootlet"


class ClusterUnreachable(Exception):
    """There is no answer; the text says why, without credentials."""


class Answer(msgspec.Struct, frozen=True):
    """An answer of the server, whatever it is."""

    status: int
    body: bytes

    @property
    def message(self) -> str:
        """Words of a Status, or HTTP's."""
        try:
            return msgspec.json.decode(self.body, type=_Status).message or f"the server answered {self.status}"
        except UNDECODABLE:
            return f"the server answered {self.status}"


class _Status(msgspec.Struct, frozen=True):
    message: str = ""


def ask(
    access: ClusterAccess,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    content_type: str = "application/json",
) -> Answer:
    """One request as the user of the kubeconfig, by certificate or token. Raises ClusterUnreachable."""
    url = urlsplit(access.server)
    host, port = url.hostname or "", url.port
    headers = {"User-Agent": USER_AGENT, "Accept": "application/json"}
    if body is not None:
        headers["Content-Type"] = content_type
    try:
        if token := _token(access):
            headers["Authorization"] = f"Bearer {token}"
        connection = (
            _TlsConnection(host, port or 443, client_context(access), access.tls_server_name)
            if access.is_tls
            else http.client.HTTPConnection(host, port or 80, timeout=TIMEOUT_S)
        )
        try:
            connection.request(method, url.path + path, body, headers)
            answer = connection.getresponse()
            data = answer.read(MAX_ANSWER_BYTES + 1)
        finally:
            connection.close()
    except (OSError, ValueError, UntrustedFile, http.client.HTTPException) as error:
        raise ClusterUnreachable(f"{access.server}: {_words(error)}") from None
    if len(data) > MAX_ANSWER_BYTES:
        raise ClusterUnreachable(f"{access.server}: an answer of more than {MAX_ANSWER_BYTES} bytes")
    return Answer(answer.status, data)


class _TlsConnection(http.client.HTTPSConnection):
    """The server's certificate may have another name than its address."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, server_name: str) -> None:
        super().__init__(host, port, timeout=TIMEOUT_S, context=context)
        self._tls = context
        self._server_name = server_name or host

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


def _token(access: ClusterAccess) -> str:
    credentials = access.credentials
    return read_file(credentials.token_file).decode("ascii").strip() if credentials.token_file else credentials.token


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
