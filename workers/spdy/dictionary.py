"""The dictionary with which SPDY/3 primes the compression of headers (SPDY protocol draft 3.1, section 2.6.10.1)."""

from __future__ import annotations

from typing import Final

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
