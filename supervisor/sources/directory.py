"""Reads a manifest directory, or a single manifest file, as it is at one moment.

Mirrors pkg/kubelet/config/file.go, listConfig and extractFromDir. What counts as a manifest: a name that ends in
``.yaml``, ``.yml`` or ``.json`` and does not begin with a dot, which leaves editors' temporary files out (``x.yaml~``,
``.x.yaml.swp``, ``#x.yaml#``, ``4913``, ``x.yaml.tmp``). A symbolic link to a regular file counts as that file. A FIFO,
socket, device or directory of such a name is an error and is never opened, and so is a file that the kernel makes up as
it is read (``/proc/self/environ``), which never holds still. Other sub-directories are ignored.

On purpose different: a missing directory is not an empty one. Upstream sends an empty set, which takes every pod down
when a mount is late or somebody moves the directory; here nothing is deleted on partial knowledge.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import stat
from collections.abc import Callable, Container, Iterable, Mapping, Set
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.file_systems import KERNEL_FILE_SYSTEMS, file_system_at
from ipc.host.text.safe_text import safe_line
from supervisor.protocol.manifests import DecodedFile, ManifestError, ManifestErrorKind, SourceSnapshot
from supervisor.sources.objects.apart import LIGHT_BYTES, Decoder, is_heavy
from supervisor.sources.objects.decode import decode_manifest
from supervisor.sources.objects.identity import Origin
from supervisor.sources.source_place import Kind, Place, PlaceRecord, place_at, seen_mismatch
from supervisor.state.sealed_content import NotOpened

MANIFEST_SUFFIXES: Final = (".yaml", ".yml", ".json")
MAX_FILES: Final = 4_096
"""Most manifests of one directory that are read. Of more, those that were read before come first."""
MAX_NAMES: Final = 65_536
"""Most manifests of which the names are known; with more, the directory counts as not read."""
MAX_LOOKED_AT: Final = 100
"""Most entries of a directory below that are looked at."""
MAX_SKIPPED: Final = 10
"""Most names of files that are no manifests."""
READING_BYTES: Final = 1 << 20
"""Most bytes of new files that one reading decodes, all of them small."""
DEFAULT_MAX_MANIFEST_BYTES: Final = 1 << 20
_READ_CHUNK_BYTES: Final = 1 << 18
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BEING_WRITTEN: Final = "is being written; read again when it holds still"

_REPLACED: Final = "was replaced while it was read"

_KINDS: Final[tuple[tuple[int, str], ...]] = (
    (stat.S_IFDIR, "a directory"),
    (stat.S_IFIFO, "a FIFO"),
    (stat.S_IFSOCK, "a socket"),
    (stat.S_IFCHR, "a device"),
    (stat.S_IFBLK, "a device"),
)


log = logging.getLogger(__name__)


class Signature(msgspec.Struct, frozen=True):
    """Identity of a file and its content: while it is the same, so is the content.

    ctime is part of it, because a copy may keep size and mtime, and nothing but time moves ctime back.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The manifests of a directory, not yet read: name to signature, or to why it cannot be read."""

    directory: Path = Path()
    files: Mapping[str, Signature | ManifestError] = {}
    errors: tuple[ManifestError, ...] = ()
    """About the directory itself. Empty exactly when all names are known."""
    unread: tuple[str, ...] = ()
    """Names of further manifests, which are above MAX_FILES, sorted."""
    absent: bool = False
    """Nothing is there."""
    place: Place | None = None
    """Identity of the listed place. None exactly when there are errors."""
    skipped: frozenset[str] = frozenset()
    """Names of regular files that do not count as manifests, and of directories with manifests, which end in ``/``;
    but for hidden ones. At most MAX_SKIPPED of them."""


def list_manifests(path: Path, known: Container[str] = ()) -> Listing:
    """Manifests at ``path``, a directory or a single file, without opening anything. Never raises.

    ``known`` are names, as `shown_name` has them, of files that come first where there are more than are read.
    """
    try:
        place = place_at(path)
        if place.kind is not Kind.DIRECTORY:
            return Listing(directory=path.parent, files={path.name: _look_at(path, {})}, place=place)
        listing = _list_directory(path, known)
        if not listing.errors and not place_at(path).is_same(place):
            return _unlisted(path, _REPLACED)
        return listing if listing.errors else msgspec.structs.replace(listing, place=place)
    except FileNotFoundError as error:
        return msgspec.structs.replace(_unlisted(path, _reason(error)), absent=True)
    except OSError as error:
        return _unlisted(path, _reason(error))


def chosen(names: Iterable[str], known: Container[str], most: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the files that are read, and of those that are not: known ones first, then in the order of names. Pure.

    So a file that states pods which run is never the one too many.
    """
    in_order = sorted(names, key=lambda name: (shown_name(name) not in known, name))
    return tuple(in_order[:most]), tuple(in_order[most:])


