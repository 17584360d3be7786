"""A certificate that nobody else has signed, for a server that was given none (client-go util/cert,
GenerateSelfSignedCertKey). `cryptography` is imported when one is made, and not before."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ipc.host.atomic_file import write_atomically
from ipc.host.private_directories import make_private
from ipc.host.regular_files import read_regular_file

if TYPE_CHECKING:
    from cryptography import x509

CERTIFICATE: Final = "kubelet-server-current.pem"
"""Key and certificate, so that there is never one without the other; upstream's name for the two in one file."""
VALID_S: Final = 365 * 24 * 3600.0
RENEWED_BEFORE_S: Final = 60 * 24 * 3600.0
"""So long before its end another one is made."""
SKEW_S: Final = 3600.0
"""The certificate begins that much earlier: the clients' clocks may be late."""
_ENDS_AT: Final = "# ends at "
_FOR: Final = " for "
MAX_BYTES: Final = 1 << 20
"""Largest file that is read."""


def is_due(file: Path, names: Sequence[str], now: float) -> bool:
    """Whether one has to be made: there is none of ours for these names, or it ends soon. ``now`` in epoch seconds.

    Its first line, a comment, says both, so that nobody has to decode certificates for that.
    """
    try:
        ends_at, _, made_for = _first_line(file).removeprefix(_ENDS_AT).partition(_FOR)
        return made_for != ",".join(names) or now > float(ends_at) - RENEWED_BEFORE_S
    except (OSError, ValueError):
        return True


def is_over(file: Path, now: float) -> bool:
    """Whether a certificate of the cluster, in whose first line the same is said, has ended or is not there."""
    try:
        return now >= float(_first_line(file).removeprefix(_ENDS_AT).partition(_FOR)[0])
    except (OSError, ValueError):
        return True


def _first_line(file: Path) -> str:
    """Raises OSError, ValueError."""
    return read_regular_file(file, MAX_BYTES).decode().partition("\n")[0]


def make_certificate(file: Path, names: Sequence[str], now: float) -> None:
    """Write a certificate for these names and addresses, with its key, mode 0600 in a 0700 directory. ``now`` in epoch
    seconds. Raises OSError."""
    make_private(file.parent)
    head = f"{_ENDS_AT}{now + VALID_S:.0f}{_FOR}{','.join(names)}\n"
    write_atomically(file, head.encode() + _key_and_certificate(names, now))


def _key_and_certificate(names: Sequence[str], now: float) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    title = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{names[0]}@{now:.0f}"[:64])])
    usage = [ExtendedKeyUsageOID.SERVER_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(title)
        .issuer_name(title)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(now - SKEW_S, UTC))
        .not_valid_after(datetime.fromtimestamp(now + VALID_S, UTC))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(pem, pkcs8, serialization.NoEncryption()) + certificate.public_bytes(pem)


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
