"""Write the files of a volume so that who reads them sees the old ones or the new ones, never a mixture.

Mirrors AtomicWriter (pkg/volume/util/atomic_writer.go). What is in the volume's directory:

``..2026_11_20_19_03_51.123456789/``  a version: the files
``..data -> ..2026_11_20_19_03_51.123456789``  which version counts; replaced by a rename
``KEY -> ..data/KEY``  what users open: the first name of each path

Different on purpose: a file whose mode was changed, or that is not the plain file of ours that was written, is written
again; whatever was left by a writer that was killed goes first; and nothing is reached by a path: every step begins at
a descriptor of the directory, follows no link, and takes no name from a link but that of a version. Nothing is synced
to the disk: after a power cut the next write finds what is wrong. A version that is replaced stays until the next call:
who has just followed ``..data`` to it finds what is there (upstream removes it at once, and a reader may find nothing).
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, Union

from ipc.host.clock import rfc3339
from workers.fs.directories import directory_below, made_below
from workers.fs.tree_removal import Stuck, remove_tree
from workers.volumemanager.plugins.payload import FileProjection, Payload

DATA: Final = "..data"
NEW_DATA: Final = "..data_tmp"
OWN_PREFIX: Final = ".."
"""Names that begin so are the writer's."""
DIRECTORY_MODE: Final = 0o755
"""Mode of versions and the directories in them, whatever the umask."""
FILE_TYPES: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""No link, and no FIFO that would hold us up."""

_VERSION: Final = re.compile(r"\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+")
_MAX_SUFFIX: Final = 10**10

_Tree: TypeAlias = Mapping[str, Union[FileProjection, "_Tree"]]


def write_payload(
    directory: int,
    payload: Payload,
    wall: float,
    *,
    mountpoints: Sequence[str] = (),
    is_owned: Callable[[str], bool] = lambda version: True,
    set_owner: Callable[[str], None] = lambda version: None,
) -> bool:
    """Make the volume show these files and no others; False when there was nothing to write. Blocks.

    ``payload``: by paths that `cleaned` has returned. ``wall`` in epoch seconds names a new version. ``mountpoints``:
    directories that have to be there besides. ``set_owner`` gets the name of a new version's directory before anybody
    sees it, as upstream's setPerms; a version for which ``is_owned`` says no is written anew.

    Raises OSError. When only something old cannot be removed, all is as it should be apart from that.
    """
    tree = _tree(payload)
    before = current_version(directory)
    is_shown = before is not None and _shows(directory, before, tree) and is_owned(before)
    # The version before this one, and what a writer that was killed has left, which takes room that is needed now.
    stuck = _removed(directory, [name for name in _own_names(directory) if name not in (DATA, before)])
    if not is_shown:
        _swap(directory, _write_version(directory, tree, wall, set_owner))
    _link(directory, tree, frozenset(path.split("/", 1)[0] for path in mountpoints))
    _make_mountpoints(directory, mountpoints, tree)
    _raise_stuck(stuck)
    return not is_shown


def current_version(directory: int) -> str | None:
    """Name of the directory whose files are shown; None when there is none yet. Raises OSError."""
    target = _target(directory, DATA)
    if target is None or not _VERSION.fullmatch(target):
        return None
    try:
        with directory_below(directory, target):
            return target
    except (FileNotFoundError, NotADirectoryError):
        return None


# --- is it there already? ----------------------------------------------------------------------------------------


def _shows(directory: int, version: str, tree: _Tree) -> bool:
    """Whether that version has the payload's content. One that cannot be read has not."""
    try:
        with directory_below(directory, version) as fd:
            return _is(fd, tree)
    except OSError:
        return False


def _is(directory: int, tree: _Tree) -> bool:
    """Raises OSError."""
    if set(os.listdir(directory)) != tree.keys():
        return False
    for name, node in tree.items():
        if isinstance(node, FileProjection):
            if not _is_file(directory, name, node):
                return False
        else:
            with directory_below(directory, name) as below:
                if not _is(below, node):
                    return False
    return True


def _is_file(directory: int, name: str, file: FileProjection) -> bool:
    """Raises OSError."""
    path_fd = os.open(name, os.O_PATH | FILE_TYPES, dir_fd=directory)
    try:
        found = os.fstat(path_fd)
        is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        has_owner = (found.st_uid != os.geteuid()) is file.is_foreign
        if not (is_plain and has_owner) or (stat.S_IMODE(found.st_mode), found.st_size) != (file.mode, len(file.data)):
            return False
        if file.is_foreign:  # only its owner can read it: `is_owned` knows its content
            return True
        with _readable(path_fd, file.mode) as fd:
            return _read(fd, len(file.data)) == file.data
    finally:
        os.close(path_fd)


