"""The free pages of Podman's database, where it is a BoltDB (`bolt_state.db`; SQLite from Podman 4.8 on).

Such a file never shrinks: what the most pods took that there ever were is free pages later. Podman opens the file for
each transaction, reads their list, sorts it and makes a map of it. Nothing is written here, nor is there a lock:
what a writer has half done is a number that is a little off.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

FILE: Final = Path("libpod/bolt_state.db")
"""Below the storage's graph root."""
_HEADER: Final = struct.Struct("<QHHI")
"""Header of a page: number, flags, count, overflow."""
_META: Final = struct.Struct("<4I6Q")
"""Fields of a meta page: magic, version, page size, flags; root, sequence, free list, end, transaction, checksum."""
_MAGIC: Final = 0xED0CDAED
_FREE_LIST: Final = 0x10
"""Flag of the page with the free list."""
_COUNT_FOLLOWS: Final = 0xFFFF
_PAGE_SIZES: Final = range(1024, 65537)


def free_pages(file: Path) -> int | None:
    """Number of free pages of a database; None when there is no such one, or not as it is known here."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _free_pages(descriptor)
    except (OSError, struct.error):
        return None
    finally:
        os.close(descriptor)


def _free_pages(descriptor: int) -> int | None:
    """Raises OSError, struct.error for what ends too early."""
    first = _META.unpack(os.pread(descriptor, _META.size, _HEADER.size))
    magic, _, page_size, *_ = first
    if magic != _MAGIC or page_size not in _PAGE_SIZES:
        return None
    second = _META.unpack(os.pread(descriptor, _META.size, page_size + _HEADER.size))
    newest = max((meta for meta in (first, second) if meta[0] == _MAGIC), key=lambda meta: meta[8])
    offset = newest[6] * page_size
    if offset >= os.fstat(descriptor).st_size:
        return None
    _, flags, count, _ = _HEADER.unpack(os.pread(descriptor, _HEADER.size, offset))
    if flags != _FREE_LIST:
        return None
    if count == _COUNT_FOLLOWS:
        (count,) = struct.unpack("<Q", os.pread(descriptor, 8, offset + _HEADER.size))
    return int(count)
