"""Program that makes a key and a request for its certificate, and prints both as PEM. A process of its own: the library
that it needs would stay in the memory of an agent that needs it once in months."""

from __future__ import annotations

import ipaddress
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def main(organization: str, name: str, *alternative: str) -> None:
    """ECDSA on P-256, as upstream; alternative names only where there are any."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if alternative:
        names = x509.SubjectAlternativeName([_general_name(each) for each in alternative])
        builder = builder.add_extension(names, critical=False)
    pem = serialization.Encoding.PEM
    traditional = serialization.PrivateFormat.TraditionalOpenSSL
    sys.stdout.buffer.write(key.private_bytes(pem, traditional, serialization.NoEncryption()))
    sys.stdout.buffer.write(builder.sign(key, hashes.SHA256()).public_bytes(pem))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
