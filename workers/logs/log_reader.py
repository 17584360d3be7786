"""Reads one life of a container out of all its files: those that were rotated, compressed or not, and the one that is
written; from any line on, and on over rotations that happen meanwhile.

Upstream reads the newest file alone (cri-client pkg/logs/logs.go, ReadLogs), so that a rotation takes lines away from
`kubectl logs` and from whoever follows slowly.

Every call waits for as long as the file system does: whoever has a loop makes it in a thread (`FsExecutor`). At most
two files are open, and 64 KiB of either in memory; a file that was removed before its turn came is left out.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections import deque
from pathlib import Path
from typing import Final

from workers.fs.regular_file import open_regular
from workers.logs.cri_format import LineCutter, time_of
from workers.logs.rotated_names import COMPRESSED, rotated_of, split_unused, stem

READ_BYTES: Final = 64 * 1024
"""Most bytes read, and most unpacked, at once."""
PROBE_BYTES: Final = 32 * 1024
"""Most bytes read for one step of a search by time: some lines of conmon's, which has at most 8 KiB in each."""
MAX_LOOKS: Final = 10
"""At a directory, until nothing was rotated meanwhile."""
TIMESTAMP_SLACK_S: Final = 1.0
"""A file is as old as its last change, which file systems may date back by a tick."""
_GZIP: Final = 16 + zlib.MAX_WBITS


class LogFile:
    """An open file of a log, read from a position on."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.position = 0

    def read(self) -> bytes:
        """Return the next bytes; empty at the present end."""
        data = os.pread(self.fd, READ_BYTES, self.position)
        self.position += len(data)
        return data

    def skip_to_tail(self, lines: int) -> int:
        """Go to where the last ``lines`` lines begin; how many of them are not in this file."""
        self.position, missing = _tail(self.fd, lines)
        return missing

    def skip_to_time(self, since: float) -> None:
        """Go to a line before the first one of that time (epoch seconds), or not far behind it."""
        self.position = time_offset(self.fd, since)

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def is_same(self, name: Path) -> bool:
        """Whether that file is this one, or this one compressed."""
        try:
            there, own = name.stat(follow_symlinks=False), os.fstat(self.fd)
        except FileNotFoundError:
            return False
        return there.st_ino == own.st_ino or (name.name.endswith(COMPRESSED) and there.st_mtime_ns == own.st_mtime_ns)

    def close(self) -> None:
        os.close(self.fd)


class CompressedLogFile(LogFile):
    """A log that was compressed; what is damaged of it ends it."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._unpacker = zlib.decompressobj(_GZIP)
        self._held = b""
        """Unpacked and not taken yet."""

    def read(self) -> bytes:
        data, self._held = self._held, b""
        while not data and not self._unpacker.eof:
            packed = self._unpacker.unconsumed_tail or super().read()
            if not packed:
                break
            try:
                data = self._unpacker.decompress(packed, READ_BYTES)
            except zlib.error:
                break
        return data

    def skip_to_tail(self, lines: int) -> int:
        """Twice through the file: nothing else tells how many lines it has."""
        there = 0
        while block := self.read():
            there += block.count(b"\n")
        self.position, self._unpacker = 0, zlib.decompressobj(_GZIP)
        to_skip = there - lines
        while to_skip > 0 and (block := self.read()):
            newlines = block.count(b"\n")
            if newlines >= to_skip:
                self._held = block[_after_newline(block, to_skip) :]
            to_skip -= newlines
        return max(0, lines - there)

    def skip_to_time(self, since: float) -> None:
        """Pass over what is older: a block whose last line is too old is dropped whole."""
        rest = b""
        while block := self.read():
            text = rest + block
            end = text.rfind(b"\n") + 1
            newest = _newest(text[:end])
            if newest is None or newest >= since:
                self._held = text
                return
            rest = text[end:]
        self._held = rest


