"""Tells that a file was written to, once for each time that it is armed (inotify(7), IN_ONESHOT): a file to which
nothing is written costs nothing, and one that is written to all the time no more than one event for each look at it.
On request it tells of links that go, too: another file has taken the place of this one.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
from collections.abc import Callable, Hashable
from typing import Final

_EVENT: Final = struct.Struct("iIII")
"""wd, mask, cookie, len; without a name, as files are watched."""
_READ_BYTES: Final = 64 * 1024
_IN_MODIFY: Final = 0x2
_IN_ATTRIB: Final = 0x4
"""Also when a link to the file goes, by a removal or a rename over it."""
_IN_ONESHOT: Final = 0x80000000


class GrowthWatch:
    """Files of one process, by keys of the caller's. Belongs to the running loop. Lives until `close`."""

    def __init__(self, on_growth: Callable[[Hashable], None], *, and_links: bool = False) -> None:
        """Raises OSError: too many instances of inotify. ``and_links``: call back for changes of its links as well."""
        self._on_growth = on_growth
        self._mask = _IN_MODIFY | (_IN_ATTRIB if and_links else 0)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = int(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._fd < 0:
            raise _error()
        self._keys: dict[int, Hashable] = {}
        """By watch descriptor, of files that have not been written to since."""
        self._armed: dict[Hashable, int] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._heard)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def arm(self, key: Hashable, file: int) -> None:
        """Call back once when something is written to that open file from now on. Raises OSError: too many watches."""
        self.disarm(key)
        path = ctypes.c_char_p(os.fsencode(f"/proc/self/fd/{file}"))
        number = int(self._libc.inotify_add_watch(self._fd, path, ctypes.c_uint32(self._mask | _IN_ONESHOT)))
        if number < 0:
            raise _error()
        self._keys[number] = key
        self._armed[key] = number

    def disarm(self, key: Hashable) -> None:
        """Call back no more for that key."""
        number = self._armed.pop(key, None)
        if number is not None and self._keys.pop(number, None) is not None:
            self._libc.inotify_rm_watch(self._fd, number)

    def _heard(self) -> None:
        for number, mask, _, _ in _EVENT.iter_unpack(os.read(self._fd, _READ_BYTES)):
            key = self._keys.get(number)
            if key is not None and mask & self._mask:
                del self._keys[number], self._armed[key]
                self._on_growth(key)


def _error() -> OSError:
    number = ctypes.get_errno()
    limits = {errno.EMFILE: "fs.inotify.max_user_instances", errno.ENOSPC: "fs.inotify.max_user_watches"}
    hint = f" ({limits[number]})" if number in limits else ""
    return OSError(number, os.strerror(number) + hint)
