"""The node's slots for calls that change something: at most so many in flight at a time, over all processes.

A slot is one byte of an anonymous file, held by a lock on it (fcntl(2), open file description locks). The kernel keeps
the account: a holder that dies by kill -9 gives back its slots and stops waiting, at once and without any help, which
neither tokens in a pipe nor numbers in shared memory do. Waiting is a lock too, on a second range of bytes, so that one
call finds the next waiting process. Wake-ups (eventfd(2)) only make it quick: a lost one costs `POLL_S`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from typing import Final

MAX_SLOTS: Final = 256
"""Most calls in flight on a node."""
MAX_MEMBERS: Final = 256
"""Most processes that may take part."""
POLL_S: Final = 0.05
"""Period at which a waiting process tries by itself, in seconds: the death of a holder wakes no process."""

_FLOCK: Final = struct.Struct("@hhqqi4x")
"""struct flock of a 64-bit Linux: type, whence, start, length, pid, and the padding."""
_WAITING_FROM: Final = MAX_SLOTS
"""Where the second range begins: one byte per member."""


class MutationSlots:
    """Slots shared by all processes. To be made before they are forked."""

    @classmethod
    def create(cls, *, slots: int, members: int) -> MutationSlots:
        """Raises ValueError beyond the maxima of this module, OSError when there are no file descriptors left."""
        if not (1 <= slots <= MAX_SLOTS and 1 <= members <= MAX_MEMBERS):
            raise ValueError(f"{slots} slots for {members} members: not within 1..{MAX_SLOTS} and 1..{MAX_MEMBERS}")
        return cls(slots, os.memfd_create("rootlet-mutation-slots"), tuple(_new_wakeup() for _ in range(members)))

    def __init__(self, slots: int, file: int, wakeups: tuple[int, ...]) -> None:
        """Not for callers: use ``create``."""
        self._slots = slots
        self._file = file
        self._wakeups = wakeups

    def member(self, number: int) -> SlotMember:
        """The part of the process that has that number; no other living one may have it. Raises OSError."""
        # Locks belong to an open file description, and a fork shares those: so each member opens the file for itself.
        own = os.open(f"/proc/self/fd/{self._file}", os.O_RDWR | os.O_CLOEXEC)
        return SlotMember(self._slots, own, number, self._wakeups)

    def close(self) -> None:
        """Close the file in this process; others keep theirs."""
        for fd in (self._file, *self._wakeups):
            os.close(fd)


class SlotMember:
    """One process's slots. For one thread."""

    def __init__(self, slots: int, file: int, number: int, wakeups: tuple[int, ...]) -> None:
        self.wakeup = wakeups[number]
        """Readable when a slot may be free."""
        self._file = file
        self._number = number
        self._wakeups = wakeups
        self._free = set(range(slots))
        """Slots that this process does not hold; other processes may."""
        self._held: list[int] = []

    def acquire(self) -> bool:
        """Whether one more slot is ours now. Does not wait."""
        slot = next((slot for slot in sorted(self._free) if self._lock(slot)), None)
        if slot is None:
            return False
        self._free.discard(slot)
        self._held.append(slot)
        return True

    def release(self) -> None:
        """Give one slot back, and wake the next waiting process."""
        slot = self._held.pop()
        self._free.add(slot)
        self._set(slot, fcntl.F_UNLCK)
        self.wake_next()

    def holds_all(self) -> bool:
        """Whether no other process can have one: none comes free but those that are given back here."""
        return not self._free

    def set_waiting(self, waiting: bool) -> None:
        """Tell the others whether this process wants a slot that it has not got."""
        self._set(_WAITING_FROM + self._number, fcntl.F_WRLCK if waiting else fcntl.F_UNLCK)

    def others_wait(self) -> bool:
        """Whether any other living process does: a lock of one's own is none that one would meet."""
        return self._locked_by_others(_WAITING_FROM, len(self._wakeups)) is not None

    def wake_next(self) -> None:
        """Wake the next waiting process, the members in rotation; none when none waits."""
        number = self._next_waiting()
        if number is not None:
            os.eventfd_write(self._wakeups[number], 1)

    def clear_wakeup(self) -> None:
        """Take note of a wake-up, so that the descriptor is no longer readable."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.wakeup)

    def close(self) -> None:
        """Give all slots back. The eventfd stays open."""
        os.close(self._file)

    def _next_waiting(self) -> int | None:
        """After this member in the ring of all of them."""
        after = self._number + 1
        found = self._locked_by_others(_WAITING_FROM + after, len(self._wakeups) - after)
        if found is None:
            found = self._locked_by_others(_WAITING_FROM, self._number)
        return None if found is None else found - _WAITING_FROM

    def _lock(self, at: int) -> bool:
        try:
            self._set(at, fcntl.F_WRLCK)
        except BlockingIOError:
            return False
        return True

    def _set(self, at: int, kind: int) -> None:
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, at, 1, 0))

    def _locked_by_others(self, start: int, length: int) -> int | None:
        """First byte in that range that another process has locked."""
        if length == 0:  # fcntl would take it for "to the end"
            return None
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        kind, _, at, _, _ = _FLOCK.unpack(fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, asked))
        return None if kind == fcntl.F_UNLCK else max(at, start)


def _new_wakeup() -> int:
    return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