class LogReader:
    """Lines of one life of a container, beginning with the oldest that there are."""

    def __init__(self, directory: Path, path: Path, since: float = 0.0) -> None:
        """Rotated files whose last change was before ``since`` (epoch seconds) are left out. Raises OSError when there
        is nothing to read."""
        self._directory = directory
        self._path = path
        self._since = since
        self._cutter = LineCutter()
        self._file: LogFile | None = None
        """The file that is being read; None before the first, and between two."""
        self._current, names = self._look()
        """The newest file, which is written."""
        self._older = deque(names)
        """Names of files that are read before it."""
        self._before = stem(names[-1]) if names else ""
        """The last one of them, before it was compressed: a file that comes after it was the newest, or is later."""
        if self._current is None and not names:
            os.close(open_regular(directory, path))  # raises why
        self._goal = self._current.size() if self._current is not None else 0

    @property
    def has_reached_goal(self) -> bool:
        """Whether all is read that was there at first."""
        return self._file is not None and self._file is self._current and self._file.position >= self._goal

    def skip_to_tail(self, lines: int) -> None:
        """Go on with the last ``lines`` lines. Before anything is read."""
        missing = self._current.skip_to_tail(lines) if self._current is not None else lines
        rest: deque[str] = deque()
        while missing and self._older:
            name = self._older.pop()
            file = self._open(name)
            if file is None:
                continue
            self._end_file()
            self._file = file
            missing = file.skip_to_tail(missing)
            rest.appendleft(name)
        if rest:
            rest.popleft()  # which is open
        self._older = rest

    def skip_to_time(self) -> None:
        """Go on with lines that are about as old as ``since``. Before anything is read."""
        self._file = self._next()
        if self._file is not None:
            self._file.skip_to_time(self._since)

    def read_lines(self) -> list[bytes] | None:
        """Lines that have become complete; None at the present end of the newest file."""
        while True:
            if self._file is None:
                self._file = self._next()
                self._cutter.reset()
            data = self._file.read() if self._file is not None else b""
            if data:
                return self._cutter.feed(data)
            if self._file is self._current:
                return None
            self._end_file()

    def has_moved(self) -> bool:
        """Whether the log goes on elsewhere than in the newest file: in another one under its name, or at the begin of
        this one, which was cut. What was written before that is read before `go_on`. A log that was moved away goes on
        where it is, until there is another one."""
        inode = self._inode()
        return (inode != 0 and inode != _inode_of(self._current)) or self._is_cut()

    def go_on(self) -> bool:
        """Go over to what comes after the newest file, which is read to its end. False where that cannot be opened: the
        log goes on where it is."""
        if self._current is not None and self._is_cut():
            self._current.position = 0
            self._cutter.reset()
            return True
        after, names = self._look()
        if after is None:
            return False
        later = [name for name in names if stem(name) > self._before]
        own = next((number for number, name in enumerate(later) if self._is_current(name)), -1)
        self._older = deque(later[own + 1 :])
        self._before = max([self._before, *map(stem, names)])
        self._end_file()
        if self._current is not None:
            self._current.close()
        self._current = after
        return True

    def close(self) -> None:
        self._end_file()
        if self._current is not None:
            self._current.close()

    def _end_file(self) -> None:
        """The newest one stays open."""
        if self._file is not None and self._file is not self._current:
            self._file.close()
        self._file = None

    def _next(self) -> LogFile | None:
        while self._older:
            file = self._open(self._older.popleft())
            if file is not None:
                return file
        return self._current

    def _look(self) -> tuple[LogFile | None, list[str]]:
        """The newest file, and the names of the others as they were at one moment."""
        for looks in range(1, MAX_LOOKS + 1):
            current = self._open_current()
            in_use, _ = split_unused(rotated_of(self._path.name, _names(self._path.parent)))
            if in_use and current is not None and current.is_same(self._path.with_name(in_use[-1])):
                in_use.pop()  # a rotation that is under way
            if self._inode() == _inode_of(current) or looks == MAX_LOOKS:
                break
            if current is not None:
                current.close()
        return current, in_use

    def _open_current(self) -> LogFile | None:
        try:
            return LogFile(open_regular(self._directory, self._path))
        except OSError:
            return None  # moved away and not made again yet, or removed with its pod

    def _inode(self) -> int:
        """The log's now; 0 for none, and for what is no regular file: a container may have put a FIFO there."""
        try:
            found = self._path.stat(follow_symlinks=False)
        except OSError:
            return 0
        return found.st_ino if stat.S_ISREG(found.st_mode) else 0

    def _is_cut(self) -> bool:
        return self._current is not None and self._current.size() < self._current.position

    def _is_current(self, name: str) -> bool:
        """Whether that file is the newest one, rotated since."""
        current = self._current
        return current is not None and any(current.is_same(self._path.with_name(each)) for each in _forms(name))

    def _open(self, name: str) -> LogFile | None:
        """None for a file that is gone, or too old."""
        for each in _forms(name):
            try:
                fd = open_regular(self._directory, self._path.with_name(each))
            except OSError:
                continue
            if os.fstat(fd).st_mtime >= self._since - TIMESTAMP_SLACK_S:
                return CompressedLogFile(fd) if each.endswith(COMPRESSED) else LogFile(fd)
            os.close(fd)
            return None
        return None


