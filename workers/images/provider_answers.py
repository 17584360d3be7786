"""Conversation with one credential provider, and which of its answers still hold. Pure.

Mirrors pkg/credentialprovider/plugin/plugin.go (pluginProvider, execPlugin). A provider is asked for the name of an
image without tag and digest, with which its answers are kept, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.text.durations import parse_duration
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.podobjects.registry_login import PullAccount, RegistryLogin
from ipc.link.wire.credential_provider import CredentialProvider
from workers.images.credentials import KeyedLogin, is_key_for, keyed_login
from workers.kubecontainer.image_reference import ImageReference

MAX_KEPT: Final = 1_000
"""Most answers of one provider that are kept: the newest."""
REQUEST: Final = "CredentialProviderRequest"
RESPONSE: Final = "CredentialProviderResponse"
_GLOBAL: Final = "<global>"
"""Key of an answer for every image; no image has such a name."""

Logins = tuple[KeyedLogin, ...]


class ProviderError(Exception):
    """An answer that cannot be used; the text has nothing of it but its version and its kind of key."""


class NodeLogin(msgspec.Struct, frozen=True):
    """A login that a provider gave."""

    login: RegistryLogin
    owner: PullAccount | None = None
    """Account whose image it is that the login brings, where the provider was told of it; None: it is all pods'."""


class _Auth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    username: str = ""
    password: str = ""


class _Response(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    kind: str = ""
    api_version: str = ""
    cache_key_type: str = ""
    cache_duration: str | None = None
    auth: dict[str, _Auth] | None = None


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""


class Answer(msgspec.Struct, frozen=True):
    """Logins that a provider gave for an image."""

    logins: Logins
    key: str
    """Images that it is for: one of `keys_of`."""
    cache_s: float
    """How long it may be kept, in seconds; 0 or less: not at all."""


class _Kept(msgspec.Struct, frozen=True):
    logins: Logins
    expires_at: float
    """Monotonic seconds."""


def is_for(provider: CredentialProvider, image: ImageReference) -> bool:
    """Whether the provider is asked for that image (isImageAllowed)."""
    return any(is_key_for(key, image) for key in provider.match_images)


def keys_of(image: ImageReference) -> tuple[str, str, str]:
    """Keys of answers that are for that image: its own, its registry's, that of all. They are looked up in this
    order."""
    return f"{image.domain}/{image.path}", image.domain, _GLOBAL


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Account of the pod for which a provider is asked, as far as it wants to know it; the same without an account."""

    account: PullAccount | None = None
    token: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    is_kept_by_token: bool = False

    def __repr__(self) -> str:
        return f"Asker({self.account})"

    @property
    def key(self) -> str:
        """Answers hold for whoever has the same one (generateServiceAccountCacheKey)."""
        if self.account is None:
            return ""
        token = hashlib.sha256(self.token.encode()).hexdigest() if self.is_kept_by_token else ""
        return json_text((self.account.fingerprint(), self.annotations, token))

    @property
    def run_key(self) -> str:
        """One run answers all that have the same one (generateSingleFlightKey)."""
        return json_text((hashlib.sha256(self.token.encode()).hexdigest(), self.annotations))


NOBODY: Final = Asker()


def json_text(value: object) -> str:
    """A key of several parts, none of which can be taken for another."""
    return msgspec.json.encode(value).decode()


def asker_of(provider: CredentialProvider, account: PullAccount | None) -> Asker | None:
    """For whom the provider is asked; None when it is not, as the account lacks an annotation or is needed and not
    there (provide, getServiceAccountData). Raises ProviderError when the account or its token could not be had."""
    wanted = provider.tokens
    if wanted is None:
        return NOBODY
    if account is None:
        return None if wanted.requires_account else NOBODY
    if account.problem:
        raise ProviderError(f"failed to get service account: {account.problem}")
    there = dict(account.annotations)
    if any(name not in there for name in wanted.required_annotations):
        return None
    token = dict(account.tokens).get(wanted.audience, "")
    if not token:
        raise ProviderError(f"failed to get service account token for audience {wanted.audience}")
    names = (*wanted.required_annotations, *wanted.optional_annotations)
    annotations = tuple((name, there[name]) for name in sorted(names) if name in there)
    return Asker(account=account, token=token, annotations=annotations, is_kept_by_token=wanted.is_kept_by_token)


def request(provider: CredentialProvider, image: ImageReference, asker: Asker = NOBODY) -> bytes:
    """Bytes that the provider reads."""
    name, _, _ = keys_of(image)
    value: dict[str, object] = {"kind": REQUEST, "apiVersion": provider.api_version, "image": name}
    if asker.token:
        value |= {"serviceAccountToken": asker.token}
    if asker.annotations:
        value |= {"serviceAccountAnnotations": dict(asker.annotations)}
    return msgspec.json.encode(value) + b"\n"


def read_answer(provider: CredentialProvider, image: ImageReference, output: bytes, asker: Asker = NOBODY) -> Answer:
    """Meaning of what the provider has printed. Raises ProviderError."""
    try:
        version = msgspec.json.decode(output, type=_Version).api_version
    except UNDECODABLE:
        raise ProviderError("its output is no JSON object") from None
    if version != provider.api_version:
        raise ProviderError(
            f"apiVersion from credential plugin response did not match expected apiVersion:{provider.api_version}, "
            f"actual apiVersion:{version[:64]}"
        )
    try:
        response = msgspec.json.decode(output, type=_Response)
        cache_s = (
            provider.default_cache_s if response.cache_duration is None else parse_duration(response.cache_duration)
        )
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors, too
        raise ProviderError("error decoding credential provider plugin response from stdout") from None
    if response.kind != RESPONSE:
        raise ProviderError("error decoding credential provider plugin response from stdout")
    auths = response.auth or {}
    if asker.token and not asker.is_kept_by_token and any(auth.password == asker.token for auth in auths.values()):
        raise ProviderError(
            "credential provider plugin returned the service account token as the password which is not allowed when "
            "service account cache type is not set to 'Token'"
        )
    keys = dict(zip(("Image", "Registry", "Global"), keys_of(image), strict=True))
    if response.cache_key_type not in keys:
        kind = response.cache_key_type[:64]
        raise ProviderError(f"credential provider plugin did not return a valid cacheKeyType: {kind}")
    found = (
        keyed_login(registry, RegistryLogin(username=auth.username, password=auth.password))
        for registry, auth in auths.items()
    )
    return Answer(tuple(keyed for keyed in found if keyed.key), keys[response.cache_key_type], cache_s)


class KeptAnswers:
    """Answers of one provider that still hold."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def find(self, image: ImageReference, now: float, asker: Asker = NOBODY) -> Logins | None:
        """Logins that were given for that image, or for its registry, or for all; None when they have to be asked for.
        ``now`` in monotonic seconds."""
        found = (self._kept.get(_kept_key(key, asker)) for key in keys_of(image))
        return next((kept.logins for kept in found if kept is not None and kept.expires_at >= now), None)

    def keep(self, answer: Answer, now: float, asker: Asker = NOBODY) -> None:
        """Keep an answer for as long as it says, and drop those that have ended."""
        if answer.cache_s <= 0:
            return
        mine = _kept_key(answer.key, asker)
        holding: Mapping[str, _Kept] = {
            key: kept for key, kept in self._kept.items() if kept.expires_at >= now and key != mine
        }
        newest = [*holding.items(), (mine, _Kept(answer.logins, now + answer.cache_s))][-MAX_KEPT:]
        self._kept = dict(newest)


def _kept_key(key: str, asker: Asker) -> str:
    return json_text((key, asker.key))
