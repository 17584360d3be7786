"""Reads files of the agent's own state with suspicion: the one reader of them all.

A disk, a power cut, a restore of a backup or another program may have left anything under such a name. So no file
keeps the agent from its start: what cannot be used is moved aside, and what was kept in it is made anew
(docs/compatibility.md).
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from ipc.host.atomic_file import move_aside, read_bounded
from ipc.host.text.safe_text import MAX_EVENT_BYTES, safe_line

T = TypeVar("T")

NO_FAULT_OF_THE_FILE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of this process: the file stays where it is."""


class StateUnusable(Exception):
    """A file of state that cannot be used, and what became of it. Begin without it."""


def load_state(path: Path, max_bytes: int, decode: Callable[[bytes], T], subject: str) -> T | None:
    """The file's content as ``decode`` reads it; None when there is no file.

    Raises StateUnusable for a file that cannot be read, is no regular file, is larger than ``max_bytes``, or that
    ``decode`` refuses by any error whatever. It was moved aside to ``<name>.refused`` then, for people to look at.
    ``subject`` names the content in the error's text.
    """
    try:
        return decode(read_bounded(path, max_bytes))
    except FileNotFoundError:
        return None
    except Exception as error:  # of a hostile content nobody knows which: too deep, no UTF-8, out of range
        outcome = f"{_words(error)}{_aside(path, error)}"
        raise StateUnusable(f"{subject} {safe_line(str(path))} cannot be used: {outcome}") from error


def usable_state(
    path: Path, max_bytes: int, decode: Callable[[bytes], T], subject: str, log: logging.Logger
) -> T | None:
    """As `load_state`; of a file that cannot be used this says so in the log, and there is nothing."""
    try:
        return load_state(path, max_bytes, decode, subject)
    except StateUnusable as error:
        log.error("%s", error)
        return None


def seen_state(path: Path, max_bytes: int, decode: Callable[[bytes], T]) -> T | None:
    """As `load_state`, for those who only look: what cannot be used is nothing, and stays where it is."""
    try:
        return decode(read_bounded(path, max_bytes))
    except Exception:  # as above
        return None


def has_content(path: Path, data: bytes) -> bool:
    """Whether a regular file with exactly that content is there. No more of it is read than that."""
    try:
        return read_bounded(path, len(data)) == data
    except Exception:  # whatever is there instead is written anew
        return False


def _words(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) else str(error)
    return safe_line(words or type(error).__name__, MAX_EVENT_BYTES)


def _aside(path: Path, error: Exception) -> str:
    is_its_fault = not isinstance(error, OSError) or error.errno not in NO_FAULT_OF_THE_FILE
    return move_aside(path) if is_its_fault and os.path.lexists(path) else ""