def tail_offset(fd: int, lines: int) -> int:
    """Where the last ``lines`` lines begin, in bytes. Reads backwards, never more than needed.

    Counts entries, so that a line in pieces counts once per piece. One that is being written does not count, and is
    part of what is shown, as upstream (cri-client pkg/logs/tail.go, findTailLineStartIndex).
    """
    return _tail(fd, lines)[0]


def time_offset(fd: int, since: float) -> int:
    """Where a line begins that is older than ``since`` (epoch seconds), and after which those of that time follow
    within some ten KiB; 0 where all are newer.

    Bisects, as a log is in the order of its times, and reads no more than PROBE_BYTES for each halving. Where lines
    are not in the log's format it stays before them.
    """
    begin, end = 0, os.fstat(fd).st_size
    while end - begin > PROBE_BYTES:
        middle = (begin + end) // 2
        found = _first_entry(os.pread(fd, min(PROBE_BYTES, end - middle), middle))
        if found is not None and found[1] < since:
            begin = middle + found[0]
        else:
            end = middle
    return begin


def _first_entry(block: bytes) -> tuple[int, float] | None:
    """Where the first whole entry begins behind a newline, and its time; None without one."""
    start = block.find(b"\n") + 1
    while start and (stop := block.find(b"\n", start)) >= 0:
        time = time_of(block[start:stop])
        if time is not None:
            return start, time
        start = stop + 1
    return None


def _newest(text: bytes) -> float | None:
    """Time of the last entry of whole lines; None where the last line is none."""
    begin = text.rfind(b"\n", 0, len(text) - 1) + 1
    return time_of(text[begin : len(text) - 1])


def _tail(fd: int, lines: int) -> tuple[int, int]:
    """`tail_offset`, and how many lines are missing."""
    position, missing = os.fstat(fd).st_size, lines + 1
    while position > 0:
        start = max(0, position - READ_BYTES)
        block = os.pread(fd, position - start, start)
        newlines = block.count(b"\n")
        if newlines >= missing:
            return start + _newline_from_right(block, missing) + 1, 0
        position, missing = start, missing - newlines
    return 0, missing - 1


def _newline_from_right(block: bytes, count: int) -> int:
    """Where the ``count``-th newline from the right stands; there are that many."""
    position = len(block)
    for _ in range(count):
        position = block.rindex(b"\n", 0, position)
    return position


def _after_newline(block: bytes, count: int) -> int:
    """Where the text after the ``count``-th newline from the left begins; there are that many."""
    position = 0
    for _ in range(count):
        position = block.index(b"\n", position) + 1
    return position


def _inode_of(file: LogFile | None) -> int:
    return os.fstat(file.fd).st_ino if file is not None else 0


def _forms(name: str) -> tuple[str, str]:
    """Names that a rotated log has one after the other."""
    return stem(name), stem(name) + COMPRESSED


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
