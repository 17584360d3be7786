"""Statistics in shared memory: a ring of the newest snapshots, and the demand for them.

One mapping that all processes inherit. The node worker is its one writer, whoever serves requests reads. Statistics are
collected on demand: a reader writes down when it asked and wakes the writer. After a long time without a request the
writer gives the memory back; until the first request none of it is touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import weakref
from typing import Final

from ipc.link.shm.cell import Cell


class WakeUp:
    """An eventfd that all forks inherit: any process may wake it, one process waits on its event loop. A wake-up
    before the wait is kept."""

    def __init__(self) -> None:
        """Raises OSError, e.g. EMFILE."""
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)

    def wake(self) -> None:
        """Wake whoever waits, now or later."""
        with contextlib.suppress(BlockingIOError):  # it has been rung 2^64 times
            os.eventfd_write(self._fd, 1)

    async def wait(self) -> None:
        """Wait for a wake-up; any number of them count once. For one task of one process at a time."""
        loop, rung = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._fd, rung.set)
        try:
            await rung.wait()
        finally:
            loop.remove_reader(self._fd)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._fd)


SNAPSHOTS: Final = 12
"""How many are kept: those of two minutes."""
SNAPSHOT_BYTES: Final = 4 * 1024 * 1024
"""Room for one, in bytes: some 3,000 pods. Untouched pages are free."""


class StatisticsBuffer:
    """The mapping. To be made before the processes that share it are forked."""

    def __init__(self) -> None:
        """Raises OSError."""
        words = memoryview(mmap.mmap(-1, mmap.PAGESIZE))
        self._count = words[:8].cast("Q")
        self._asked_at = words[8:16].cast("d")
        self._fresh_after = words[16:24].cast("d")
        self._newest_at = words[24:32].cast("d")
        self._lasting_at = words[32:40].cast("d")
        self._mapping = mmap.mmap(-1, SNAPSHOTS * SNAPSHOT_BYTES)
        self._memory = memoryview(self._mapping)
        self.wanted = WakeUp()
        """For the writer."""
        self.published = WakeUp()
        """For the reader."""

    @property
    def capacity(self) -> int:
        """Most content of one snapshot, in bytes."""
        return self._cell(0).capacity

    # --- for a reader ---

    def ask(self, mono: float, fresh_after: float = 0.0, *, lasting: bool = True) -> None:
        """Statistics are wanted at this monotonic second, and for a while after it; collected after ``fresh_after``.
        Not ``lasting``: one snapshot is enough."""
        self._asked_at[0] = mono
        if lasting:
            self._lasting_at[0] = mono
        self._fresh_after[0] = max(self._fresh_after[0], fresh_after)
        self.wanted.wake()

    def read(self, back: int = 0) -> bytes | None:
        """The newest snapshot, or that many before it; None when there is none."""
        count = self._count[0]
        if not 0 <= back < min(count, SNAPSHOTS):
            return None
        found = self._cell((count - 1 - back) % SNAPSHOTS).read()
        return None if found is None else found.content

    @property
    def count(self) -> int:
        """Number of snapshots since statistics were last asked for."""
        return self._count[0]

    # --- for the writer ---

    @property
    def asked_at(self) -> float:
        """Monotonic seconds at which statistics were last asked for; 0.0 before that."""
        return self._asked_at[0]

    @property
    def lasting_at(self) -> float:
        """Monotonic seconds at which they were last asked for by somebody who comes again; 0.0 before that."""
        return self._lasting_at[0]

    @property
    def fresh_after(self) -> float:
        """Monotonic seconds: some reader waits for a snapshot that is newer than this."""
        return self._fresh_after[0]

    @property
    def newest_at(self) -> float:
        """Monotonic seconds of the newest snapshot; 0.0 without one."""
        return self._newest_at[0]

    def publish(self, mono: float, content: bytes) -> None:
        """Add a snapshot, which takes the place of the oldest. Raises ValueError when it is larger than `capacity`."""
        count = self._count[0]
        self._cell(count % SNAPSHOTS).write(mono, content)
        self._newest_at[0] = mono
        self._count[0] = count + 1
        self.published.wake()

    def clear(self) -> None:
        """Forget all snapshots, and give their memory back."""
        self._count[0] = 0
        self._newest_at[0] = self._fresh_after[0] = 0.0
        self._mapping.madvise(mmap.MADV_REMOVE)

    def _cell(self, number: int) -> Cell:
        return Cell(self._memory[number * SNAPSHOT_BYTES : (number + 1) * SNAPSHOT_BYTES])
