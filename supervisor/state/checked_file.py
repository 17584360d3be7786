"""Content of a file that says whether it is whole: its version, its payload, and a checksum of that.

Format: one JSON object ``{"version", "checksum", "payload"}``; the checksum is the SHA-256 of the payload's bytes as
they stand (pkg/kubelet/checkpointmanager has the same idea). Pure.
"""

from __future__ import annotations

import hashlib

import msgspec

from ipc.host.atomic_file import UntrustedFile


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    checksum: str
    payload: msgspec.Raw


def encode_checked(version: int, payload: bytes) -> bytes:
    """``payload`` is JSON."""
    return msgspec.json.encode(_Envelope(version, _checksum(payload), msgspec.Raw(payload)))


def decode_checked(version: int, data: bytes) -> bytes:
    """The payload. Raises UntrustedFile for another version or a payload that was damaged, msgspec.MsgspecError."""
    envelope = msgspec.json.decode(data, type=_Envelope)
    if envelope.version != version:
        raise UntrustedFile(f"it is of version {envelope.version}, not {version}")
    payload = bytes(envelope.payload)
    if envelope.checksum != _checksum(payload):
        raise UntrustedFile("its checksum is wrong")
    return payload


def _checksum(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()
