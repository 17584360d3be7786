"""Users: by a client's certificate, by a token, or nobody in particular."""

from __future__ import annotations

import csv
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.regular_files import read_regular_file

ANONYMOUS: Final = "system:anonymous"
UNAUTHENTICATED: Final = "system:unauthenticated"
AUTHENTICATED: Final = "system:authenticated"
BEARER: Final = "bearer"
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
"""Name of what an audit of the cluster tells a user's credential by."""
MAX_TOKEN_FILE_BYTES: Final = 1 << 20
_FIELDS: Final = ("token", "user", "uid")
_COMMON_NAME: Final = "commonName"
_ORGANIZATION: Final = "organizationName"

Certificate = Mapping[str, Any]
"""As ``ssl.SSLSocket.getpeercert`` gives one that was verified."""


class User(msgspec.Struct, frozen=True):
    """A user's name and groups, and what a cluster says besides (apiserver pkg/authentication/user)."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


NOBODY: Final = User(ANONYMOUS, (UNAUTHENTICATED,))


class TokenFileError(Exception):
    """A file of tokens that cannot be used; its text repeats no token."""


class Tokens:
    """Tokens and their users. Only the tokens' hashes are kept."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = tuple((_hash(token), user) for token, user in users.items())

    def find(self, token: str) -> User | None:
        """The token's user. Takes as long for any token: all are compared, each in constant time."""
        wanted, found = _hash(token), None
        for known, user in self._users:
            if hmac.compare_digest(known, wanted):
                found = user
        return found


def read_tokens(path: Path) -> Tokens:
    """Tokens of a file with lines of ``token,user,uid,"group1,group2"`` (apiserver's token/tokenfile).

    Raises TokenFileError.
    """
    try:
        data = read_regular_file(path, MAX_TOKEN_FILE_BYTES + 1)
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror or error}") from error
    if len(data) > MAX_TOKEN_FILE_BYTES:
        raise TokenFileError(f"{path}: more than {MAX_TOKEN_FILE_BYTES} bytes")
    return Tokens(dict(_lines(data, path)))


def _lines(data: bytes, path: Path) -> Iterable[tuple[str, User]]:
    try:
        rows = list(csv.reader(data.decode().splitlines(), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise TokenFileError(f"{path}: is no list of comma-separated values") from None
    for number, row in enumerate(rows, start=1):
        if not row or row[0].startswith("#"):
            continue
        if len(row) < len(_FIELDS) or not row[0].strip():
            raise TokenFileError(f"{path}: line {number}: must be token,user,uid and, if any, groups")
        groups = row[len(_FIELDS)].split(",") if len(row) > len(_FIELDS) else []
        yield row[0].strip(), User(row[1], tuple(group.strip() for group in groups if group.strip()))


def user_of_certificate(certificate: Certificate, der: bytes = b"") -> User | None:
    """The subject's common name and its organizations, and which certificate that was; None without a name (apiserver's
    request/x509, CommonNameUserConversion)."""
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    names = [value for key, value in subject if key == _COMMON_NAME]
    groups = tuple(value for key, value in subject if key == _ORGANIZATION)
    credential = (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)
    extra = ((CREDENTIAL_ID, credential),) if der else ()
    return User(names[-1], groups, extra=extra) if names and names[-1] else None


def bearer_token(authorization: str) -> str | None:
    """The token of an Authorization header; None when it carries none (apiserver's request/bearertoken)."""
    kind, _, rest = authorization.strip().partition(" ")
    token = rest.partition(" ")[0]
    return token if kind.lower() == BEARER and token else None


def authenticate(
    certificate: Certificate | None, authorization: str, tokens: Tokens, anonymous: bool, der: bytes = b""
) -> User | None:
    """The user, with the group of all who are known; None is *refuse with 401* (pkg/kubelet/server/auth). ``der``: the
    certificate itself.

    A token that is wrong is refused also where nobody need show one.
    """
    user = None if certificate is None else user_of_certificate(certificate, der)
    token = bearer_token(authorization)
    if user is None and token is not None:
        user = tokens.find(token)
    if user is not None:
        return known(user)
    return NOBODY if anonymous and token is None else None


def known(user: User) -> User:
    """The user with the group of all who are known."""
    if AUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
