"""Bodies of reviews as the kubelet sends them, their answers, and how long these count."""

from __future__ import annotations

import json

import pytest

from workers.api_server.access import reviews
from workers.api_server.access.attributes import Attributes
from workers.api_server.access.reviews import (
    AnswerCache,
    ReviewError,
    access_review,
    is_granted,
    reviewed_user,
    token_review,
)
from workers.api_server.access.users import User


def test_a_token_review() -> None:
    assert json.loads(token_review("t")) == {
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "spec": {"token": "t"},
        "status": {"user": {}},
    }


def test_an_access_review_has_everything_that_is_known_of_the_user() -> None:
    user = User("u", ("a", "b"), "1", (("x", ("y",)),))
    assert json.loads(access_review(user, Attributes("get", "pods"), "n1"))["spec"] == {
        "resourceAttributes": {
            "verb": "get",
            "version": "v1",
            "resource": "nodes",
            "subresource": "pods",
            "name": "n1",
        },
        "user": "u",
        "groups": ["a", "b"],
        "uid": "1",
        "extra": {"x": ["y"]},
    }
    assert set(json.loads(access_review(User("u"), Attributes("get", "pods"), "n1"))["spec"]) == {
        "resourceAttributes",
        "user",
        "groups",
    }


def test_the_user_of_a_token() -> None:
    user = {"username": "u", "uid": "1", "groups": ["a"], "extra": {"x": ["y"], "b": ["c"]}}
    answer = json.dumps({"status": {"authenticated": True, "user": user}}).encode()
    assert reviewed_user(answer) == User("u", ("a",), "1", (("b", ("c",)), ("x", ("y",))))
    assert reviewed_user(b'{"status":{"user":{"username":"u"},"error":"invalid bearer token"}}') is None
    assert reviewed_user(b"{}") is None


@pytest.mark.parametrize(
    ("status", "granted"),
    [({"allowed": True}, True), ({"allowed": False}, False), ({}, False), ({"allowed": True, "denied": True}, False)],
)
def test_permissions(status: dict[str, bool], granted: bool) -> None:
    assert is_granted(json.dumps({"status": status}).encode()) is granted


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"status":1}', b"[" * 9000])
def test_what_is_no_review_grants_nothing(answer: bytes) -> None:
    with pytest.raises(ReviewError):
        reviewed_user(answer)
    with pytest.raises(ReviewError):
        is_granted(answer)


def test_answers_count_for_their_time_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "MAX_ANSWERS", 2)
    cache: AnswerCache[bool] = AnswerCache()
    cache.keep("a", False, 10.0)
    assert cache.find("a", 9.9) is False
    assert cache.find("a", 10.0) is None
    cache.keep("a", True, 10.0)
    cache.keep("b", True, 10.0)
    cache.find("a", 1.0)
    cache.keep("c", True, 10.0)
    assert [cache.find(each, 1.0) for each in "abc"] == [True, None, True]