def judged(listing: Listing, place_record: PlaceRecord, changing: frozenset[str]) -> Listing:
    """The listing, or in its place an error when it is in doubt whether this is still the source. Blocks."""
    if listing.place is None:
        return listing
    names = frozenset(map(shown_name, listing.files.keys() | changing))
    why = place_record.judge(listing.place, names, frozenset(map(shown_name, listing.unread)))
    return _unlisted(place_record.path, why) if why else listing


def seen_listing(path: Path, place_file: Path) -> Listing:
    """The manifests as `judged` would have them, for those who only look."""
    listing = list_manifests(path)
    if listing.place is None:
        return listing
    why = seen_mismatch(path, place_file, listing.place, frozenset(map(shown_name, (*listing.files, *listing.unread))))
    return _unlisted(path, why) if why else listing


def changed_files(before: Listing, now: Listing) -> frozenset[str]:
    """Names that came, went or have another signature."""
    names = before.files.keys() | now.files.keys()
    return frozenset(name for name in names if before.files.get(name) != now.files.get(name))


class Heavy(msgspec.Struct, frozen=True):
    """A file that is decoded apart."""

    path: Path
    signature: Signature


def this_time(sizes: Mapping[str, int], most_bytes: int) -> frozenset[str]:
    """Files of a reading: the smallest of those that are new, of so many bytes, and one at least. Pure.

    The others come with the next one, so that none waits for many that are larger.
    """
    taken: set[str] = set()
    total = 0
    for name in sorted(sizes, key=lambda name: (sizes[name], name)):
        total += sizes[name]
        if taken and total > most_bytes:
            break
        taken.add(name)
    return frozenset(taken)


