"""The HTTP server's log of requests that are no HTTP: one line each instead of a traceback."""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

MALFORMED: Final = (HttpProcessingError, web.RequestPayloadError)
"""A client's errors: of the request's head, and of its body."""
MAX_WORDS_CHARS: Final = 200
"""How much of an error is logged, in characters: it quotes what the client has sent."""


class _OneLine(logging.Filter):
    """Takes the traceback away from a client's errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, MALFORMED):
            words = ascii(" ".join(str(error).split()))[1:-1]
            record.msg, record.args = "refused a malformed request: %s", (words[:MAX_WORDS_CHARS],)
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
            record.exc_info = record.exc_text = None
        return True


HTTP_LOG: Final = logging.getLogger(__name__)
"""For aiohttp's server."""
HTTP_LOG.addFilter(_OneLine())
