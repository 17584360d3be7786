"""The server's TLS context: from the files that are given, or from a certificate of our own, always the newest."""

from __future__ import annotations

import logging
import math
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import move_aside
from ipc.host.clock import Clock
from ipc.k8s.kubeconfig.types import SERVING_CERTIFICATE
from ipc.link.wire.server_settings import CIPHER_SUITES, ServerSettings
from workers.api_server.access.own_certificate import CERTIFICATE, is_due, is_over, make_certificate
from workers.fs.fs_executor import FsExecutor

CHECK_PERIOD_S: Final = 1.0
"""How often files are looked at, at most: with the next connection."""
VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

Marks = tuple[tuple[int, int, int], ...]
"""Inode, size and time of the last change of each file."""

_log: Final = logging.getLogger(__name__)


class NoCertificate(OSError):
    """There is none that can be used: nobody can be served."""


class Certificates:
    """Gives the context for the next connection. Files that cannot be used are told once, and the context before them
    stays; where there was none, nobody is served until there is. The agent and its other ports go on either way."""

    def __init__(self, settings: ServerSettings, clock: Clock) -> None:
        """Reads nothing yet."""
        self._settings = settings
        self._clock = clock
        self._marks: Marks | None = None
        self._context: ssl.SSLContext | None = None
        self._reported = ""
        self._checked_at = -math.inf

    async def newest(self, files: FsExecutor) -> ssl.SSLContext:
        """A context of the newest files, which are read in a thread: while their file system does not answer, the
        context before them stays. Raises NoCertificate."""
        try:
            if self._is_due():
                await files.run_unless_hung(CERTIFICATE, self.context)
        except TimeoutError as error:
            self._tell(f"its files cannot be read: {error.strerror}")
        return self._known()

    def context(self) -> ssl.SSLContext:
        """A context of the newest files. Waits for them. Raises NoCertificate."""
        if self._is_due():
            self._checked_at = self._clock.now().mono
            self._refresh()
        return self._known()

    def _is_due(self) -> bool:
        return self._clock.now().mono - self._checked_at >= CHECK_PERIOD_S

    def _known(self) -> ssl.SSLContext:
        if self._context is None:
            raise NoCertificate(self._reported)
        return self._context

    def _refresh(self) -> None:
        try:
            files = self._files()
            marks = self._look(files)
            if marks != self._marks:
                self._context = server_context(self._settings, *files)
                self._marks, self._reported = marks, ""
                _log.info("the server has read its certificate")
        except (OSError, ValueError) as error:  # `ssl.SSLError` is one of both
            self._tell(str(error))

    def _tell(self, why: str) -> None:
        if why != self._reported:
            self._reported = why
            _log.error("the server's certificate cannot be used: %s", why)

    def _files(self) -> tuple[str, str]:
        """Certificate and key: those that are given, else one that the cluster has signed, else our own."""
        settings, now = self._settings, self._clock.now().wall
        if settings.cert_file:
            return settings.cert_file, settings.key_file
        signed = Path(settings.pki_dir) / SERVING_CERTIFICATE
        if settings.kubeconfig and not is_over(signed, now):
            return str(signed), str(signed)
        return (self._own(now),) * 2

    def _own(self, now: float) -> str:
        """Ours, made if it is due: that blocks for some milliseconds, once in months."""
        file, names = Path(self._settings.pki_dir) / CERTIFICATE, self._settings.addresses
        if is_due(file, names, now) or self._is_damaged(file):
            make_certificate(file, names, now)
            _log.info("made a certificate for %s: %s", ", ".join(names), file)
        return str(file)

    def _is_damaged(self, file: Path) -> bool:
        """Whether a file that has changed is no certificate with its key any more: it was moved aside, with a word."""
        marks = self._look((str(file), str(file)))
        if marks == self._marks:
            return False
        try:
            server_context(msgspec.structs.replace(self._settings, client_ca_file=""), str(file), str(file))
        except ssl.SSLError as error:
            _log.error("%s cannot be used: %s%s; a new one is made", file, error, move_aside(file))
            return True
        return False

    def _look(self, files: tuple[str, str]) -> Marks:
        return tuple(_mark(os.stat(file)) for file in (*files, self._settings.client_ca_file) if file)


def _mark(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def server_context(settings: ServerSettings, cert_file: str, key_file: str) -> ssl.SSLContext:
    """The context of these files.

    A client may show no certificate. One that does not hold ends its handshake, where the kubelet would answer 401:
    OpenSSL, as Python has it, decides before there is a request.

    Raises OSError and ValueError: a file is not there or is no such file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[settings.tls_min_version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if settings.tls_cipher_suites:
        context.set_ciphers(":".join(CIPHER_SUITES[name] for name in settings.tls_cipher_suites))
    context.load_cert_chain(cert_file, key_file)
    context.set_alpn_protocols(["http/1.1"])
    if settings.client_ca_file:
        context.load_verify_locations(settings.client_ca_file)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
