"""The cluster's certificate authority, and credentials that it and the token controller hand out."""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support.servers.kube_api.requests import User

_LEEWAY: Final = timedelta(minutes=5)
DAY: Final = timedelta(days=1)
SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
"""Names of the API server's service, which its certificate has."""


class Authority:
    """One authority: its key, and certificates that it signs."""

    def __init__(self, name: str = "kubernetes") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name)
        now = datetime.now(UTC)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _LEEWAY)
            .not_valid_after(now + 10 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .add_extension(_ca_usage(), critical=True)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def sign(
        self,
        request: x509.CertificateSigningRequest,
        *,
        server: bool,
        lifetime: timedelta = DAY,
        begins: datetime | None = None,
    ) -> bytes:
        """A certificate as PEM, for a server or for a client."""
        start = begins or datetime.now(UTC) - _LEEWAY
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self.certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + lifetime)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        for extension in request.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        user: User,
        *,
        addresses: Sequence[str] = (),
        lifetime: timedelta = DAY,
        begins: datetime | None = None,
    ) -> bytes:
        """Certificate and key as PEM in one; for a server when it has addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(user.name, user.groups))
        if addresses:
            names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            extension = x509.SubjectAlternativeName([*names, *map(x509.DNSName, SERVICE_NAMES)])
            builder = builder.add_extension(extension, critical=False)
        request = builder.sign(key, hashes.SHA256())
        certificate = self.sign(request, server=bool(addresses), lifetime=lifetime, begins=begins)
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return certificate + secret

    def server_context(self, directory: Path, addresses: Sequence[str]) -> ssl.SSLContext:
        """TLS of a server that takes client certificates of this authority, and connections without one."""
        file = directory / "kube-api.pem"
        file.write_bytes(self.issue(User("kube-apiserver"), addresses=addresses))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.load_verify_locations(cadata=self.pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


@cache
def shared_authority() -> Authority:
    """One for all servers of a process, where a test does not want its own."""
    return Authority()


def user_of(certificate: dict[str, object]) -> User:
    """User of a verified client certificate, as ``SSLSocket.getpeercert`` shows it."""
    subject = certificate["subject"]
    assert isinstance(subject, tuple)
    fields = [pair for parts in subject for pair in parts]
    names = [value for name, value in fields if name == "commonName"]
    groups = tuple(value for name, value in fields if name == "organizationName")
    return User(names[0], (*groups, "system:authenticated"))


def b64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def _subject(name: str, groups: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _ca_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
