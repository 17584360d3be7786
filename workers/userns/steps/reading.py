"""Reading what other users of a container have written."""

from __future__ import annotations

import errno

from workers.fs.regular_file import read_scoped


def read_file(root: str, path: str, max_bytes: int) -> tuple[int, str]:
    """Read at most so many bytes of a regular file, as if ``root`` were the root directory: an errno, or 0 and a
    character for each byte."""
    try:
        return 0, read_scoped(root, path, max_bytes).decode("latin-1")
    except OSError as error:
        return error.errno or errno.EIO, ""
