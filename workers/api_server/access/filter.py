"""The filter that every request to the secure port passes before anybody looks where it goes (pkg/kubelet/server,
server.go, InstallAuthFilter).

Different on purpose: upstream answers 404 for a path that is not there to everybody; here nobody without a name learns
which paths there are.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from aiohttp import hdrs, web

from ipc.host.atomic_file import UntrustedFile
from ipc.host.text.safe_text import safe_line
from ipc.k8s.kubeconfig.types import KubeconfigError
from ipc.link.wire.server_settings import ServerSettings
from workers.api_server.access.attributes import Attributes, request_attributes
from workers.api_server.access.reviews import ReviewError
from workers.api_server.access.users import (
    Certificate,
    TokenFileError,
    Tokens,
    User,
    authenticate,
    bearer_token,
    known,
    read_tokens,
)
from workers.api_server.core.request_keys import USER
from workers.api_server.core.route import plain_text
from workers.fs.fs_executor import FsExecutor
from workers.kubeclient.errors import ClusterError

_FOR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
UNAUTHORIZED: Final = "Unauthorized"

CANNOT_BE_ASKED: Final = (ClusterError, ReviewError, KubeconfigError, UntrustedFile, OSError)
"""Errors of a cluster that does not answer, or of the way there."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_log: Final = logging.getLogger(__name__)


class Reviews(Protocol):
    """`workers.api_server.access.webhook.ClusterReviews`, which is imported where a cluster is asked."""

    async def user(self, token: str) -> User | None: ...

    async def is_allowed(self, user: User, wanted: tuple[Attributes, ...]) -> bool: ...


class TokenFile:
    """The tokens of a file, read again when it changes. One that cannot be used lets nobody in by a token. It is looked
    at in a thread: while its file system does not answer, the tokens that were read before stay."""

    def __init__(self, file: str, files: FsExecutor) -> None:
        self._file = file
        self._files = files
        self._hangs = False
        """Whether it was told that the file system does not answer."""
        self._mark: tuple[int, int, int] | None = None
        self._tokens = Tokens({})

    async def tokens(self) -> Tokens:
        """The newest ones."""
        if not self._file:
            return self._tokens
        try:
            await self._files.run_unless_hung(self._file, self._look)
        except TimeoutError as error:
            if not self._hangs:
                _log.error("%s cannot be read, the tokens before stay: %s", self._file, error.strerror)
            self._hangs = True
        else:
            self._hangs = False
        return self._tokens

    def _look(self) -> None:
        """In a thread."""
        try:
            status = os.stat(self._file)
        except OSError:
            mark = (0, 0, 0)
        else:
            mark = (status.st_ino, status.st_size, status.st_mtime_ns)
        if mark != self._mark:
            self._tokens = self._read()
            self._mark = mark

    def _read(self) -> Tokens:
        try:
            if os.stat(self._file).st_mode & _FOR_OTHERS:
                _log.warning("others than its owner may read the tokens in %s", self._file)
            return read_tokens(Path(self._file))
        except (TokenFileError, OSError) as error:
            _log.error("nobody is let in by a token: %s", error)
            return Tokens({})


class AccessFilter:
    """Authentication and authorization."""

    def __init__(self, settings: ServerSettings, files: FsExecutor, reviews: Reviews | None = None) -> None:
        """``files``: threads. ``reviews``: the cluster, where the settings want it asked."""
        self._settings = settings
        self._tokens = TokenFile(settings.token_file, files)
        self._token_reviews = reviews if settings.reviews_tokens else None
        self._access_reviews = reviews if settings.reviews_access else None

    @web.middleware
    async def filtered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answers 401 and 403 itself."""
        user = await self._user(request)
        if user is None:
            return plain_text(401, UNAUTHORIZED)
        request[USER] = user.name
        wanted = request_attributes(request.method, request.path)
        try:
            allowed = await self._is_allowed(user, wanted)
        except CANNOT_BE_ASKED as error:
            _log.error("the cluster cannot be asked what %s may do: %s", safe_line(user.name), safe_line(str(error)))
            return plain_text(500, unanswered(user, wanted))
        if not allowed:
            words = forbidden(user, wanted)
            _log.info("%s", safe_line(words))
            return plain_text(403, words)
        return await handler(request)

    async def _user(self, request: web.Request) -> User | None:
        """The user of a request. Of a header that stands there twice the first one counts, as in Go. The cluster is
        asked about a token last, as it is the slowest."""
        certificate, der = _shown_certificate(request)
        authorization = request.headers.get(hdrs.AUTHORIZATION, "")
        tokens, anonymous = await self._tokens.tokens(), self._settings.anonymous
        user = authenticate(certificate, authorization, tokens, anonymous, der)
        token = bearer_token(authorization)
        if user is not None or token is None or self._token_reviews is None:
            return user
        try:
            found = await self._token_reviews.user(token)
        except CANNOT_BE_ASKED as error:
            _log.error("the cluster cannot be asked whose token it is: %s", safe_line(str(error)))
            return None
        return None if found is None else known(found)

    async def _is_allowed(self, user: User, wanted: tuple[Attributes, ...]) -> bool:
        if self._access_reviews is not None:
            return await self._access_reviews.is_allowed(user, wanted)
        return is_allowed(user, wanted, self._settings.rules)


def _shown_certificate(request: web.Request) -> tuple[Certificate | None, bytes]:
    """The certificate that a client has shown at the handshake, decoded then, and as it is."""
    transport = request.transport
    certificate: Certificate | None = None if transport is None else transport.get_extra_info("peercert")
    if transport is None or not certificate:
        return certificate, b""
    return certificate, transport.get_extra_info("ssl_object").getpeercert(binary_form=True)


EVERYTHING: Final = "*"
GROUP: Final = "group:"

Rules = Mapping[str, tuple[str, ...]]
"""User, or ``group:`` and a group -> subresources."""


def is_allowed(user: User, wanted: tuple[Attributes, ...], rules: Rules | None) -> bool:
    """Whether any of the permissions is the user's. Without rules everything is (authorization mode AlwaysAllow)."""
    if rules is None:
        return True
    holders = [f"{GROUP}{group}" for group in user.groups]
    if not user.name.startswith(GROUP):  # a certificate can name its user as it likes
        holders.append(user.name)
    held = {subresource for holder in holders for subresource in rules.get(holder, ())}
    return EVERYTHING in held or any(each.subresource in held for each in wanted)


def unanswered(user: User, wanted: tuple[Attributes, ...]) -> str:
    """The kubelet's words where nobody says what a user may (pkg/kubelet/server/server.go, InstallAuthFilter)."""
    first = wanted[0]
    return (
        f"Authorization error (user={user.name}, verb={first.verb}, resource={first.resource},"
        f" subresource={first.subresource})"
    )


def forbidden(user: User, wanted: tuple[Attributes, ...]) -> str:
    """The kubelet's words (pkg/kubelet/server/server.go, InstallAuthFilter)."""
    first, subresources = wanted[0], " ".join(each.subresource for each in wanted)
    return (
        f"Forbidden (user={user.name}, verb={first.verb}, resource={first.resource}, subresource(s)=[{subresources}])\n"
    )
