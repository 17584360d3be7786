"""Users that ask, and whether they may."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from workers.api_server.access.attributes import Attributes, request_attributes
from workers.api_server.access.filter import forbidden, is_allowed
from workers.api_server.access.users import (
    AUTHENTICATED,
    NOBODY,
    TokenFileError,
    Tokens,
    User,
    authenticate,
    bearer_token,
    read_tokens,
    user_of_certificate,
)

TOKENS = Tokens({"secret": User("ann", ("ops",))})
CERTIFICATE = {"subject": ((("organizationName", "a"),), (("organizationName", "b"),), (("commonName", "bob"),))}


def test_a_certificates_subject() -> None:
    assert user_of_certificate(CERTIFICATE) == User("bob", ("a", "b"))
    named = (("authentication.kubernetes.io/credential-id", (f"X509SHA256={hashlib.sha256(b'der').hexdigest()}",)),)
    assert user_of_certificate(CERTIFICATE, b"der") == User("bob", ("a", "b"), extra=named)
    assert user_of_certificate({}) is None
    assert user_of_certificate({"subject": ((("commonName", ""),),)}) is None


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc", None),
        ("BEARER abc def", "abc"),
        ("Bearer", None),
        ("Basic abc", None),
        ("", None),
    ],
)
def test_bearer_tokens(header: str, token: str | None) -> None:
    assert bearer_token(header) == token


def test_whom_somebody_is_taken_for() -> None:
    ann, bob = User("ann", ("ops", AUTHENTICATED)), User("bob", ("a", "b", AUTHENTICATED))
    assert authenticate(None, "Bearer secret", TOKENS, anonymous=False) == ann
    assert authenticate(CERTIFICATE, "", TOKENS, anonymous=False) == bob
    assert authenticate(CERTIFICATE, "Bearer secret", TOKENS, anonymous=False) == bob
    assert authenticate(None, "Bearer Secret", TOKENS, anonymous=True) is None
    assert authenticate(None, "", TOKENS, anonymous=False) is None
    assert authenticate(None, "", TOKENS, anonymous=True) == NOBODY
    assert authenticate(None, "", Tokens({}), anonymous=False) is None


def test_a_file_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text('# token,user,uid,groups\n\nabc,ann,1\nd,bob,2,"x, y"\n')
    tokens = read_tokens(file)
    assert (tokens.find("abc"), tokens.find("d")) == (User("ann"), User("bob", ("x", "y")))
    assert tokens.find("") is tokens.find("ab") is None


@pytest.mark.parametrize("text", ["abc,ann\n", ",ann,1\n", 'a,"b\n', "\x00\xff"])
def test_a_file_that_is_none_repeats_no_token(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(TokenFileError) as caught:
        read_tokens(file)
    assert "abc" not in str(caught.value)
    with pytest.raises(TokenFileError):
        read_tokens(tmp_path / "none")


def test_rules() -> None:
    logs, pods = request_attributes("GET", "/logs/"), request_attributes("GET", "/pods")
    rules = {"ann": ("log",), "group:ops": ("proxy",), "root": ("*",)}
    assert is_allowed(User("ann"), logs, rules)
    assert not is_allowed(User("ann"), pods, rules)
    assert is_allowed(User("carl", ("ops",)), pods, rules), "proxy allows what is finer than it"
    assert not is_allowed(User("ops"), pods, rules)
    assert not is_allowed(User("group:ops"), pods, {"ops": ("*",)})
    assert is_allowed(User("root"), logs, rules)
    assert is_allowed(User("anybody"), pods, None)
    assert not is_allowed(User("anybody"), pods, {})


@pytest.mark.parametrize("path", ["/pods", "/podInfo", "/runningpods/", "/allocatedPods", "/allocatedPods/ns/web/1"])
def test_pods_have_a_subresource_of_their_own(path: str) -> None:
    assert request_attributes("GET", path) == (Attributes("get", "pods"), Attributes("get", "proxy"))


def test_a_user_whose_name_looks_like_a_group_holds_nothing_of_it() -> None:
    assert not is_allowed(User("group:ops"), request_attributes("GET", "/pods"), {"group:ops": ("*",)})


def test_the_words_of_a_refusal() -> None:
    assert forbidden(User("ann"), (Attributes("get", "pods"), Attributes("get", "proxy"))) == (
        "Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    )
