"""Credentials of a kubeconfig, always the newest: files are looked at again, plugins asked again when theirs end."""

from __future__ import annotations

import base64
import logging
import os
import ssl
from typing import Final

import msgspec

from ipc.host.atomic_file import UntrustedFile
from ipc.host.clock import Clock
from ipc.host.log.last_words import LastWords
from ipc.k8s.kubeconfig.client_tls import client_context, read_file
from ipc.k8s.kubeconfig.exec_credential import PluginCredentials, PluginError
from ipc.k8s.kubeconfig.types import ClusterAccess
from workers.fs.fs_executor import FsExecutor
from workers.kubeclient.exec_plugin import PluginRunner

CHECK_PERIOD_S: Final = 1.0
"""How often files are looked at, at most: with the next request."""

Marks = tuple[tuple[int, int, int], ...]
"""Inode, size and time of the last change of each file."""

_log: Final = logging.getLogger(__name__)


class CredentialsError(Exception):
    """Credentials that cannot be used; its text repeats none of them."""


class Identity(msgspec.Struct, frozen=True):
    """TLS and header of a request."""

    context: ssl.SSLContext | None
    """TLS of new connections, the same object until certificate or authorities change; None: no TLS."""
    authorization: str
    """Header; empty: none."""

    def __repr__(self) -> str:
        """Without the header: a traceback or a log may show it."""
        return "Identity(…)"


class CredentialSource:
    """Credentials of one kubeconfig. Of files that cannot be used the content before them stays, and it is told once;
    where there was none, nothing can be asked."""

    def __init__(self, access: ClusterAccess, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        plugin = access.credentials.exec_plugin
        self._plugin = None if plugin is None else PluginRunner(plugin, access, clock)
        self._given = PluginCredentials()
        self._context: ssl.SSLContext | None = None
        self._context_marks: Marks | None = None
        self._token = access.credentials.token
        self._token_marks: Marks | None = None
        self._checked_at = float("-inf")
        self._failures = LastWords()
        self._files = FsExecutor(max_threads=1)

    async def identity(self) -> Identity:
        """Raises CredentialsError."""
        if self._plugin is not None:
            try:
                given = await self._plugin.credentials()
            except PluginError as error:
                raise CredentialsError(str(error)) from None
            if given != self._given:
                if (given.certificate_pem, given.key_pem) != (self._given.certificate_pem, self._given.key_pem):
                    self._context_marks = None
                self._given = given
                self._checked_at = float("-inf")
        now = self._clock.now().mono
        if now - self._checked_at >= CHECK_PERIOD_S:
            await self._refresh()
            self._checked_at = now
        return Identity(self._context, self._authorization())

    def close(self) -> None:
        """End its thread, unless that hangs."""
        self._files.close()

    def refused(self) -> None:
        """The server has answered 401: files and plugins are asked again at the next request."""
        self._checked_at = float("-inf")
        if self._plugin is not None:
            self._plugin.refused()

    async def _refresh(self) -> None:
        """In a thread: files may lie on a file system that does not answer."""
        try:
            await self._files.run_unless_hung(CredentialSource, self._read)
        except (OSError, ValueError, UntrustedFile) as error:  # `ssl.SSLError` is one of the first two
            why = _words(error)
            if (self._access.is_tls and self._context is None) or self._token_is_missing():
                raise CredentialsError(why) from None
            if self._failures.are_new(why):
                _log.error("the cluster's credentials cannot be read, those before them stay: %s", why)
        else:
            self._failures.forget()

    def _read(self) -> None:
        self._refresh_context()
        self._refresh_token()

    def _token_is_missing(self) -> bool:
        return bool(self._access.credentials.token_file) and not self._token

    def _refresh_context(self) -> None:
        if not self._access.is_tls:
            return
        credentials = self._access.credentials
        marks = _marks(self._access.ca_file, credentials.certificate_file, credentials.key_file)
        if marks != self._context_marks:
            self._context = client_context(self._access, self._given)
            self._context_marks = marks

    def _refresh_token(self) -> None:
        file = self._access.credentials.token_file
        if not file:
            return
        marks = _marks(file)
        if marks != self._token_marks:
            token = read_file(file).decode("ascii", "strict").strip()
            if not token or not token.isprintable():
                raise ValueError(f"{file}: is no token")
            self._token, self._token_marks = token, marks

    def _authorization(self) -> str:
        credentials = self._access.credentials
        if token := self._given.token or self._token:
            return f"Bearer {token}"
        if credentials.username:
            pair = f"{credentials.username}:{credentials.password}".encode()
            return f"Basic {base64.b64encode(pair).decode()}"
        return ""


def _marks(*files: str) -> Marks:
    found = (os.stat(file) for file in files if file)
    return tuple((status.st_ino, status.st_size, status.st_mtime_ns) for status in found)


def _words(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "a file of the credentials is no text"
    if isinstance(error, ssl.SSLError):
        return f"a certificate or key cannot be used: {error.reason or error}"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)
