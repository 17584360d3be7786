"""Logins for registries, on their way to the Podman service: the user's, and those of pods.

The service reads the files that `podman login` writes by default, and ``DOCKER_CONFIG``. ``REGISTRY_AUTH_FILE`` is
read by Podman's command line alone; here, as there, the logins of that file go along with every pull (pkg/auth of
Podman, ``X-Registry-Config``). Credential helpers that such a file names are not asked.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.regular_files import read_regular_file
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.podobjects.registry_login import RegistryLogin

MAX_FILE_BYTES: Final = 256 * 1024
"""Largest file of logins that is read."""
HEADER: Final = "X-Registry-Config"


class LoginsError(Exception):
    """The file cannot be used. The text holds nothing of what is in it."""


class _Login(msgspec.Struct, frozen=True):
    auth: str = ""
    identitytoken: str = ""


class _File(msgspec.Struct, frozen=True):
    auths: dict[str, _Login] = {}


class _Sent(msgspec.Struct, frozen=True, omit_defaults=True):
    username: str = ""
    password: str = ""
    identitytoken: str = ""


def read_logins(path: str) -> dict[str, str]:
    """Headers of a pull: all logins of the file at ``path`` (containers-auth.json(5)). Raises LoginsError."""
    try:
        content = read_regular_file(path, MAX_FILE_BYTES + 1)
    except OSError as error:
        raise LoginsError(f"cannot read the registry logins in {path}: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise LoginsError(f"the registry logins in {path} are larger than {MAX_FILE_BYTES} bytes")
    try:
        logins = msgspec.json.decode(content, type=_File).auths
        sent = {registry: _sent(login) for registry, login in logins.items()}
    except UNDECODABLE:
        raise LoginsError(f"the registry logins in {path} are not as containers-auth.json(5) says") from None
    return _header(sent)


def login_header(domain: str, login: RegistryLogin) -> dict[str, str]:
    """Headers of a pull from one registry with one login."""
    return _header(
        {domain: _Sent(username=login.username, password=login.password, identitytoken=login.identity_token)}
    )


def _header(sent: Mapping[str, _Sent]) -> dict[str, str]:
    return {HEADER: base64.urlsafe_b64encode(msgspec.json.encode(sent)).decode()} if sent else {}


def _sent(login: _Login) -> _Sent:
    user, _, password = base64.b64decode(login.auth, validate=True).decode().partition(":")
    # Other programs pad the password of what they have encoded.
    return _Sent(username=user, password=password.rstrip("\0"), identitytoken=login.identitytoken)
