"""Certificates of a test's own: an authority, and what it signs."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ipc.host.clock import wall

DAY: Final = timedelta(days=1)
_SIGNS: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """Signs certificates of clients and servers; its own is ``file``."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = directory / f"{name}.crt"
        certificate = self._signed(self._name, self._key.public_key(), ca=True)
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def client(self, name: str, *groups: str, days: int = 1) -> Path:
        """Key and certificate of a client in one file; of one that has ended with negative ``days``."""
        return self._issue(_name(name, *groups), name, ExtendedKeyUsageOID.CLIENT_AUTH, days)

    def server(self, name: str = "127.0.0.1") -> Path:
        """Key and certificate of a server in one file."""
        return self._issue(_name(name), name, ExtendedKeyUsageOID.SERVER_AUTH, 1)

    def _issue(self, subject: x509.Name, name: str, usage: x509.ObjectIdentifier, days: int) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(subject, key.public_key(), usage=usage, days=days)
        file = self._directory / f"{name.replace(':', '_') or 'nobody'}{days}.pem"
        pem = serialization.Encoding.PEM
        file.write_bytes(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            + certificate.public_bytes(pem)
        )
        return file

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        ca: bool = False,
        usage: x509.ObjectIdentifier | None = None,
        days: int = 1,
    ) -> x509.Certificate:
        now = datetime.fromtimestamp(wall(), UTC)
        ends = now + days * DAY
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(ends - abs(days) * DAY - DAY)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            # Python 3.13 asks for these by default (VERIFY_X509_STRICT).
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if ca:
            builder = builder.add_extension(_SIGNS, critical=True)
        if usage is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if usage == ExtendedKeyUsageOID.SERVER_AUTH:
            names = [_general_name(str(each.value)) for each in subject]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(name: str, *groups: str) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    common = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    return x509.Name([*organizations, *common])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def client_context(pem: Path | None = None) -> ssl.SSLContext:
    """A client that trusts every server, with that key and certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pem is not None:
        context.load_cert_chain(pem)
    return context
