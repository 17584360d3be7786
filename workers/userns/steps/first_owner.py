"""Looking into an image for a new volume's owner, and giving the volume its mode."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Final

from workers.fs import openat2
from workers.fs.directories import root_directory
from workers.userns.steps.images import mounted
from workers.userns.steps.reading import read_file

MAX_ACCOUNTS_BYTES: Final = 1 << 20
"""Most that is read of an image's /etc/passwd, and of its /etc/group."""


def look_into_image(podman: Sequence[str], image: str, target: str) -> tuple[str, str, tuple[int, int, int] | None]:
    """Heads of the image's /etc/passwd and /etc/group, empty without them, a character for each byte; and of a
    directory at ``target`` its user, group and mode, None when there is none. Nothing leads out of the image. Raises
    OSError, Refused."""
    with mounted(podman, image) as root:
        accounts = (read_file(root, path, MAX_ACCOUNTS_BYTES)[1] for path in ("etc/passwd", "etc/group"))
        passwd, group = accounts
        return passwd, group, _directory(root, target) if target else None


def _directory(root: str, path: str) -> tuple[int, int, int] | None:
    try:
        with root_directory(root) as top, openat2.opened(top, path, os.O_PATH, openat2.IN_ROOT) as found:
            there = os.fstat(found)
    except OSError:
        return None  # the image has none, or a path that leads nowhere
    is_directory = stat.S_ISDIR(there.st_mode)
    return (there.st_uid, there.st_gid, stat.S_IMODE(there.st_mode)) if is_directory else None


def set_mode(path: str, mode: int) -> None:
    """Raises OSError."""
    with openat2.opened(None, path, openat2.READ_DIRECTORY, openat2.NO_SYMLINKS) as directory:
        os.fchmod(directory, mode)
