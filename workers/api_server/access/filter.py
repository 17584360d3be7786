"""The filter that every request to the secure port passes before anybody looks where it goes (pkg/kubelet/server,
server.go, InstallAuthFilter).

Different on purpose: upstream answers 404 for a path that is not there to everybody; here nobody without a name learns
which paths there are.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

from ipc.text.safe_text import safe_line
from ipc.wire.server_settings import ServerSettings
from workers.api_server.access.attributes import request_attributes
from workers.api_server.access.rules import forbidden, is_allowed
from workers.api_server.access.users import TokenFileError, Tokens, User, authenticate, read_tokens
from workers.api_server.core.request_keys import USER
from workers.api_server.core.route import plain_text

_FOR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
UNAUTHORIZED: Final = "Unauthorized"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_log: Final = logging.getLogger(__name__)


class TokenFile:
    """The tokens of a file, read again when it changes. One that cannot be used lets nobody in by a token."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._mark: tuple[int, int, int] | None = None
        self._tokens = Tokens({})

    def tokens(self) -> Tokens:
        """The newest ones."""
        if not self._file:
            return self._tokens
        try:
            status = os.stat(self._file)
        except OSError:
            mark = (0, 0, 0)
        else:
            mark = (status.st_ino, status.st_size, status.st_mtime_ns)
        if mark != self._mark:
            self._mark = mark
            self._tokens = self._read()
        return self._tokens

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

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._tokens = TokenFile(settings.token_file)

    @web.middleware
    async def filtered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answers 401 and 403 itself."""
        user = self._user(request)
        if user is None:
            return plain_text(401, UNAUTHORIZED)
        request[USER] = user.name
        wanted = request_attributes(request.method, request.path)
        if not is_allowed(user, wanted, self._settings.rules):
            words = forbidden(user, wanted)
            _log.info("%s", safe_line(words))
            return plain_text(403, words)
        return await handler(request)

    def _user(self, request: web.Request) -> User | None:
        """The user of a request. Of a header that stands there twice the first one counts, as in Go."""
        certificate = None if request.transport is None else request.transport.get_extra_info("peercert")
        authorization = request.headers.get(hdrs.AUTHORIZATION, "")
        return authenticate(certificate, authorization, self._tokens.tokens(), self._settings.anonymous)
