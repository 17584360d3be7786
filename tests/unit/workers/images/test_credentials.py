"""Logins that a pod's Secrets have for an image (pkg/credentialprovider/keyring_test.go has the kinds of cases)."""

from __future__ import annotations

import base64
import json

import pytest

from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.podobjects.registry_login import RegistryLogin
from workers.images.credentials import DOCKER_CFG, DOCKER_CONFIG_JSON, PullSecretError, logins_for, read_pull_secret
from workers.kubecontainer.image_reference import parse_image_reference

PASSWORD = "no one may read this"


def secret(*registries: str, type: str = DOCKER_CONFIG_JSON) -> Secret:
    """The user name of each login is its key."""
    entries = {
        key: {"auth": base64.b64encode(f"{key.replace(':', '_')}:{PASSWORD}".encode()).decode()} for key in registries
    }
    body = json.dumps({"auths": entries} if type == DOCKER_CONFIG_JSON else entries).encode()
    key = ".dockerconfigjson" if type == DOCKER_CONFIG_JSON else ".dockercfg"
    return Secret(metadata=ObjectMeta(namespace="default", name="pull"), type=type, data={key: body})


@pytest.mark.parametrize(
    ("image", "registries", "found"),
    [
        ("quay.io/a/b", ("quay.io",), ["quay.io"]),
        ("quay.io/a/b", ("https://quay.io/v2/",), ["https_//quay.io/v2/"]),
        ("quay.io/a/b", ("quay.io/a", "quay.io", "quay.io/c"), ["quay.io/a", "quay.io"]),
        ("quay.io/a/b", ("gcr.io", "io", "a.quay.io"), []),
        ("eu.gcr.io/a/b", ("*.gcr.io",), ["*.gcr.io"]),
        ("gcr.io/a/b", ("*.gcr.io",), []),
        ("host:5000/a", ("host:5000",), ["host_5000"]),
        ("host:5000/a", ("host", "host:5001"), []),
        ("nginx", ("https://index.docker.io/v1/",), ["https_//index.docker.io/v1/"]),
        ("nginx", ("docker.io",), ["docker.io"]),
        ("quay.io/a/b", ("https://index.docker.io/v1/",), []),
    ],
)
def test_a_key_names_a_registry_and_what_lies_below_it(
    image: str, registries: tuple[str, ...], found: list[str]
) -> None:
    logins = logins_for(parse_image_reference(image), read_pull_secret(secret(*registries)))
    assert [login.username for login in logins] == found
    assert {login.password for login in logins} <= {PASSWORD}


def test_logins_of_several_secrets_are_tried_once_each() -> None:
    image = parse_image_reference("quay.io/a/b")
    three = [secret("quay.io"), secret("quay.io", type=DOCKER_CFG), secret("quay.io/a")]
    logins = [login for one in three for login in read_pull_secret(one)]
    assert [login.username for login in logins_for(image, logins)] == ["quay.io/a", "quay.io"]


def test_a_secret_of_another_type_has_no_logins() -> None:
    other = Secret(type="Opaque", data=secret("quay.io").data)
    assert read_pull_secret(other) == ()


@pytest.mark.parametrize("registry", ["[quay.io", "https://", "/v2/", "http://http://[", "quay.io\u2100"])
def test_what_is_no_registry_keeps_nobody_from_the_others(registry: str) -> None:
    found = logins_for(parse_image_reference("quay.io/a/b"), read_pull_secret(secret(registry, "quay.io")))
    assert [login.username for login in found] == ["quay.io"]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"auths": {"a": {"auth": "?"}}}', b'{"auths": {"a": {"auth": "bm9jb2xvbg=="}}}', b"\xff"]
)
def test_what_holds_no_logins_is_told_without_a_word_of_it(body: bytes) -> None:
    broken = Secret(
        metadata=ObjectMeta(namespace="default", name="pull"),
        type=DOCKER_CONFIG_JSON,
        data={".dockerconfigjson": body},
    )
    with pytest.raises(PullSecretError) as raised:
        read_pull_secret(broken)
    assert str(raised.value) == (
        "secret default/pull has no registry logins: its .dockerconfigjson must be like "
        '{"auths": {"quay.io": {"auth": "BASE64"}}} (user:password)'
    )


def test_nothing_of_a_login_shows_but_its_name() -> None:
    login = RegistryLogin(username="tester", password=PASSWORD, identity_token=PASSWORD)
    assert PASSWORD not in repr(login)
    assert PASSWORD not in login.fingerprint()
