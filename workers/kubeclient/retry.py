"""Repetitions of a request (client-go rest/with_retry.go, request.go). Pure."""

from __future__ import annotations

import re
from typing import Final

MAX_RETRIES: Final = 10
"""How often one request is repeated, at most (client-go's default)."""
MAX_RETRY_AFTER_S: Final = 24 * 3600
"""Longest Retry-After that is read, in seconds."""
BREAK_PAUSE_S: Final = 1.0
_SECONDS: Final = re.compile(r"[0-9]{1,9}")


def retry_after_s(header: str) -> float | None:
    """Seconds of a Retry-After header; None without one. A date is no answer of an API server."""
    text = header.strip()
    return float(min(int(text), MAX_RETRY_AFTER_S)) if _SECONDS.fullmatch(text) else None


def pause_after_answer(retries: int, code: int, header: str) -> float | None:
    """Seconds after which a request is repeated whose answer was ``code``; None: the answer stands.

    429 and 5xx are repeated where the server says when, whatever the verb: it has not acted. ``retries``: repetitions
    so far.
    """
    if retries >= MAX_RETRIES or not (code == 429 or 500 <= code < 600):
        return None
    return retry_after_s(header)


def pause_after_break(retries: int, verb: str) -> float | None:
    """Seconds after which a request is repeated whose connection was reset or ended before the answer did; None: it
    stands, as the server may have acted on it. The first time at once: a kept connection may have ended unnoticed."""
    if retries >= MAX_RETRIES or verb != "GET":
        return None
    return BREAK_PAUSE_S if retries else 0.0
