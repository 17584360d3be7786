"""Refusals of the API server, as the Status objects that Kubernetes 1.36 answers with (apimachinery pkg/api/errors)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

JsonObject = dict[str, Any]


class Refusal(Exception):
    """An answer that is not a success: its code, and the Status that is its body."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: JsonObject | None = None,
        headers: Mapping[str, str] = {},
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details
        self.headers = dict(headers)

    def status(self) -> JsonObject:
        """The body."""
        found: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        found |= {"message": str(self), "reason": self.reason}
        if self.details is not None:
            found["details"] = self.details
        return found | {"code": self.code}


def _named(name: str, group: str, kind: str, **more: Any) -> JsonObject:
    found = {"name": name, "group": group, "kind": kind} | more
    return {key: value for key, value in found.items() if value}


def not_found(plural: str, name: str, group: str = "") -> Refusal:
    resource = f"{plural}.{group}" if group else plural
    return Refusal(404, "NotFound", f'{resource} "{name}" not found', _named(name, group, plural))


def no_such_path() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(plural: str, name: str, group: str = "") -> Refusal:
    resource = f"{plural}.{group}" if group else plural
    return Refusal(409, "AlreadyExists", f'{resource} "{name}" already exists', _named(name, group, plural))


def conflict(plural: str, name: str, message: str, group: str = "") -> Refusal:
    resource = f"{plural}.{group}" if group else plural
    said = f'Operation cannot be fulfilled on {resource} "{name}": {message}'
    return Refusal(409, "Conflict", said, _named(name, group, plural))


MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def unauthorized() -> Refusal:
    return Refusal(401, "Unauthorized", "Unauthorized")


def forbidden(plural: str, name: str, message: str, group: str = "") -> Refusal:
    """``pods "x" is forbidden: …``, or without a name ``pods is forbidden: …``."""
    resource = f"{plural}.{group}" if group else plural
    said = f'{resource} "{name}" is forbidden: {message}' if name else f"{resource} is forbidden: {message}"
    return Refusal(403, "Forbidden", said, _named(name, group, plural))


def not_allowed() -> Refusal:
    said = "the server does not allow this method on the requested resource"
    return Refusal(405, "MethodNotAllowed", said, {})


_REPRESENTATIONS: Final = (
    "application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch"
)


def not_acceptable() -> Refusal:
    said = f"406: Not Acceptable\n\nAvailable representations: {_REPRESENTATIONS}"
    return Refusal(406, "NotAcceptable", said, {})


def unknown_body() -> Refusal:
    accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    said = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return Refusal(415, "UnsupportedMediaType", said)


def unknown_patch() -> Refusal:
    return Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


MAX_BODY: Final = 3 * 1024 * 1024
"""Bytes."""


def too_large() -> Refusal:
    return Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}")


class Cause:
    """One wrong field of an object."""

    def __init__(self, field: str, message: str, reason: str = "FieldValueInvalid") -> None:
        self.field = field
        self.message = message
        self.reason = reason

    def as_json(self) -> JsonObject:
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required(field: str, more: str = "") -> Cause:
    return Cause(field, f"Required value: {more}" if more else "Required value", "FieldValueRequired")


def not_permitted(field: str, message: str) -> Cause:
    return Cause(field, f"Forbidden: {message}", "FieldValueForbidden")


def invalid(kind: str, name: str, causes: Sequence[Cause], group: str = "") -> Refusal:
    """Every cause after its field; several stand in brackets."""
    told = [f"{cause.field}: {cause.message}" for cause in causes]
    said = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    full = f"{kind}.{group}" if group else kind
    details = _named(name, group, kind) | {"causes": [cause.as_json() for cause in causes]}
    return Refusal(422, "Invalid", f'{full} "{name}" is invalid: {said}', details)


def expired_watch(asked: int, oldest: int) -> Refusal:
    return Refusal(410, "Expired", f"too old resource version: {asked} ({oldest})")


def expired_list() -> Refusal:
    return Refusal(410, "Expired", "The resourceVersion for the provided list is too old.")


def expired_continue() -> Refusal:
    said = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    return Refusal(410, "Expired", said)


def too_large_version(asked: int, current: int) -> Refusal:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    said = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Refusal(504, "Timeout", said, {"causes": [cause], "retryAfterSeconds": 1}, {"Retry-After": "1"})


def budget_exhausted(budget: str) -> Refusal:
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget {budget} needs 1 healthy pods and has 1 currently",
    }
    said = "Cannot evict pod as it would violate the pod's disruption budget."
    return Refusal(429, "TooManyRequests", said, {"causes": [cause]})