class ManifestReader:
    """Reads listings into snapshots and decodes a file only when its signature is new. One thread at a time."""

    def __init__(
        self,
        path: Path,
        origin: Origin,
        max_bytes: int = DEFAULT_MAX_MANIFEST_BYTES,
        opened: Callable[[str, bytes], bytes] | None = None,
        *,
        apart: bool = False,
    ) -> None:
        """``apart``: files that may be costly are left to others, see `heavy`. ``opened``: the
        content of a file of that name by its bytes, where they are not the same. Raises
        NotOpened."""
        self.path = path
        self._opened = opened
        self._origin = origin
        self._max_bytes = max_bytes
        self._decoded: dict[str, tuple[Signature, DecodedFile]] = {}
        self._expected: frozenset[str] = frozenset()
        self._apart = apart
        self.heavy: Mapping[str, Heavy] = {}
        """Files of the last reading that `decode_heavy` has to read, and `take` to be told of, by name."""
        self.has_more = False
        """The last reading has left files to the next one."""

    def expect(self, files: Iterable[str]) -> None:
        """Name the files that stated something before this agent began: they count as known."""
        self._expected = frozenset(files)

    def look(self) -> Listing:
        """The manifests as they are now, without opening any. Never raises."""
        return list_manifests(self.path, self._expected.union(map(shown_name, self._decoded)))

    def read(self, listing: Listing, changing: frozenset[str] = frozenset()) -> SourceSnapshot:
        """Pods, objects and errors of the listed files. Files in ``changing`` are held and not opened. Never raises."""
        names = listing.files.keys() - changing
        later = self._later(listing, names)
        heavy: dict[str, Heavy] = {}
        files = [self._read_file(listing, name, heavy) for name in sorted(names - later)]
        self.heavy, self.has_more = heavy, bool(later)
        if not listing.errors:  # else nobody knows what is gone
            self._decoded = {name: entry for name, entry in self._decoded.items() if name in listing.files}
        held = tuple(_error(name, _BEING_WRITTEN, ManifestErrorKind.CHANGING) for name in sorted(changing))
        return SourceSnapshot(
            source=self._origin.source,
            pods=tuple(pod for file in files for pod in file.pods),
            objects=tuple(found for file in files for found in file.objects),
            errors=(*listing.errors, *_unread(listing), *(error for file in files for error in file.errors), *held),
            complete=not listing.errors,
            absent=listing.absent,
            skipped=listing.skipped,
            unread=frozenset(map(shown_name, later | heavy.keys())),
        )

    def _later(self, listing: Listing, names: Set[str]) -> Set[str]:
        if not self._apart:
            return frozenset()
        new = {
            name: found.size
            for name, found in ((name, listing.files[name]) for name in names)
            if isinstance(found, Signature) and found.size <= LIGHT_BYTES and self._signature_of(name) != found
        }
        return new.keys() - this_time(new, READING_BYTES)

    def _signature_of(self, name: str) -> Signature | None:
        """Signature of a file as it was decoded last."""
        return self._decoded[name][0] if name in self._decoded else None

    def decode_heavy(self, name: str, heavy: Heavy, decoder: Decoder) -> DecodedFile | None:
        """Decode a file of `heavy`. Blocks; for any thread. None when it is another file by now, or for want of
        processes: it is to be read again."""
        content = _read_content(heavy.path, heavy.signature, self._max_bytes)
        if isinstance(content, ManifestError):
            return None
        try:
            return decoder.decode(content, shown_name(name), self._origin)
        except OSError as error:
            log.warning("%s is read later: %s", shown_name(name), _reason(error))
            return None

    def take(self, name: str, heavy: Heavy, decoded: DecodedFile) -> None:
        """Keep what a file of `heavy` states: the next reading has it."""
        self._decoded[name] = (heavy.signature, decoded)

    def remember(self, path: Path, decoded: DecodedFile) -> None:
        """Keeps the content of a file that was just written, as a reading of it would find it. Raises OSError."""
        self._decoded[path.name] = (_signature(path.stat()), decoded)

    def _read_file(self, listing: Listing, name: str, heavy: dict[str, Heavy]) -> DecodedFile:
        found = listing.files[name]
        if isinstance(found, ManifestError):
            return DecodedFile(errors=(found,))
        signature, decoded = self._decoded.get(name, (None, DecodedFile()))
        if signature == found:
            return decoded
        path = listing.directory / name
        content = _read_content(path, found, self._max_bytes)
        if isinstance(content, ManifestError):
            return DecodedFile(errors=(content,))
        try:
            content = content if self._opened is None else self._opened(name, content)
        except NotOpened as error:
            return DecodedFile(errors=(_error(name, str(error)),))
        if self._apart and is_heavy(content):
            heavy[name] = Heavy(path, found)
            return DecodedFile()
        decoded = decode_manifest(content, shown_name(name), self._origin)
        self._decoded[name] = (found, decoded)
        return decoded


def shown_name(name: str) -> str:
    """A file name as text of one line: it may hold any bytes."""
    return safe_line(os.fsencode(name).decode("utf-8", "backslashreplace"))


def _list_directory(path: Path, known: Container[str]) -> Listing:
    found: list[str] = []
    skipped: set[str] = set()
    with os.scandir(path) as entries:
        for entry in entries:
            if _is_manifest(entry.name):
                if len(found) >= MAX_NAMES:
                    return _unlisted(path, f"more than {MAX_NAMES} manifests")
                found.append(entry.name)
            elif len(skipped) < MAX_SKIPPED and _is_skipped(entry):
                skipped.add(shown_name(entry.name))
            elif len(skipped) < MAX_SKIPPED and _has_manifests(entry):
                skipped.add(f"{shown_name(entry.name)}/")
    names, unread = (found, ()) if len(found) <= MAX_FILES else chosen(found, known, MAX_FILES)
    file_systems: dict[int, str] = {}
    files = {name: _look_at(path / name, file_systems) for name in names}
    return Listing(directory=path, files=files, unread=unread, skipped=frozenset(skipped))


