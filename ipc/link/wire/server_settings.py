"""The kubelet's server as its process needs it: which ports there are, TLS, who may ask what."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

CIPHER_SUITES: Final[Mapping[str, str]] = {
    **{name: name for name in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")},
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""Go's names of cipher suites to OpenSSL's: all that offer forward secrecy and authenticated encryption. Those of TLS
1.3 (the first three) are always on: Python's ssl cannot choose among them, nor can Go's."""


class Port(enum.StrEnum):
    """The server's TCP ports."""

    SECURE = "secure"
    """TLS, everything, with authentication and authorization."""
    READ_ONLY = "read-only"
    """Plain, for everybody who reaches it: what tells of health, pods, statistics and metrics."""
    HEALTHZ = "healthz"
    """Plain: whether the agent is there."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The part of ``server:`` that the API server acts on. Durations in seconds."""

    ports: tuple[Port, ...] = ()
    """Ports that are on; their listening sockets come in this order."""
    secure_port: int = 0
    """Number of that port, for the Node; 0: it is off."""
    addresses: tuple[str, ...] = ()
    """Names and IP addresses for which a certificate of our own is made."""
    pki_dir: str = ""
    """Where a certificate of our own lies."""
    cert_file: str = ""
    """Given instead, with its key; empty: ours."""
    key_file: str = ""
    tls_min_version: str = ""
    """In Go's words; empty: 1.2."""
    tls_cipher_suites: tuple[str, ...] = ()
    """In Go's words; empty: OpenSSL's choice."""
    client_ca_file: str = ""
    token_file: str = ""
    anonymous: bool = False
    rules: dict[str, tuple[str, ...]] | None = None
    """User, or ``group:`` and a group -> subresources of the node that they may use; None: everything for everybody
    who has told who they are."""
    kubeconfig: str = ""
    """The node's, for the reviews; empty: there is no cluster."""
    reviews_tokens: bool = False
    """Whether the cluster is asked about tokens that nobody here knows (authentication.webhook.enabled)."""
    reviews_access: bool = False
    """Whether the cluster is asked what a user may do (authorization.mode Webhook)."""
    debugging: bool = True
    """Whether the handlers that change or reveal something are there."""
    streaming_idle_timeout_s: float = 4 * 3600.0
    """A stream over which nothing goes for so long is ended."""
