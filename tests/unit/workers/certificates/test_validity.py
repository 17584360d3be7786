"""Dates of certificates, read without a library, held against one."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.certificates.validity import CertificateFormatError, Validity, read_validity

KEY = ec.generate_private_key(ec.SECP256R1())
FIRST = datetime(1951, 1, 1)
MOMENTS = st.datetimes(FIRST, datetime(9999, 12, 30)).map(lambda it: it.replace(microsecond=0, tzinfo=UTC))


def certificate(begins: datetime, ends: datetime, serial: int = 1, name: str = "a") -> bytes:
    title = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(title).issuer_name(title).public_key(KEY.public_key())
    builder = builder.serial_number(serial).not_valid_before(begins).not_valid_after(ends)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@settings(max_examples=50)
@given(MOMENTS, MOMENTS, st.integers(1, 1 << 150), st.text("ab", min_size=1, max_size=60))
def test_dates_are_those_that_the_library_has_written(a: datetime, b: datetime, serial: int, name: str) -> None:
    begins, ends = sorted((a, b))
    key = b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
    found = read_validity(key + certificate(begins, ends, serial, name) + certificate(FIRST.replace(tzinfo=UTC), ends))
    assert found == Validity(begins.timestamp(), ends.timestamp())


WHOLE = certificate(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
DER = base64.b64decode(b"".join(WHOLE.splitlines()[1:-1]))


def pem(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"


def test_a_certificate_that_is_cut_off_is_none() -> None:
    assert read_validity(pem(DER)) == read_validity(WHOLE)
    for end in range(len(DER)):
        with pytest.raises(CertificateFormatError):
            read_validity(pem(DER[:end]))


@pytest.mark.parametrize("text", [b"", b"no", pem(b""), pem(b"0"), pem(b"\x30\x84\xff\xff\xff\xff"), pem(b"\x30\x00")])
def test_what_is_no_certificate(text: bytes) -> None:
    with pytest.raises(CertificateFormatError):
        read_validity(text)


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with pytest.raises(CertificateFormatError):
        read_validity(pem(data))


def test_the_next_one_is_asked_for_at_70_to_90_percent_of_its_life() -> None:
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    validity = read_validity(certificate(begins, begins + timedelta(days=100)))
    days = [(validity.rotates_at(chance) - validity.begins_at) / 86_400 for chance in (0.0, 0.5, 1.0)]
    assert days == pytest.approx([70.0, 80.0, 90.0])
    assert validity.is_over(validity.ends_at)
    assert not validity.is_over(validity.ends_at - 1)
