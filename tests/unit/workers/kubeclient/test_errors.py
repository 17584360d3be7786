"""Errors of the API server's answers."""

from __future__ import annotations

import json

import pytest

from workers.kubeclient.errors import MAX_MESSAGE_CHARS, api_error


def status(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", **fields}).encode()


def test_a_status_is_taken_as_it_is() -> None:
    details = {
        "name": "web",
        "kind": "Pod",
        "causes": [{"reason": "FieldValueInvalid", "message": "no", "field": "spec"}],
        "retryAfterSeconds": 4,
    }
    error = api_error(422, status(message="it is wrong", reason="Invalid", details=details, code=422))
    assert (error.code, error.reason, error.message, str(error)) == (422, "Invalid", "it is wrong", "it is wrong")
    assert error.retry_after_s == 4.0
    assert error.has_cause("FieldValueInvalid")
    assert not error.has_cause("FieldValueRequired")
    assert error.details is not None
    assert error.details.name == "web"


def test_the_header_goes_before_the_body() -> None:
    assert api_error(429, status(details={"retryAfterSeconds": 4}), 2.0).retry_after_s == 2.0


@pytest.mark.parametrize(
    ("code", "body", "reason", "message"),
    [
        (404, b"404 page not found\n", "NotFound", "404 page not found"),
        (503, b"", "ServiceUnavailable", "the server answered 503"),
        (418, b"", "", "the server answered 418"),
        (403, b'{"kind":"Pod","metadata":{}}', "Forbidden", '{"kind":"Pod","metadata":{}}'),
        (500, b"\xff" * 9000, "InternalError", "\ufffd" * MAX_MESSAGE_CHARS),
        (500, b"[" * 9000, "InternalError", "[" * MAX_MESSAGE_CHARS),
    ],
)
def test_other_answers_have_the_words_of_http(code: int, body: bytes, reason: str, message: str) -> None:
    error = api_error(code, body)
    assert (error.code, error.reason, error.message) == (code, reason, message)


@pytest.mark.parametrize(
    ("code", "reason", "true"),
    [
        (404, "NotFound", {"is_not_found"}),
        (409, "Conflict", {"is_conflict"}),
        (409, "AlreadyExists", {"already_exists"}),
        (403, "Forbidden", {"is_forbidden"}),
        (401, "Unauthorized", {"is_unauthorized"}),
        (410, "Expired", {"is_expired"}),
        (410, "Gone", {"is_expired"}),
        (500, "InternalError", set()),
    ],
)
def test_kinds_of_error(code: int, reason: str, true: set[str]) -> None:
    error = api_error(code, status(reason=reason, code=code))
    every = ("is_not_found", "is_conflict", "already_exists", "is_forbidden", "is_unauthorized", "is_expired")
    assert {name for name in every if getattr(error, name)} == true


def test_the_status_of_an_event_says_its_code() -> None:
    error = api_error(0, status(message="too old resource version", reason="Expired", code=410))
    assert error.code == 410
    assert error.is_expired


@pytest.mark.parametrize("body", [b"null", b"[]", b'{"message":"\xff"}', b'{"code":"x"}', b"[" * 9000])
def test_an_answer_that_is_no_status_has_the_words_of_http(body: bytes) -> None:
    error = api_error(503, body)
    assert (error.code, error.reason) == (503, "ServiceUnavailable")
