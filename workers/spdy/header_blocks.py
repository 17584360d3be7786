"""Header blocks: names and values, compressed with the state of all blocks before (section 2.6.10.1).

Each direction of a connection is one zlib stream, of which each block ends with a flush. Every block has to be read,
also of a stream that nobody wants: the next one cannot be understood without it.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from workers.spdy.dictionary import DICTIONARY
from workers.spdy.frames import FrameError, Pairs

MAX_BLOCK_BYTES: Final = 16 * 1024
"""Largest block, when it is no longer compressed."""
MAX_PAIRS: Final = 64

_LEVEL: Final = 9
_WINDOW_BITS: Final = 11
"""Window of our own blocks, which are small: 2 KiB hold the dictionary, and save a tenth of a MiB of the usual 32."""
_MEMORY_LEVEL: Final = 1
_COUNT: Final = struct.Struct(">I")
_ENCODING: Final = "latin-1"
"""Every byte has a character in it."""


class HeaderWriter:
    """Our direction."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(
            _LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, DICTIONARY
        )

    def compressed(self, headers: Pairs) -> bytes:
        """The next block."""
        texts = [text.encode(_ENCODING) for pair in headers for text in pair]
        block = _COUNT.pack(len(headers)) + b"".join(_COUNT.pack(len(text)) + text for text in texts)
        return self._zlib.compress(block) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class HeaderReader:
    """The other one."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> Pairs:
        """Headers of the next block. Raises FrameError; no more than MAX_BLOCK_BYTES are ever unpacked."""
        try:
            text = self._zlib.decompress(block, MAX_BLOCK_BYTES + 1)
        except zlib.error as error:
            raise FrameError(f"a header block that is no zlib stream: {error}") from None
        if len(text) > MAX_BLOCK_BYTES or self._zlib.unconsumed_tail:
            raise FrameError(f"a header block of more than {MAX_BLOCK_BYTES} bytes")
        if self._zlib.eof:
            raise FrameError("the stream of header blocks has ended")
        return _parsed(text)


def _parsed(text: bytes) -> Pairs:
    at = _COUNT.size
    count = _number(text, 0)
    if count > MAX_PAIRS:
        raise FrameError(f"{count} headers: at most {MAX_PAIRS}")
    words = []
    for _ in range(2 * count):
        length = _number(text, at)
        at += _COUNT.size
        if length > len(text) - at:
            raise FrameError("a header that is longer than its block")
        words.append(text[at : at + length].decode(_ENCODING))
        at += length
    if at != len(text):
        raise FrameError("a header block with something behind its headers")
    names = [name.lower() for name in words[::2]]
    if len(set(names)) != count:
        raise FrameError("two headers of one name")
    return tuple(zip(names, words[1::2], strict=True))


def _number(text: bytes, at: int) -> int:
    if len(text) - at < _COUNT.size:
        raise FrameError("a header block that ends early")
    return int.from_bytes(text[at : at + _COUNT.size], "big")
