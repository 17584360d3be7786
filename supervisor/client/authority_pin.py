"""Pins of a cluster's certificate authority: ``sha256:`` and the hash of its public key (kubeadm util/pubkeypin).
`cryptography` is imported when there is something to hash."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

_PIN: Final = re.compile(r"sha256:[0-9a-fA-F]{64}")
MAX_AUTHORITIES: Final = 100
"""Most certificates of one file that are looked at."""


class PinError(Exception):
    """A pin that is none, or authorities none of which is pinned."""


def parse_pin(text: str) -> str:
    """The pin in small letters. Raises PinError."""
    if _PIN.fullmatch(text) is None:
        raise PinError("invalid public key hash, expected sha256: and 64 hexadecimal digits")
    return text.lower()


def check_pinned(ca_pem: bytes, pins: Sequence[str]) -> None:
    """Raise PinError unless some certificate of the PEM text has a pinned public key, as the pin set of kubeadm wants
    it (``CheckAny``), with the pins that there are."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        certificates = x509.load_pem_x509_certificates(ca_pem)
    except ValueError:
        raise PinError("the cluster's certificate authority is no certificate") from None
    if len(certificates) > MAX_AUTHORITIES:
        raise PinError(f"the cluster has more than {MAX_AUTHORITIES} certificate authorities")
    found = []
    for certificate in certificates:
        key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        found.append(f"sha256:{hashlib.sha256(key).hexdigest()}")
        if any(hmac.compare_digest(found[-1], pin) for pin in pins):
            return
    raise PinError(f"public keys {', '.join(found)} are not pinned")
