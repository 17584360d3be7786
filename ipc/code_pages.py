"""Pages of programs and libraries that a process has mapped, because it has run or read them once."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

SMAPS: Final = Path("/proc/self/smaps")


def let_go_of_code() -> None:
    """After a start, which runs much that nothing runs again: a process is charged for all that it has mapped. What is
    still needed comes back from the page cache, or from its file, when it is touched. Best effort."""
    try:
        mapped = SMAPS.read_text().splitlines()
    except OSError:
        return
    madvise = ctypes.CDLL(None).madvise
    for start, end in untouched_files(mapped):
        madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def untouched_files(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where files are mapped that cannot be written to and of which no page differs from its file (proc(5), smaps).

    A library's relocated data cannot be written to either, and would be lost: that counts as anonymous.
    """
    candidate: tuple[int, int] | None = None
    for line in lines:
        first, *rest = line.split()
        if first == "Anonymous:" and candidate is not None and rest[0] == "0":
            yield candidate
        elif not first.endswith(":"):
            candidate = _file_mapping(first, *rest)


def _file_mapping(
    addresses: str, permissions: str, _offset: str, _device: str, inode: str, *_path: str
) -> tuple[int, int] | None:
    if inode == "0" or "w" in permissions or not permissions.endswith("p"):
        return None
    start, _, end = addresses.partition("-")
    return int(start, 16), int(end, 16)
