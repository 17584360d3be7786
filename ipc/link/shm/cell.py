"""A cell of shared memory: a value with one writer and a date, which readers get whole or not at all.

A cell is a seqlock with checksums: an 8-byte sequence number (odd while a write is under way), a header and content.
The writer makes the number odd, stores content and header, makes it even. A reader copies the cell between two reads
of the number and accepts the copy only if the number was even and unchanged and both checksums hold. A writer that
dies at any byte leaves a cell that readers reject until the next writer, which needs nothing from the old content,
writes it again.

Why that is sound in CPython. The number is read and written through a memoryview of format ``Q``: CPython copies one
aligned 8-byte item with a fixed-size ``memcpy``, which compilers turn into a single load or store. (``pack_into`` of
``struct`` will not do: it fills its target with zeros first, and other processes do see those.) The other stores cannot
move across it within the process, because each is a call of its own into the interpreter. A CPU with weak ordering may
still show them to another process in another order, and a large copy is never atomic: both are what the checksums are
for. The header's covers the sequence number, so a header is never accepted under the number of another write, and the
header names the content's checksum, so content is never accepted under the header of another.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Final

import msgspec

MAX_READ_ATTEMPTS: Final = 32
"""How often a reader looks again at a cell that is being written before it calls it unreadable."""

WORD_BYTES: Final = 8
"""Size of the sequence number, in bytes."""

_SEQUENCE: Final = struct.Struct("=Q")
_MAX_SEQUENCE: Final = 2**64 - 1
_FACTS: Final = struct.Struct("=IId")
"""Checksum of the content, its length in bytes, the stamp in seconds."""
_CHECKSUM: Final = struct.Struct("=I")
"""Over sequence number and facts."""
_HEADER_BYTES: Final = _CHECKSUM.size + _FACTS.size
_HEADER_START: Final = WORD_BYTES
_CONTENT_START: Final = 32


class _Facts(msgspec.Struct, frozen=True):
    """Header of a cell."""

    checksum: int
    length: int
    """Bytes; 0 is an empty cell."""
    stamp: float
    """Seconds."""


_EMPTY: Final = _Facts(checksum=0, length=0, stamp=0.0)


class Stamped(msgspec.Struct, frozen=True):
    """Content of a cell, read whole, and the time that its writer put on it, in seconds."""

    stamp: float
    content: bytes


class Cell:
    """A seqlock with checksums over its bytes: [sequence 8][checksum 4][facts 16][padding 4][content]."""

    def __init__(self, memory: memoryview) -> None:
        self.capacity = len(memory) - _CONTENT_START
        """Most content, in bytes."""
        self._memory = memory
        self._sequence = memory[:_HEADER_START].cast("Q")
        self._written = _EMPTY
        """Header of the last complete write of this writer."""

    def write(self, stamp: float, content: bytes) -> None:
        """Replace everything. Content is never empty: that is what an empty cell looks like."""
        if not 0 < len(content) <= self.capacity:
            raise ValueError(f"content of {len(content)} bytes is not within 1..{self.capacity} bytes")
        self._store(_Facts(zlib.crc32(content), len(content), stamp), content)

    def touch(self, stamp: float) -> bool:
        """Replace the stamp. False when this writer has no content there."""
        if not self._written.length:
            return False
        self._store(msgspec.structs.replace(self._written, stamp=stamp))
        return True

    def clear(self) -> None:
        """Leave the cell empty."""
        self._store(_EMPTY)

    def sequence(self) -> int:
        """Tells writes apart."""
        return self._sequence[0]

    def read(self) -> Stamped | None:
        """A whole value, or None: empty, or not read whole in MAX_READ_ATTEMPTS attempts."""
        for _ in range(MAX_READ_ATTEMPTS):
            sequence = self._sequence[0]
            if sequence == 0:
                return None
            facts = self._facts(sequence) if sequence % 2 == 0 else None
            if facts is not None:
                content = bytes(self._memory[_CONTENT_START : _CONTENT_START + facts.length])
                if self._sequence[0] == sequence and zlib.crc32(content) == facts.checksum:
                    return Stamped(facts.stamp, content) if content else None
            # The writer may have lost its CPU in the middle, possibly to this very reader.
            os.sched_yield()
        return None

    def _facts(self, sequence: int) -> _Facts | None:
        """The header, or None when it was not written under this sequence number or points beyond the cell."""
        header = bytes(self._memory[_HEADER_START : _HEADER_START + _HEADER_BYTES])
        facts = _Facts(*_FACTS.unpack_from(header, _CHECKSUM.size))
        return facts if header == _header(sequence, facts) and facts.length <= self.capacity else None

    def _store(self, facts: _Facts, content: bytes = b"") -> None:
        # A predecessor may have died in the middle of a write: on to an odd number that it did not use.
        under_way = (self._sequence[0] + 1) | 1
        if under_way >= _MAX_SEQUENCE:
            under_way = 1
        header = _header(under_way + 1, facts)
        self._written = _EMPTY
        self._sequence[0] = under_way
        self._memory[_CONTENT_START : _CONTENT_START + len(content)] = content
        self._memory[_HEADER_START : _HEADER_START + _HEADER_BYTES] = header
        self._sequence[0] = under_way + 1
        self._written = facts


def _header(sequence: int, facts: _Facts) -> bytes:
    packed = _FACTS.pack(facts.checksum, facts.length, facts.stamp)
    return _CHECKSUM.pack(zlib.crc32(packed, zlib.crc32(_SEQUENCE.pack(sequence)))) + packed
