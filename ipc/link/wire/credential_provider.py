"""A credential provider of the configuration, as the node worker runs it."""

from __future__ import annotations

from typing import Final

import msgspec

RESPONSE_VERSIONS: Final = tuple(
    f"credentialprovider.kubelet.k8s.io/{version}" for version in ("v1", "v1alpha1", "v1beta1")
)
"""Versions of the conversation with a provider; their requests and answers are the same."""


TOKEN_VERSION: Final = RESPONSE_VERSIONS[0]
"""The one version whose requests have tokens."""


class TokenAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """Knowledge of the pod's service account that a provider wants (ServiceAccountTokenAttributes)."""

    audience: str
    requires_account: bool
    """Without an account it is not asked."""
    required_annotations: tuple[str, ...] = ()
    """Without one of these the provider is not asked."""
    optional_annotations: tuple[str, ...] = ()
    is_kept_by_token: bool = False
    """An answer holds for that token alone, and not for all of the account's."""


class CredentialProvider(msgspec.Struct, frozen=True, kw_only=True):
    """One program that gives logins for images (kubelet.config.k8s.io, CredentialProvider). Its repr has neither its
    arguments nor its variables, which may be secrets."""

    name: str
    program: str
    """Absolute path of the program."""
    api_version: str
    """One of `RESPONSE_VERSIONS`."""
    match_images: tuple[str, ...]
    """Registries with an optional path, whose hosts may hold wildcards."""
    default_cache_s: float
    """How long an answer that does not say it is kept, in seconds; 0: not at all."""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    tokens: TokenAttributes | None = None

    def __repr__(self) -> str:
        return f"CredentialProvider({self.name!r}, ...)"
