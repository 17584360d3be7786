"""Registry credentials of a pod's imagePullSecrets for an image. Pure.

Mirrors pkg/credentialprovider (keyring.go: BasicDockerKeyring; config.go) and its secrets.MakeDockerKeyring: a key of
the file is a registry with an optional path, its host may hold wildcards, and the longest key that matches comes first.
"""

from __future__ import annotations

import base64
import fnmatch
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.podobjects.registry_login import RegistryLogin
from workers.kubecontainer.image_reference import ImageReference
from workers.podhttp.urls import ascii_url

DOCKER_CONFIG_JSON: Final = "kubernetes.io/dockerconfigjson"
DOCKER_CFG: Final = "kubernetes.io/dockercfg"
MAX_LOGINS: Final = 16
"""Most that are tried for one image."""
_HUB: Final = "docker.io"
_HUB_KEY: Final = "index.docker.io"
_API_VERSIONS: Final = ("/v1/", "/v2/")

_WANTED: Final[Mapping[str, str]] = {
    DOCKER_CONFIG_JSON: 'its .dockerconfigjson must be like {"auths": {"quay.io": {"auth": "BASE64"}}} (user:password)',
    DOCKER_CFG: 'its .dockercfg must be like {"quay.io": {"auth": "BASE64"}} (user:password)',
}


class PullSecretError(Exception):
    """A Secret that holds no file of logins. The text has nothing of its content."""


class _Entry(msgspec.Struct, frozen=True):
    username: str = ""
    password: str = ""
    auth: str = ""
    identitytoken: str = ""


class _ConfigJson(msgspec.Struct, frozen=True):
    auths: dict[str, _Entry] = {}


class KeyedLogin(msgspec.Struct, frozen=True):
    """A login, and the registries that it is for."""

    key: str
    """A registry's host, with its port and a path if it has them; the host may hold wildcards. Empty for none."""
    login: RegistryLogin


def logins_for(image: ImageReference, logins: Iterable[KeyedLogin]) -> tuple[RegistryLogin, ...]:
    """The logins for that image, in the order in which they are tried."""
    known = list(logins)
    matching = [keyed for keyed in known if is_key_for(keyed.key, image)]
    if not matching and image.domain == _HUB:
        matching = [keyed for keyed in known if keyed.key.partition("/")[0] == _HUB_KEY]
    matching.sort(key=lambda keyed: keyed.key, reverse=True)
    return tuple(dict.fromkeys(keyed.login for keyed in matching))[:MAX_LOGINS]


def read_pull_secret(secret: Secret) -> tuple[KeyedLogin, ...]:
    """Logins of a Secret: none of one of another type; those for no valid registry are left out, as upstream.

    Raises PullSecretError.
    """
    where = f"{secret.metadata.namespace}/{secret.metadata.name}"
    try:
        logins = [keyed_login(registry, _login(entry)) for registry, entry in _entries(secret).items()]
    except UNDECODABLE:
        raise PullSecretError(
            f"secret {where} has no registry logins: {_WANTED.get(secret.type, 'its type is another')}"
        ) from None
    return tuple(keyed for keyed in logins if keyed.key)


def keyed_login(registry: str, login: RegistryLogin) -> KeyedLogin:
    """The login for what the entry's name says (BasicDockerKeyring.Add)."""
    return KeyedLogin(_key(registry), login)


def _entries(secret: Secret) -> Mapping[str, _Entry]:
    """Raises msgspec.DecodeError."""
    if secret.type == DOCKER_CONFIG_JSON and (data := secret.data.get(".dockerconfigjson")) is not None:
        return msgspec.json.decode(data, type=_ConfigJson).auths
    if secret.type == DOCKER_CFG and (data := secret.data.get(".dockercfg")) is not None:
        return msgspec.json.decode(data, type=dict[str, _Entry])
    return {}


def _login(entry: _Entry) -> RegistryLogin:
    """``auth`` counts before the two others (dockerConfigEntryWithAuth). Raises ValueError."""
    if not entry.auth:
        return RegistryLogin(username=entry.username, password=entry.password, identity_token=entry.identitytoken)
    username, colon, password = base64.b64decode(entry.auth).decode().partition(":")
    if not colon:
        raise ValueError("no colon")
    return RegistryLogin(username=username, password=password.rstrip("\0"), identity_token=entry.identitytoken)


def _key(registry: str) -> str:
    """Host with port, and path if it has one (BasicDockerKeyring.Add); empty for what is no address."""
    try:
        url = _split(registry)
        path = next((url.path[3:] for version in _API_VERSIONS if url.path.startswith(version)), url.path)
        key = url.netloc + (path.rstrip("/") if path != "/" else "")
        _split(key)
    except ValueError:
        return ""
    return key


def is_key_for(key: str, image: ImageReference) -> bool:
    """Whether a key names the image's registry, or a part of it that the image lies in (URLsMatch): the same number of
    labels, each one matching; the same port; a path that the image's begins with."""
    wanted, found = _split(key), _split(f"{image.domain}/{image.path}")
    wanted_host, wanted_port = _host_and_port(wanted)
    host, port = _host_and_port(found)
    labels, own = wanted_host.split("."), host.split(".")
    return (
        wanted_port == port
        and len(labels) == len(own)
        and found.path.startswith(wanted.path)
        and all(fnmatch.fnmatchcase(label, pattern) for label, pattern in zip(own, labels, strict=True))
    )


def _split(text: str) -> SplitResult:
    """Raises ValueError."""
    text = ascii_url(text)
    return urlsplit(text if text.startswith(("http://", "https://")) else f"https://{text}")


def _host_and_port(url: SplitResult) -> tuple[str, str]:
    host, _, port = url.netloc.rpartition(":")
    return (host, port) if host and port.isdigit() else (url.netloc, "")
