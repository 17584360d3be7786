"""Images that a credential provider is asked for, what its answers mean, and for how long
(pkg/credentialprovider/plugin/plugin_test.go has the kinds of cases)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ipc.link.wire.credential_provider import CredentialProvider
from workers.images.credentials import logins_for
from workers.images.provider_answers import KeptAnswers, ProviderError, is_for, read_answer, request
from workers.kubecontainer.image_reference import parse_image_reference

V1 = "credentialprovider.kubelet.k8s.io/v1"
PASSWORD = "no one may read this"
IMAGE = parse_image_reference("quay.io/a/b:1")
PROVIDER = CredentialProvider(
    name="shop",
    program="/bin/shop",
    api_version=V1,
    match_images=("quay.io", "*.example.com:5000/team"),
    default_cache_s=60.0,
    args=(PASSWORD,),
    env=(("TOKEN", PASSWORD),),
)


def printed(**changed: Any) -> bytes:
    return json.dumps(
        {
            "kind": "CredentialProviderResponse",
            "apiVersion": V1,
            "cacheKeyType": "Registry",
            "auth": {"quay.io": {"username": "u", "password": PASSWORD}},
            **changed,
        }
    ).encode()


@pytest.mark.parametrize(
    ("image", "asked"),
    [
        ("quay.io/a/b", True),
        ("a.quay.io/b", False),
        ("eu.example.com:5000/team/b", True),
        ("eu.example.com:5000/other/b", False),
        ("eu.example.com/team/b", False),
        ("busybox", False),
    ],
)
def test_a_provider_is_asked_for_what_it_matches(image: str, asked: bool) -> None:
    assert is_for(PROVIDER, parse_image_reference(image)) is asked


def test_the_request_has_the_name_without_its_tag() -> None:
    image = parse_image_reference(f"quay.io/a/b:1@sha256:{'0' * 64}")
    assert json.loads(request(PROVIDER, image)) == {
        "kind": "CredentialProviderRequest",
        "apiVersion": V1,
        "image": "quay.io/a/b",
    }


def test_the_most_special_login_comes_first_and_those_of_other_registries_do_not_count() -> None:
    auth = {name: {"username": name, "password": PASSWORD} for name in ("quay.io", "quay.io/a", "gcr.io", "*.io")}
    answer = read_answer(PROVIDER, IMAGE, printed(auth=auth))
    assert [login.username for login in logins_for(IMAGE, answer.logins)] == ["quay.io/a", "quay.io", "*.io"]


@pytest.mark.parametrize(
    ("said", "cache_s"), [({}, 60.0), ({"cacheDuration": "1h0m0s"}, 3600.0), ({"cacheDuration": "0s"}, 0.0)]
)
def test_the_answer_says_how_long_it_holds_or_the_configuration_does(said: dict[str, str], cache_s: float) -> None:
    assert read_answer(PROVIDER, IMAGE, printed(**said)).cache_s == cache_s


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"", "no JSON object"),
        (b"[" * 100_000, "no JSON object"),
        (printed(apiVersion="v1"), "did not match expected apiVersion"),
        (printed(kind="Other"), "error decoding"),
        (printed(cacheDuration=PASSWORD), "error decoding"),
        (printed(more=PASSWORD), "error decoding"),
        (printed(auth={"quay.io": {"username": 1, "password": PASSWORD}}), "error decoding"),
        (printed(cacheKeyType="Pod"), "did not return a valid cacheKeyType: Pod"),
    ],
)
def test_an_answer_that_cannot_be_used_is_told_without_a_word_of_it(output: bytes, words: str) -> None:
    with pytest.raises(ProviderError, match=words) as raised:
        read_answer(PROVIDER, IMAGE, output)
    assert PASSWORD not in str(raised.value)


def test_nothing_of_a_provider_shows_but_its_name() -> None:
    assert PASSWORD not in repr(PROVIDER)


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("Image", {"quay.io/a/b"}),
        ("Registry", {"quay.io/a/b", "quay.io/c"}),
        ("Global", {"quay.io/a/b", "quay.io/c", "gcr.io/a/b"}),
    ],
)
def test_an_answer_is_kept_for_the_images_that_it_names(kind: str, known: set[str]) -> None:
    kept = KeptAnswers()
    kept.keep(read_answer(PROVIDER, IMAGE, printed(cacheKeyType=kind)), now=100.0)
    images = ("quay.io/a/b", "quay.io/c", "gcr.io/a/b")
    assert {name for name in images if kept.find(parse_image_reference(name), now=160.0) is not None} == known
    assert all(kept.find(parse_image_reference(name), now=160.1) is None for name in images)


def test_an_answer_of_the_image_s_own_counts_before_that_of_its_registry() -> None:
    kept = KeptAnswers()
    of_registry = read_answer(PROVIDER, IMAGE, printed(cacheKeyType="Registry"))
    of_image = read_answer(PROVIDER, IMAGE, printed(cacheKeyType="Image", auth={}))
    for answer in (of_registry, of_image):
        kept.keep(answer, now=0.0)
    assert kept.find(IMAGE, now=1.0) == ()
    assert kept.find(parse_image_reference("quay.io/c"), now=1.0) == of_registry.logins


@pytest.mark.parametrize("duration", ["0s", "-1s"])
def test_an_answer_that_must_not_be_kept_is_not(duration: str) -> None:
    kept = KeptAnswers()
    kept.keep(read_answer(PROVIDER, IMAGE, printed(cacheDuration=duration)), now=0.0)
    assert kept.find(IMAGE, now=0.0) is None


def test_without_a_default_an_answer_that_does_not_say_it_is_not_kept() -> None:
    never = msgspec.structs.replace(PROVIDER, default_cache_s=0.0)
    kept = KeptAnswers()
    kept.keep(read_answer(never, IMAGE, printed()), now=0.0)
    assert kept.find(IMAGE, now=0.0) is None
