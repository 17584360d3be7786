"""Which logins a pod's imagePullSecrets have for an image. Pure.

Mirrors pkg/credentialprovider (keyring.go: BasicDockerKeyring; config.go) and its secrets.MakeDockerKeyring: a key of
the file is a registry with an optional path, its host may hold wildcards, and the longest key that matches comes first.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from ipc.api import Secret
from ipc.registry_login import RegistryLogin
from workers.image_reference import ImageReference

DOCKER_CONFIG_JSON: Final = "kubernetes.io/dockerconfigjson"
DOCKER_CFG: Final = "kubernetes.io/dockercfg"
MAX_LOGINS: Final = 16
"""Most that are tried for one image."""
_HUB: Final = "docker.io"
_HUB_KEY: Final = "index.docker.io"
_API_VERSIONS: Final = ("/v1/", "/v2/")


class PullSecretError(Exception):
    """A Secret that is no file of logins. The text holds nothing of what is in it."""


class _Entry(msgspec.Struct, frozen=True):
    username: str = ""
    password: str = ""
    auth: str = ""
    identitytoken: str = ""


class _ConfigJson(msgspec.Struct, frozen=True):
    auths: dict[str, _Entry] = {}


def logins_for(image: ImageReference, secrets: Iterable[Secret]) -> tuple[RegistryLogin, ...]:
    """In the order in which they are to be tried. Raises PullSecretError."""
    entries = [(_key(registry), login) for secret in secrets for registry, login in _logins(secret)]
    matching = [(key, login) for key, login in entries if _matches(key, image)]
    if not matching and image.domain == _HUB:
        matching = [(key, login) for key, login in entries if key.partition("/")[0] == _HUB_KEY]
    matching.sort(key=lambda found: found[0], reverse=True)
    return tuple(dict.fromkeys(login for _, login in matching))[:MAX_LOGINS]


def check_pull_secret(secret: Secret) -> None:
    """Raises PullSecretError."""
    for _ in _logins(secret):
        pass


def _logins(secret: Secret) -> Iterator[tuple[str, RegistryLogin]]:
    """Raises PullSecretError. A Secret of another type has none."""
    where = f"{secret.metadata.namespace}/{secret.metadata.name}"
    try:
        if (data := secret.data.get(".dockerconfigjson")) is not None and secret.type == DOCKER_CONFIG_JSON:
            entries = msgspec.json.decode(data, type=_ConfigJson).auths
        elif (data := secret.data.get(".dockercfg")) is not None and secret.type == DOCKER_CFG:
            entries = msgspec.json.decode(data, type=dict[str, _Entry])
        else:
            return
        for registry, entry in entries.items():
            yield registry, _login(entry)
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError, ValueError):
        raise PullSecretError(f"secret {where} holds no registry logins as its type {secret.type} promises") from None


def _login(entry: _Entry) -> RegistryLogin:
    """``auth`` counts before the two others (dockerConfigEntryWithAuth)."""
    if not entry.auth:
        return RegistryLogin(username=entry.username, password=entry.password, identity_token=entry.identitytoken)
    username, colon, password = base64.b64decode(entry.auth).decode().partition(":")
    if not colon:
        raise ValueError("no colon")
    return RegistryLogin(username=username, password=password.rstrip("\0"), identity_token=entry.identitytoken)


def _key(registry: str) -> str:
    """Host with port, and path if it has one (BasicDockerKeyring.Add)."""
    url = _split(registry)
    path = next((url.path[3:] for version in _API_VERSIONS if url.path.startswith(version)), url.path)
    return url.netloc + (path.rstrip("/") if path != "/" else "")


def _matches(key: str, image: ImageReference) -> bool:
    """URLsMatch: the same number of labels, each one matching; the same port; a path that the image's begins with."""
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
    return urlsplit(text if text.startswith(("http://", "https://")) else f"https://{text}")


def _host_and_port(url: SplitResult) -> tuple[str, str]:
    host, _, port = url.netloc.rpartition(":")
    return (host, port) if host and port.isdigit() else (url.netloc, "")