@contextmanager
def _readable(path_fd: int, mode: int) -> Iterator[int]:
    """A descriptor to read from, also of a file that its owner may not read: root may always, we are not. In /proc the
    descriptor of a path leads to that very file. Raises OSError."""
    path = f"/proc/self/fd/{path_fd}"
    if mode & stat.S_IRUSR == 0:
        os.chmod(path, mode | stat.S_IRUSR)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        if mode & stat.S_IRUSR == 0:
            os.chmod(path, mode)
    try:
        yield fd
    finally:
        os.close(fd)


def _read(fd: int, size: int) -> bytes:
    """Up to one byte more than that. Raises OSError."""
    parts: list[bytes] = []
    left = size + 1
    while left and (part := os.read(fd, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


# --- a new version -----------------------------------------------------------------------------------------------


def _write_version(directory: int, tree: _Tree, wall: float, set_owner: Callable[[str], None]) -> str:
    """Write a new version and return its name. Raises OSError."""
    version = _version_name(wall)
    os.mkdir(version, DIRECTORY_MODE, dir_fd=directory)
    with directory_below(directory, version) as fd:
        _fill(fd, tree)
        os.fchmod(fd, DIRECTORY_MODE)
    set_owner(version)
    return version


def _version_name(wall: float) -> str:
    """With a number at random, as upstream's: no two versions have one name, whatever the clock says."""
    second = rfc3339(wall).rstrip("Z").translate(_UNDERSCORES)
    return f"..{second}.{secrets.randbelow(_MAX_SUFFIX)}"


_UNDERSCORES: Final = str.maketrans("-:T", "___")


def _fill(directory: int, tree: _Tree) -> None:
    """Raises OSError."""
    for name, node in tree.items():
        if isinstance(node, FileProjection):
            _write_file(directory, name, node)
        else:
            with made_below(directory, name, mode=DIRECTORY_MODE) as below:
                _fill(below, node)


def _write_file(directory: int, name: str, file: FileProjection) -> None:
    """Raises OSError."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_TYPES, 0o600, dir_fd=directory)
    try:
        left = memoryview(file.data)
        while left:
            left = left[os.write(fd, left) :]
        os.fchmod(fd, file.mode)
    finally:
        os.close(fd)


def _swap(directory: int, version: str) -> None:
    """From now on the new version is shown. Raises OSError."""
    os.symlink(version, NEW_DATA, dir_fd=directory)
    try:
        os.rename(NEW_DATA, DATA, src_dir_fd=directory, dst_dir_fd=directory)
    except IsADirectoryError:  # not our doing
        _remove(directory, [DATA])
        os.rename(NEW_DATA, DATA, src_dir_fd=directory, dst_dir_fd=directory)


# --- what users see ----------------------------------------------------------------------------------------------


def _link(directory: int, tree: _Tree, mountpoints: frozenset[str]) -> None:
    """A link for each name, no link for any other. A directory on which something may be mounted stays; so do other
    files and directories, for a runtime makes such for what it mounts there. Raises OSError."""
    with os.scandir(directory) as found:
        is_link = {entry.name: entry.is_symlink() for entry in found if not entry.name.startswith(OWN_PREFIX)}
    for name in tree:
        if name not in is_link:
            os.symlink(f"{DATA}/{name}", name, dir_fd=directory)
        elif name not in mountpoints and _target(directory, name) != f"{DATA}/{name}":
            _remove(directory, [name])
            os.symlink(f"{DATA}/{name}", name, dir_fd=directory)
    _remove(directory, [name for name in is_link if is_link[name] and name not in tree])


def _make_mountpoints(directory: int, paths: Sequence[str], tree: _Tree) -> None:
    """Mount points that no file of the volume blocks. Raises OSError."""
    for path in paths:
        names = path.split("/")
        if names[0] not in tree and not names[0].startswith(OWN_PREFIX):
            with made_below(directory, *names, mode=DIRECTORY_MODE):
                pass


# --- names -------------------------------------------------------------------------------------------------------


def _tree(payload: Payload) -> _Tree:
    """Payload by directory. No path is above another one."""
    tree: dict[str, FileProjection | _Tree] = {}
    for path, file in payload.items():
        *above, name = path.split("/")
        node: dict[str, FileProjection | _Tree] = tree
        for directory in above:
            node = node.setdefault(directory, {})  # type: ignore[assignment]
        node[name] = file
    return tree


def _own_names(directory: int) -> list[str]:
    """Raises OSError."""
    return [name for name in os.listdir(directory) if name.startswith(OWN_PREFIX)]


def _target(directory: int, name: str) -> str | None:
    """Target of a symbolic link; None for anything else. Raises OSError."""
    try:
        return os.readlink(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return None


def _remove(directory: int, names: Sequence[str]) -> None:
    """Raises OSError when something stays; all else is gone then."""
    _raise_stuck(_removed(directory, names))


def _raise_stuck(stuck: Sequence[Stuck]) -> None:
    for one in stuck:
        raise OSError(errno.EBUSY, f"cannot remove {one}")


def _removed(directory: int, names: Sequence[str]) -> list[Stuck]:
    """Remove the trees of these names; the paths that stay, each with its reason."""
    return [stuck for name in names for stuck in remove_tree(directory, name)]
