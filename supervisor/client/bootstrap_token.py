"""Bootstrap tokens, and the signature that vouches for a cluster's published kubeconfig (k8s.io/cluster-bootstrap:
token/util, token/jws). Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Final

import msgspec

_TOKEN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_ALGORITHM: Final = "HS256"


class BootstrapToken(msgspec.Struct, frozen=True):
    """A token ``id.secret``; its text shows the id alone."""

    id: str
    secret: str

    def __repr__(self) -> str:
        """Without the secret: a traceback may show it."""
        return f"BootstrapToken({self.id}.…)"

    @property
    def text(self) -> str:
        """The token itself, for a header or a kubeconfig."""
        return f"{self.id}.{self.secret}"


def parse_token(text: str) -> BootstrapToken:
    """Raises ValueError, which does not repeat the text."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise ValueError("the bootstrap token is not of the form [a-z0-9]{6}.[a-z0-9]{16}")
    return BootstrapToken(match[1], match[2])


def is_signed(content: bytes, detached: str, token: BootstrapToken) -> bool:
    """Whether the detached JWS (``header..signature``) of that content was made with the token
    (DetachedTokenIsValid)."""
    return hmac.compare_digest(detached_signature(content, token), detached)


def detached_signature(content: bytes, token: BootstrapToken) -> str:
    """JWS of the content with the token's secret, without the content (ComputeDetachedSignature)."""
    header = _base64url(f'{{"alg":"{_ALGORITHM}","kid":"{token.id}"}}'.encode())
    signed = f"{header}.{_base64url(content)}".encode()
    signature = hmac.new(token.secret.encode(), signed, hashlib.sha256).digest()
    return f"{header}..{_base64url(signature)}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
