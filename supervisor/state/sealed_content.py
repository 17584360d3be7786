"""Content that a disk keeps and only who has the key can read: AES-256-GCM, bound to the name of its file.

The key is 32 random bytes in a file of its own, 0600, made when something is sealed for the first time. Nobody can open
what was sealed with a key that is lost. OpenSSL is loaded by the first use.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import UntrustedFile, move_aside, read_bounded, write_atomically
from ipc.host.text.json_types import UNDECODABLE

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
VERSION: Final = 1

log = logging.getLogger(__name__)


class NotOpened(Exception):
    """The content cannot be read; the text says why, and nothing of the content."""


class _Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    nonce: bytes
    sealed: bytes


class Sealer:
    """Seals and opens contents with the key of a file. One thread at a time."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._key = b""

    def seal(self, name: str, content: bytes) -> bytes:
        """``content`` for the file of that name. Makes the key where there is none. Raises OSError."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(self._load_or_make()).encrypt(nonce, content, name.encode())
        return msgspec.json.encode(_Sealed(VERSION, nonce, sealed))

    def open(self, name: str, data: bytes) -> bytes:
        """Content that was sealed for the file of that name. Raises NotOpened."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            found = msgspec.json.decode(data, type=_Sealed)
        except UNDECODABLE:
            raise NotOpened("is damaged: it is not what was written") from None
        if found.version != VERSION or len(found.nonce) != NONCE_BYTES:
            raise NotOpened(f"is of version {found.version}, not {VERSION}")
        try:
            return AESGCM(self._load()).decrypt(found.nonce, found.sealed, name.encode())
        except FileNotFoundError:
            raise NotOpened(f"cannot be opened: its key {self._key_file} is gone") from None
        except (OSError, UntrustedFile) as error:
            raise NotOpened(f"cannot be opened: its key {self._key_file}: {error}") from None
        except InvalidTag:
            raise NotOpened(f"is damaged, or was sealed with another key than {self._key_file}") from None

    def _load(self) -> bytes:
        """Raises OSError and UntrustedFile."""
        if not self._key:
            key = read_bounded(self._key_file, KEY_BYTES)
            if len(key) != KEY_BYTES:
                raise UntrustedFile(f"it has {len(key)} bytes, not {KEY_BYTES}")
            self._key = key
        return self._key

    def _load_or_make(self) -> bytes:
        """Raises OSError. A key that is damaged is moved aside: what it has sealed is lost already."""
        try:
            return self._load()
        except FileNotFoundError:
            pass
        except UntrustedFile as error:
            log.error("the key %s cannot be used: %s%s", self._key_file, error, move_aside(self._key_file))
        key = os.urandom(KEY_BYTES)
        write_atomically(self._key_file, key)
        self._key = key
        return key
