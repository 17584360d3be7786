"""Calls of the C library for the steps, with their errors."""

from __future__ import annotations

import ctypes
import os
from typing import Final

LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """A step that must not be done. The message is for people."""


def checked(result: int, path: str) -> None:
    """Check the result of a function of the C library, which returns 0. Raises OSError."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
