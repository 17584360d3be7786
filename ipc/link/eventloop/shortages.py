"""Shortages of a process, which pass: file descriptors, processes and threads, memory, room on a disk. Work that is
done again and again is passed over for that time."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from typing import Final

ERRNOS: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC, errno.EDQUOT}
)
_NO_THREAD: Final = "can't start new thread"
"""Python has no type of its own for that (Modules/_threadmodule.c)."""

log = logging.getLogger(__name__)


def is_shortage(error: BaseException) -> bool:
    """Whether the same may go well a little later, with nothing changed in this process."""
    if isinstance(error, OSError):
        return error.errno in ERRNOS
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_THREAD in str(error))


def tells_of_shortage(words: str) -> bool:
    """Whether a program that has failed says so, in the words of the C library for such an error."""
    return any(os.strerror(number) in words for number in ERRNOS)


class Patient:
    """Something that is done again and again: where it fails for a shortage, that time is passed over, with a word at
    the first in a row. Every other exception is raised."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name = name
        self._act = act
        self._is_short = False

    def __call__(self) -> None:
        try:
            self._act()
        except Exception as error:
            if not is_shortage(error):
                raise
            self._note(error)
        else:
            if self._is_short:
                log.info("%s goes on", self._name)
            self._is_short = False

    def _note(self, error: Exception) -> None:
        level = logging.DEBUG if self._is_short else logging.WARNING
        self._is_short = True
        log.log(level, "%s is passed over: %s", self._name, error)
