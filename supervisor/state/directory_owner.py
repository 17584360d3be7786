"""Owner of a directory. Two agents that share one would take each other's logs and files of pods for orphans.

The instance's lock keeps two agents of one name apart; this keeps apart those of two names, also when one of them does
not run at the moment but its pods do.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from pathlib import Path
from typing import Final

from ipc.host.atomic_file import UntrustedFile, move_aside
from ipc.host.private_directories import ensure_private
from ipc.host.regular_files import open_regular_file

OWNER_FILE: Final = ".rootlet-instance"
"""Holds the name of the instance that the directory belongs to."""
MAX_NAME_BYTES: Final = 64
"""Longest name that is read; a DNS label has 63."""
FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

_IS_NO_FILE: Final = frozenset({errno.ENOENT, errno.EISDIR, errno.ELOOP, errno.EACCES})
"""Errors of an open that makes what is missing: something else is there."""

log = logging.getLogger(__name__)


class DirectoryTaken(Exception):
    """The directory belongs to another instance."""

    def __init__(self, directory: Path, owner: str) -> None:
        super().__init__(
            f"{directory} belongs to the instance {owner!r}: give this one a directory of its own, "
            f"or remove {directory / OWNER_FILE} if that instance is gone for good"
        )


def claim(directory: Path, instance: str) -> None:
    """Make the directory, which no other user may look into, and it ours. Again and again, and by two at a time: one of
    them gets it.

    Raises DirectoryTaken, and OSError when it cannot be made or marked.
    """
    ensure_private(directory)
    try:
        owner = _first_name(directory / OWNER_FILE, instance)
    except (OSError, UntrustedFile) as error:
        if isinstance(error, OSError) and error.errno not in _IS_NO_FILE:
            raise
        why = error.strerror if isinstance(error, OSError) else error
        log.error("%s is nobody's mark: %s%s", directory / OWNER_FILE, why, move_aside(directory / OWNER_FILE))
        owner = _first_name(directory / OWNER_FILE, instance)
    if owner != instance:
        raise DirectoryTaken(directory, owner)


def _first_name(owner_file: Path, instance: str) -> str:
    """The name in the file, which is made with ours where it is missing or empty. Raises OSError, and UntrustedFile for
    a content that is no name of an instance: nobody's."""
    descriptor = open_regular_file(owner_file, FLAGS)
    try:
        if not os.fstat(descriptor).st_size:
            os.write(descriptor, f"{instance}\n".encode())
        # The first name in the file counts, also when two agents append at the same time.
        owner = os.pread(descriptor, MAX_NAME_BYTES, 0).decode(errors="replace").partition("\n")[0]
    finally:
        os.close(descriptor)
    if not _NAME.fullmatch(owner):
        raise UntrustedFile("it has no name of an instance")
    return owner
