"""What the steps have in common: the C library, and words for what must not be done."""

from __future__ import annotations

import ctypes
import os
from typing import Final

LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """A step that must not be done. The message is for people."""


def checked(result: int, path: str) -> None:
    """Of a function of the C library that answers 0. Raises OSError."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
