"""Podman's own list of images, a file: as long as it is the same file, what an inspect of an image has said is true.

containers/storage writes ``<root>/<driver>-images/images.json`` anew, by renaming, when an image comes, goes or gets
another name, and itself looks at the file's date to know whether it has to read it again. Where it lies stands on the
command line of each monitor, which calls Podman at the end of its container. So the service is one whose containers are
processes of this host.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from workers.kubecontainer.runtime import ImageStamp

MAX_LIST_BYTES: Final = 16 << 20
"""Longest list that is read, in bytes: ten thousand images."""
_ARGUMENT: Final = "--exit-command-arg"
_OTHER_STORE: Final = "imagestore="
"""Storage option that names a store with a list of its own."""


class _FileStamp(NamedTuple):
    changed_ns: int
    inode: int
    size: int


class ImageStore:
    """The list of one service's images, once a monitor has told where it is."""

    def __init__(self) -> None:
        self._list: Path | None = None
        self._is_known = False

    def learn(self, monitor: Sequence[str]) -> None:
        """Take it from that monitor's command line, if it is not known yet. With more than one store there is none."""
        if self._is_known:
            return
        self._is_known = True
        self._list = list_of(monitor)

    def stamp(self, having: str = "") -> ImageStamp | None:
        """Stamp of the list, another one after each change; None when it cannot be known, or the list does not name the
        image ``having`` (its id). Blocks."""
        if self._list is None:
            return None
        try:
            with open(self._list, "rb") as file:
                found = os.fstat(file.fileno())
                names_it = not having or having.encode() in file.read(MAX_LIST_BYTES)
        except OSError:
            return None
        return _FileStamp(found.st_mtime_ns, found.st_ino, found.st_size) if names_it else None


def list_of(monitor: Sequence[str]) -> Path | None:
    """The file, out of a monitor's command line; None when that names none, or other stores beside it."""
    arguments = [word for option, word in itertools.pairwise(monitor) if option == _ARGUMENT]
    options = list(itertools.pairwise(arguments))
    root, driver = dict(options).get("--root", ""), dict(options).get("--storage-driver", "")
    others = any(option == "--storage-opt" and _OTHER_STORE in word for option, word in options)
    return Path(root, f"{driver}-images", "images.json") if root and driver and not others else None
