"""A login for a registry, on its way from a pod's Secret to the pull that needs it. Pure."""

from __future__ import annotations

import hashlib
from typing import TypedDict

import msgspec


class RegistryLogin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Login to one registry. Its repr says whose it is, and no more."""

    username: str = ""
    password: str = ""
    identity_token: str = ""

    def __repr__(self) -> str:
        return f"RegistryLogin({self.username!r}, ...)"

    def fingerprint(self) -> str:
        """SHA-256 of the login, which may be kept on disk (pkg/credentialprovider/keyring.go, TrackedAuthConfig's
        hash)."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class PullAccount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Service account of a cluster's pod, as providers of logins are told of it. Its repr says no token."""

    namespace: str
    name: str
    uid: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    tokens: tuple[tuple[str, str], ...] = ()
    """By audience."""
    problem: str = ""
    """Why it could not be read."""

    def __repr__(self) -> str:
        return f"PullAccount({self.namespace}/{self.name}, {len(self.tokens)} tokens)"

    def fingerprint(self) -> str:
        """SHA-256 of what stays the same as long as the account is there (ServiceAccountCoordinates,
        pkg/credentialprovider/keyring.go)."""
        return hashlib.sha256(msgspec.json.encode((self.namespace, self.name, self.uid))).hexdigest()


PullOwner = RegistryLogin | PullAccount
"""Owner of an image that was pulled: pods with that login, or of that account."""


class PullParts(TypedDict):
    """A pull as keywords."""

    reference: str
    logins: tuple[RegistryLogin, ...]
    account: PullAccount | None


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """Equal for two pods exactly when one pull serves both: none gets an image by another one's login."""

    reference: str
    """Complete: registry, path and tag or digest."""
    logins: tuple[RegistryLogin, ...] = ()
    """Tried in this order; without any those of the agent's user count."""
    account: PullAccount | None = None
    """Account of a cluster's pod, where a provider of the node wants to know it."""

    @property
    def parts(self) -> PullParts:
        """Keywords of a message about it."""
        return {"reference": self.reference, "logins": self.logins, "account": self.account}