def _is_manifest(name: str) -> bool:
    return name.endswith(MANIFEST_SUFFIXES) and not name.startswith(".")


def _is_skipped(entry: os.DirEntry[str]) -> bool:
    """Whether somebody may have meant it to be a manifest: editors' files and directories are not."""
    if entry.name.startswith((".", "#")) or entry.name.endswith((*MANIFEST_SUFFIXES, "~")):
        return False
    try:
        return entry.is_file()
    except OSError:
        return False


def _has_manifests(entry: os.DirEntry[str]) -> bool:
    """Whether somebody may have meant its manifests to be read; of a large directory the beginning is looked at."""
    if entry.name.startswith("."):
        return False
    try:
        if not entry.is_dir():
            return False
        with os.scandir(entry) as below:
            return any(_is_manifest(each.name) for each in itertools.islice(below, MAX_LOOKED_AT))
    except OSError:
        return False


def _look_at(path: Path, file_systems: dict[int, str]) -> Signature | ManifestError:
    """``file_systems``: types by device, as far as they were found out."""
    try:
        found = path.stat()
    except OSError as error:
        return _error(path.name, _reason(error))
    if not stat.S_ISREG(found.st_mode):
        return _error(path.name, _not_regular(found.st_mode))
    if found.st_dev not in file_systems:
        file_systems[found.st_dev] = _file_system(path)
    if (type := file_systems[found.st_dev]) in KERNEL_FILE_SYSTEMS:
        return _error(path.name, f"lies on a file system of type {type}: the kernel makes it up as it is read")
    return _signature(found)


def _file_system(path: Path) -> str:
    """Empty when nobody tells."""
    try:
        return file_system_at(path)
    except OSError:
        return ""


def _read_content(path: Path, expected: Signature, max_bytes: int) -> bytes | ManifestError:
    """The bytes of the file with the expected signature, or why there are none."""
    name = path.name
    if expected.size > max_bytes:
        return _error(name, f"{expected.size} bytes, more than the maximum of {max_bytes}")
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
        try:
            content = _read_regular(descriptor, max_bytes)
            unchanged = _signature(os.fstat(descriptor)) == expected and len(content) == expected.size
        finally:
            os.close(descriptor)
    except OSError as error:
        return _error(name, _reason(error))
    return content if unchanged else _error(name, _BEING_WRITTEN, ManifestErrorKind.CHANGING)


def _read_regular(descriptor: int, max_bytes: int) -> bytes:
    """At most one byte more than the maximum. Raises OSError, also when it is no regular file any more."""
    if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, _not_regular(mode))
    chunks: list[bytes] = []
    missing = max_bytes + 1
    while missing > 0 and (chunk := os.read(descriptor, min(missing, _READ_CHUNK_BYTES))):
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)


def _signature(found: os.stat_result) -> Signature:
    return Signature(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _not_regular(mode: int) -> str:
    kind = next((text for kind, text in _KINDS if stat.S_IFMT(mode) == kind), "something else")
    return f"is {kind}, not a regular file"


def _unread(listing: Listing) -> tuple[ManifestError, ...]:
    """Error about the files that are too many. They are not held: nobody knows of anything that they state."""
    if not listing.unread:
        return ()
    first = shown_name(listing.unread[0])
    words = f"{len(listing.unread)} manifests are not read, such as {first}: {MAX_FILES} files are the maximum"
    return (_error(str(listing.directory), words),)


def _unlisted(path: Path, reason: str) -> Listing:
    return Listing(errors=(_error(str(path), reason),))


def _error(file: str, message: str, kind: ManifestErrorKind = ManifestErrorKind.UNREADABLE) -> ManifestError:
    return ManifestError(kind=kind, file=shown_name(file), message=message)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
