"""Header blocks: names and values, compressed with the state of all blocks before (section 2.6.10.1).

Each direction of a connection is one zlib stream, of which each block ends with a flush. Every block has to be read,
also of a stream that nobody wants: the next one cannot be understood without it.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from workers.spdy.frames import FrameError, Pairs

ADLER32: Final = 0xE3C6A7C2
"""Checksum that names the dictionary at the beginning of every compressed stream."""

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow"
    " authorization cache-control connection content-base content-encoding content-language content-length"
    " content-location content-md5 content-range content-type date etag expect expires from host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma"
    " proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade"
    " user-agent vary via warning www-authenticate method get status 200.OK version HTTP/1.1 url public set-cookie"
    " keep-alive origin"
)
"""Names and values as they stand in a header block, each with its length; the full stop is a space."""
_CODES: Final = (
    "100 101 201 202 205 206 300 302 303 304 305 306 307 402 405 406 407 408 409 410 411 412 413 414 415 416 417 502"
    " 504 505"
)
_TEXT: Final = (
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug"
    " Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _made() -> bytes:
    words = [word.replace("200.OK", "200 OK").encode() for word in _WORDS.split()]
    counted = b"".join(len(word).to_bytes(4, "big") + word for word in words)
    return counted + "".join(_CODES.split()).encode() + _TEXT.encode()


DICTIONARY: Final = _made()
"""SPDY/3 primes the compression of headers with it (SPDY protocol draft 3.1, section 2.6.10.1)."""


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
