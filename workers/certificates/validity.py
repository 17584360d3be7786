"""How long a certificate is valid, and when the next one is asked for. Pure.

Its few bytes are read here: a library for certificates would stay in memory for two dates.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

MAX_BYTES: Final = 1 << 20
"""Largest PEM text that is read."""
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----\s([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_VALIDITY_AT: Final = 3
"""Behind serial number, algorithm and issuer (RFC 5280, 4.1)."""
_EARLIEST_PART: Final = 0.7
_PART_OF_CHANCE: Final = 0.2


class CertificateFormatError(Exception):
    """Bytes that are no certificate."""


class Validity(msgspec.Struct, frozen=True):
    """Begin and end in epoch seconds."""

    begins_at: float
    ends_at: float

    def is_over(self, now: float) -> bool:
        """Whether the certificate has ended; ``now`` in epoch seconds."""
        return now >= self.ends_at

    def rotates_at(self, chance: float) -> float:
        """When the next one is asked for, in epoch seconds: at 70 to 90 % of its life, by ``chance`` from 0 to 1
        (client-go util/certificate, certificate_manager.go, nextRotationDeadline)."""
        return self.begins_at + (self.ends_at - self.begins_at) * (_EARLIEST_PART + _PART_OF_CHANCE * chance)


def read_validity(pem: bytes) -> Validity:
    """Validity of the first certificate in the text. Raises CertificateFormatError."""
    found = _PEM.search(pem[:MAX_BYTES])
    if found is None:
        raise CertificateFormatError("there is no certificate")
    try:
        der = binascii.a2b_base64(found[1])
        tbs = next(_elements(_content(next(_elements(der)), _SEQUENCE)))
        fields = [each for each in _elements(_content(tbs, _SEQUENCE)) if each[0] != _VERSION]
        begin, end = _elements(_content(fields[_VALIDITY_AT], _SEQUENCE))
        return Validity(_time(*begin), _time(*end))
    except (ValueError, IndexError, StopIteration):
        raise CertificateFormatError("it is no certificate") from None


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element of DER."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4:
                raise ValueError("no length")
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        if at + length > len(data):
            raise ValueError("longer than all")
        yield tag, data[at : at + length]
        at += length


def _content(element: tuple[int, bytes], tag: int) -> bytes:
    if element[0] != tag:
        raise ValueError("another element")
    return element[1]


def _time(tag: int, content: bytes) -> float:
    """RFC 5280, 4.1.2.5: always UTC, with seconds; of two digits of a year those below 50 are in this century."""
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = ("20" if text[:2] < "50" else "19") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
