"""A login for a registry, on its way from a pod's Secret to the pull that needs it. Pure."""

from __future__ import annotations

import hashlib

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


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """Equal for two pods exactly when one pull serves both: none gets an image by another one's login."""

    reference: str
    """Complete: registry, path and tag or digest."""
    logins: tuple[RegistryLogin, ...] = ()
    """Tried in this order; without any those of the agent's user count."""
