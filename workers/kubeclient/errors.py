"""Failures of a request to the API server: those that it answers with (`ApiError`), and no answer (`Unreachable`)."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE

MAX_MESSAGE_CHARS: Final = 2048
"""Longest text of an error body without a Status that is kept (apimachinery pkg/api/errors, errors.go keeps 2048 bytes
of one that is no Status, client-go rest/request.go, maxUnstructuredResponseTextBytes)."""

MAX_TOLD_CHARS: Final = 64

BAD_REQUEST: Final = "BadRequest"
UNAUTHORIZED: Final = "Unauthorized"
FORBIDDEN: Final = "Forbidden"
NOT_FOUND: Final = "NotFound"
METHOD_NOT_ALLOWED: Final = "MethodNotAllowed"
NOT_ACCEPTABLE: Final = "NotAcceptable"
ALREADY_EXISTS: Final = "AlreadyExists"
CONFLICT: Final = "Conflict"
GONE: Final = "Gone"
EXPIRED: Final = "Expired"
TOO_LARGE: Final = "RequestEntityTooLarge"
UNSUPPORTED_MEDIA_TYPE: Final = "UnsupportedMediaType"
INVALID: Final = "Invalid"
TOO_MANY_REQUESTS: Final = "TooManyRequests"
INTERNAL_ERROR: Final = "InternalError"
SERVICE_UNAVAILABLE: Final = "ServiceUnavailable"
TIMEOUT: Final = "Timeout"
UNKNOWN: Final = ""

_REASON_OF_CODE: Final = {
    400: BAD_REQUEST,
    401: UNAUTHORIZED,
    403: FORBIDDEN,
    404: NOT_FOUND,
    405: METHOD_NOT_ALLOWED,
    406: NOT_ACCEPTABLE,
    409: CONFLICT,
    410: GONE,
    413: TOO_LARGE,
    415: UNSUPPORTED_MEDIA_TYPE,
    422: INVALID,
    429: TOO_MANY_REQUESTS,
    500: INTERNAL_ERROR,
    503: SERVICE_UNAVAILABLE,
    504: TIMEOUT,
}
"""Reasons of answers that bring no Status of their own (apimachinery NewGenericServerResponse)."""


class StatusCause(msgspec.Struct, frozen=True):
    """One reason why the server refused, such as a field of the object."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The object that an error is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """metav1.Status; fields that are missing are those of an empty one."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


_STATUS: Final = msgspec.json.Decoder(Status)


class ClusterError(Exception):
    """A request to the API server that failed, of either kind."""


class Unreachable(ClusterError):
    """There is no answer, or none in time: whether the server has acted on the request is unknown.

    Its text is the cause in words, without credentials.
    """


class ApiError(ClusterError):
    """The API server's answer to a request that it did not carry out, or an ERROR event of a watch."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        causes: tuple[StatusCause, ...] = (),
        details: StatusDetails | None = None,
    ) -> None:
        """``retry_after_s``: seconds after which the server wants to be asked again; None when it does not say."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.causes = causes
        self.details = details

    @property
    def is_not_found(self) -> bool:
        """404: the object, or its path, is not there."""
        return self.reason == NOT_FOUND or self.code == 404

    @property
    def is_conflict(self) -> bool:
        """409 of a precondition or a resourceVersion that is not the newest; not *AlreadyExists*."""
        return self.reason == CONFLICT or (self.code == 409 and self.reason != ALREADY_EXISTS)

    @property
    def already_exists(self) -> bool:
        """409 of a POST of an object that is there."""
        return self.reason == ALREADY_EXISTS

    @property
    def is_forbidden(self) -> bool:
        """403: the user of the credentials may not."""
        return self.reason == FORBIDDEN or self.code == 403

    @property
    def is_unauthorized(self) -> bool:
        """401: the server does not take the credentials."""
        return self.reason == UNAUTHORIZED or self.code == 401

    @property
    def is_expired(self) -> bool:
        """410: the resourceVersion lies before the server's history; list anew (IsResourceExpired, IsGone)."""
        return self.reason in (EXPIRED, GONE) or self.code == 410

    def has_cause(self, reason: str) -> bool:
        """Whether a cause has that reason (apimachinery HasStatusCause)."""
        return any(cause.reason == reason for cause in self.causes)


def check_name(reported: str, asked: str) -> None:
    """Check that the server has answered about the object it was asked for. Raises ValueError."""
    if reported != asked:
        raise ValueError(f"the server has told of another object, {reported[:MAX_TOLD_CHARS]!r}")


def api_error(code: int, body: bytes, retry_after_s: float | None = None) -> ApiError:
    """Error of an answer of 400 or more, or of an ERROR event (``code`` 0: the one that the Status says).

    The Status of the body when it is one, else the words of HTTP. ``retry_after_s``: the header, which goes before the
    body's ``details.retryAfterSeconds`` (client-go rest/request.go, transformResponse).
    """
    try:
        status = _STATUS.decode(body)
    except UNDECODABLE:
        status = Status()
    if status.kind != "Status" or (status.status and status.status != "Failure"):
        return ApiError(code, _REASON_OF_CODE.get(code, UNKNOWN), _words(code, body), retry_after_s=retry_after_s)
    details = status.details or StatusDetails()
    if retry_after_s is None and details.retry_after_seconds > 0:
        retry_after_s = float(details.retry_after_seconds)
    known = code or status.code
    return ApiError(
        known,
        status.reason or _REASON_OF_CODE.get(known, UNKNOWN),
        status.message[:MAX_MESSAGE_CHARS] or _words(known, b""),
        retry_after_s=retry_after_s,
        causes=details.causes or (),
        details=status.details,
    )


def _words(code: int, body: bytes) -> str:
    text = body[:MAX_MESSAGE_CHARS].decode(errors="replace").strip()
    return text or f"the server answered {code}"
