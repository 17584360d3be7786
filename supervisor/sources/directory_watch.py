"""inotify(7), as far as it takes to know that something has happened in a directory: no event is parsed.

No library: watchfiles wakes its thread ten times a second, and asyncinotify runs ldconfig and a compiler when it is
imported.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
from collections.abc import Callable
from typing import Final

PAUSE_S: Final = 0.2
"""Between two notifications while something goes on happening, in seconds."""
_READ_BYTES: Final = 65_536
_IN_MODIFY: Final = 0x2
_IN_ATTRIB: Final = 0x4
_IN_CLOSE_WRITE: Final = 0x8
_IN_MOVED: Final = 0xC0
_IN_CREATE: Final = 0x100
_IN_DELETE: Final = 0x200
_IN_SELF: Final = 0xC00
"""The directory itself is deleted or moved."""
_IN_ONLYDIR: Final = 0x1000000
_MASK: Final = _IN_MODIFY | _IN_ATTRIB | _IN_CLOSE_WRITE | _IN_MOVED | _IN_CREATE | _IN_DELETE | _IN_SELF | _IN_ONLYDIR
"""Everything but reads."""


class DirectoryWatch:
    """Calls back when something has happened in one directory: at once, and every `PAUSE_S` while more happens.

    Belongs to the running loop. Lives until `close`.
    """

    def __init__(self, directory: str, on_event: Callable[[], None]) -> None:
        """Raises OSError: no such directory, or too many watches."""
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._fd = _watch(directory)
        self._listen()

    def close(self) -> None:
        """Call back no more."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _listen(self) -> None:
        self._loop.add_reader(self._fd, self._heard)

    def _heard(self) -> None:
        """Call back; of what one read has left the loop tells after the pause."""
        self._loop.remove_reader(self._fd)
        self._pause = self._loop.call_later(PAUSE_S, self._listen)
        os.read(self._fd, _READ_BYTES)
        self._on_event()


def _watch(directory: str) -> int:
    """A descriptor that becomes readable. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        raise _error(directory)
    if libc.inotify_add_watch(fd, ctypes.c_char_p(os.fsencode(directory)), ctypes.c_uint32(_MASK)) < 0:
        error = _error(directory)
        os.close(fd)
        raise error
    return fd


def _error(directory: str) -> OSError:
    number = ctypes.get_errno()
    limits = {errno.EMFILE: "fs.inotify.max_user_instances", errno.ENOSPC: "fs.inotify.max_user_watches"}
    hint = f" ({limits[number]})" if number in limits else ""
    return OSError(number, os.strerror(number) + hint, directory)
