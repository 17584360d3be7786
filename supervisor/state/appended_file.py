"""A file to whose end changes are written, until it is twice as large as what it says: then it is written anew."""

from __future__ import annotations

import os
from pathlib import Path

from ipc.host.atomic_file import write_atomically
from ipc.host.private_directories import make_private
from ipc.host.regular_files import opened_regular_file, write_all


class AppendedFile:
    """One file of one writer. Its methods block: for a thread, and only one at a time."""

    def __init__(self, path: Path, min_room_bytes: int, *, is_synced: bool) -> None:
        """A file with less than ``min_room_bytes`` of changes is not worth writing anew. ``is_synced``: changes are on
        the disk when `append` returns."""
        self._path = path
        self._min_room_bytes = min_room_bytes
        self._is_synced = is_synced
        self._size = 0
        """Bytes of the file as it was left."""
        self._room = 0
        """How much may be appended. 0: the next write is a rewrite, because it is the first, or the last has failed."""

    def append(self, data: bytes) -> bool:
        """False, and nothing is written, where the file has to be written anew: it is large, or not as it was left.
        Raises OSError; then it has to be written anew, too."""
        room, self._room = self._room, 0
        if not room or len(data) > room:
            return False
        try:
            with opened_regular_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW) as descriptor:
                if os.fstat(descriptor).st_size != self._size:
                    return False
                write_all(descriptor, data)
                if self._is_synced:
                    os.fdatasync(descriptor)
        except FileNotFoundError:
            return False
        self._size += len(data)
        self._room = room - len(data)
        return True

    def rewrite(self, data: bytes) -> None:
        """Replace the content. Raises OSError; the file is whole then, the old or the new one."""
        self._room = 0
        make_private(self._path.parent)
        write_atomically(self._path, data)
        self._size = len(data)
        self._room = max(len(data), self._min_room_bytes)
