"""URLs as Go's net/url takes them apart. Pure."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

_ASCII: Final = bytes(range(128)).decode()


def ascii_url(text: str) -> str:
    """The URL with percent escapes for what is no ASCII, to be split by urllib.

    Of hosts that are no ASCII urllib wants to know how they are normalized. Go does not, and for a long one that takes
    quadratic time. A byte that is no UTF-8 is one as *surrogateescape* decodes it.
    """
    return text if text.isascii() else quote(text, _ASCII, errors="surrogateescape")
