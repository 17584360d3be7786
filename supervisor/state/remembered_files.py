"""Contents of small files: what goes away, and was meant to stay, can be written again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.private_directories import make_private

MAX_BYTES: Final = 8 << 20
"""Most that is remembered, of all files together."""
MAX_FILES: Final = 1_000
"""Most files of one directory that are looked at."""


class _Stamp(NamedTuple):
    inode: int
    mtime_ns: int
    size: int


class _Known(NamedTuple):
    stamp: _Stamp
    content: bytes | None
    """None of a file for which there was no room."""
    mode: int


class RememberedFiles:
    """Files that nobody but their owner removes. Its methods block: for a thread, and only one at a time."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._known: dict[Path, _Known] = {}
        self._room = max_bytes

    def look(self, paths: Iterable[Path] = ()) -> tuple[Path, ...]:
        """Look at these and at those that are known. Files that were there, and are not any more: missing, empty, or
        something else."""
        looked_at = dict.fromkeys((*paths, *self._known))
        return tuple(path for path in looked_at if not self._is_there(path) and path in self._known)

    def discard(self, path: Path) -> None:
        """Forget a file that its owner removes: nobody misses it."""
        if known := self._known.pop(path, None):
            self._room += len(known.content or b"")

    def write(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """Write these as they were. Returns those for which there was no room. Raises OSError."""
        lost = []
        for path in paths:
            known = self._known[path]
            if known.content is None:
                lost.append(path)
                continue
            make_private(path.parent)
            write_atomically(path, known.content, mode=known.mode)
        return tuple(lost)

    def _is_there(self, path: Path) -> bool:
        """Whether it is a file with content, which is remembered then."""
        try:
            found = os.lstat(path)
        except OSError:
            return False
        if not (stat.S_ISREG(found.st_mode) and found.st_size):
            return False
        stamp = _Stamp(found.st_ino, found.st_mtime_ns, found.st_size)
        if path not in self._known or self._known[path].stamp != stamp:
            self._remember(path, stamp, stat.S_IMODE(found.st_mode))
        return True

    def _remember(self, path: Path, stamp: _Stamp, mode: int) -> None:
        """Remember a file that is there. One that cannot be read now is read at another look."""
        before = self._known.get(path)
        room = self._room + len((before and before.content) or b"")
        try:
            content = read_bounded(path, room)
        except UntrustedFile:
            content = None
        except OSError:
            return
        self._known[path] = _Known(stamp, content, mode)
        self._room = room - len(content or b"")


class RememberedDirectories:
    """Directories of small files that somebody may remove. One that is missing alone was removed, if it still is at the
    next look; those that went with their directory are missed. Its methods block, as those above."""

    def __init__(self, directories: Mapping[Path, Iterable[str]]) -> None:
        """With the names of the files that are meant; without one all that there are below the directory."""
        self._directories = {path: tuple(names) for path, names in directories.items()}
        self._files = RememberedFiles()
        self._alone: frozenset[Path] = frozenset()
        """Missing at the last look, their directory not."""
        self._owed: frozenset[Path] = frozenset()
        """Went with their directory, and were not written since."""

    def look(self, *, all_went: bool) -> tuple[Path, ...]:
        """Files that went with their directory; with ``all_went`` all that are missing."""
        missing = self._files.look(path for directory in self._directories for path in self._listed(directory))
        gone = [path for path in self._directories if all_went or not path.is_dir()]
        went = tuple(path for path in missing if path in self._owed or any(map(path.is_relative_to, gone)))
        alone = frozenset(missing).difference(went)
        for path in alone & self._alone:
            self._files.discard(path)
        self._alone, self._owed = alone, frozenset(went)
        return went

    def write(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """As `RememberedFiles.write`."""
        lost = self._files.write(paths)
        self._owed = frozenset()
        return lost

    def _listed(self, directory: Path) -> Iterator[Path]:
        if names := self._directories[directory]:
            return (directory / name for name in names)
        return islice((Path(above, name) for above, _, names in os.walk(directory) for name in names), MAX_FILES)
