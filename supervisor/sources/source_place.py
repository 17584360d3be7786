"""Checks that a source is still the same. Another directory with missing manifests is a mismatch, not an empty source.

An unmounted file system leaves its empty mount point, and a failed deployment a wrong directory. Both look as if every
pod should end. So the identity of the last accepted source is kept beside the checkpoint. If a read finds another
directory that lacks manifests, the agent reports it and waits. An operator accepts the change by `rootlet reload
--accept-manifests`. Manifests that go from the same directory count as removed.
"""

from __future__ import annotations

import enum
import logging
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import write_atomically
from ipc.host.private_directories import make_private
from ipc.host.state_file import seen_state, usable_state

FILE: Final = "manifest_source"
"""Below ``stateDir``."""
MAX_FILE_BYTES: Final = 16 << 20
"""Largest file that is read: 4,096 names of 255 bytes, each of them escaped."""
MAX_NAMED: Final = 5
"""Most missing manifests that are named."""

log = logging.getLogger(__name__)


class Kind(enum.StrEnum):
    """Kinds of a source; the texts are for people."""

    DIRECTORY = "a directory"
    FILE = "a file"
    OTHER = "neither a file nor a directory"


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Identity of a source. Of a file it is its kind alone: editors replace files."""

    kind: Kind
    resolved: str = ""
    """Path without links: what a link leads to."""
    device: int = 0
    inode: int = 0
    file_system: int = 0
    """Id of the file system, which a reboot does not change where a device's number may; 0 when there is none."""

    def is_same(self, other: Place) -> bool:
        """Whether both are one and the same."""
        if self.kind is not Kind.DIRECTORY or other.kind is not Kind.DIRECTORY:
            return self.kind is other.kind
        is_same_system = self.device == other.device or (self.file_system == other.file_system != 0)
        return self.inode == other.inode and is_same_system


class Believed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last look that was believed. Kept on disk."""

    path: str
    """The configured one: another configuration is a wish."""
    place: Place
    names: frozenset[str]
    """Manifests, as texts of one line."""


def place_at(path: Path) -> Place:
    """Identity of what is there now. Raises OSError."""
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        return Place(Kind.FILE if stat.S_ISREG(found.st_mode) else Kind.OTHER)
    return Place(
        Kind.DIRECTORY, _text(Path(os.path.realpath(path))), found.st_dev, found.st_ino, os.statvfs(path).f_fsid
    )


def mismatch(believed: Believed | None, path: Path, place: Place, names: Collection[str]) -> str:
    """Why a look is not believed, for people; empty if it is. Pure."""
    if believed is None or believed.path != _text(path) or believed.place.is_same(place):
        return ""
    if not (missing := sorted(believed.names.difference(names))):
        return ""
    before = believed.place
    is_directory = before.kind is place.kind is Kind.DIRECTORY
    if is_directory and before.resolved != place.resolved and names:
        return ""  # somebody has switched a link to the next deployment
    what = "is another directory than before" if is_directory else f"is {place.kind} now and was {before.kind}"
    named = ", ".join(missing[:MAX_NAMED]) + (f" and {more} more" if (more := len(missing) - MAX_NAMED) > 0 else "")
    return (
        f"{what}, without {named}: its pods stay as they were until it is back, "
        "or until `rootlet reload --accept-manifests` says that this is meant"
    )


class PlaceRecord:
    """Owns what was believed. One thread at a time, but for `accept`."""

    def __init__(self, path: Path, file: Path) -> None:
        """``path`` is the source's, ``file`` keeps what was believed."""
        self.path: Final = path
        self._file = file
        self._believed: Believed | None = None
        self._is_read = False
        self._is_accepted = False
        self.mismatch = ""
        """Words about the newest look, empty when it was believed."""

    def judge(self, place: Place, names: frozenset[str], further: frozenset[str] = frozenset()) -> str:
        """`mismatch` about this look, which is the believed one from now on when there is none. ``further`` names are
        there, too, and not worth keeping."""
        if not self._is_read:
            self._believed = usable_state(self._file, MAX_FILE_BYTES, _decode, "the identity of the manifests", log)
            self._is_read = True
        self.mismatch = "" if self._is_accepted else mismatch(self._believed, self.path, place, names | further)
        self._is_accepted = False
        if not self.mismatch:
            self._keep(Believed(_text(self.path), place, names))
        return self.mismatch

    def accept(self) -> bool:
        """Believe the next look whatever it finds; False when there is no doubt."""
        self._is_accepted = bool(self.mismatch)
        return self._is_accepted

    def _keep(self, believed: Believed) -> None:
        """A disk that takes nothing costs what the file is for: it is written by a later look."""
        is_news, self._believed = believed != self._believed, believed
        if not is_news and os.path.lexists(self._file):
            return
        try:
            make_private(self._file.parent)
            write_atomically(self._file, msgspec.json.encode(believed))
        except OSError as error:
            log.error("the identity of the manifests is not kept on disk: %s", error.strerror or error)


def seen_mismatch(path: Path, file: Path, place: Place, names: Collection[str]) -> str:
    """`mismatch`, for those who only look."""
    return mismatch(seen_state(file, MAX_FILE_BYTES, _decode), path, place, names)


def _decode(data: bytes) -> Believed:
    return msgspec.json.decode(data, type=Believed)


def _text(path: Path) -> str:
    """A path may hold any bytes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
