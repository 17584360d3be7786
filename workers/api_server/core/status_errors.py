"""Errors of an answer, as the v1 ``Status`` that kubectl prints (apimachinery pkg/api/errors)."""

from __future__ import annotations

import http
from typing import Final

import msgspec

from ipc.host.text.safe_text import encodable_text

MAX_MESSAGE_CHARS: Final = 64 * 1024
"""Longest text in a Status, in characters: a manifest can be wrong in a great many places."""

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""meta/v1 StatusReason by HTTP status, where the code alone says it."""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """meta/v1 StatusDetails."""

    name: str = ""
    kind: str = ""
    retry_after_seconds: int = 0


class _Empty(msgspec.Struct, frozen=True):
    """An object without fields: the metadata of a Status."""


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """meta/v1 Status."""

    kind: str = msgspec.field(default_factory=lambda: "Status")
    api_version: str = msgspec.field(default_factory=lambda: "v1")
    metadata: _Empty = msgspec.field(default_factory=_Empty)
    status: str
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int


class ApiError(Exception):
    """A request that cannot be answered as asked; becomes a Status of that code. ``reason`` follows from the code."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        details: StatusDetails | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """``headers`` are the answer's."""
        super().__init__(message)
        self.headers = headers
        self.status = failure(code, message, reason=reason, details=details)


def failure(code: int, message: str, *, reason: str = "", details: StatusDetails | None = None) -> Status:
    """The Status of a failed request."""
    known = reason or _REASONS.get(code) or http.HTTPStatus(code).phrase.replace(" ", "")
    words = encodable_text(message[:MAX_MESSAGE_CHARS])
    return Status(status="Failure", message=words, reason=known, details=details, code=code)


def success(code: int, *, name: str, kind: str) -> Status:
    """The Status of a request that was carried out."""
    return Status(status="Success", details=StatusDetails(name=name, kind=kind), code=code)


def bad_request(message: str) -> ApiError:
    """The request itself makes no sense."""
    return ApiError(400, message)


def not_found(kind: str, name: str) -> ApiError:
    """No such object; ``kind`` is the resource in the plural, as upstream prints it."""
    return ApiError(404, f'{kind} "{name}" not found', details=StatusDetails(name=encodable_text(name), kind=kind))


def expired(message: str) -> ApiError:
    """A resourceVersion that can no longer (or not yet) be resumed from: list again."""
    return ApiError(410, message)


def too_many(message: str) -> ApiError:
    """A named maximum is reached; later it may not be."""
    return ApiError(429, message, details=StatusDetails(retry_after_seconds=1))


def unavailable(message: str) -> ApiError:
    """Error 503: the server cannot answer now, but soon."""
    return ApiError(503, message, details=StatusDetails(retry_after_seconds=1))
