"""The board: one anonymous shared mapping with heartbeats and observations, so that readers wait for no process.

It is made before the zygote is forked, inherited by every fork, and vanishes with the last process; it has no name and
no locks. Each row has one writer; anyone may read.

How a row is kept whole: `ipc.link.shm.cell`.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Iterable
from typing import Final

import msgspec

from ipc.host.log.verbosity import Verbosity
from ipc.host.text.safe_text import clipped
from ipc.link.shm.breaker_state import BreakerState
from ipc.link.shm.cell import WORD_BYTES, Cell, Stamped
from ipc.link.shm.metric_cells import MetricCells
from ipc.link.shm.probe_cells import ProbeCells
from ipc.link.shm.statistics import StatisticsBuffer
from ipc.link.shm.trace import TraceBuffer

MAX_WORKER_SLOTS: Final = 256
"""Most worker rows on a board."""
MAX_POD_ROWS: Final = 16_384
"""Most pod rows on a board."""
POD_ROW_BYTES: Final = 64 * 1024
"""Size of a pod row unless ``create`` is told otherwise, in bytes, its header included. Untouched pages are free."""
MAX_POD_ROW_BYTES: Final = 1024 * 1024
"""Largest pod row, in bytes."""
WORKER_ROW_BYTES: Final = 256
"""Size of a worker row, in bytes, its header included."""
MAX_STEP_BYTES: Final = 96
"""Longest step text kept, in bytes of UTF-8."""

_ALIGN_BYTES: Final = 64
"""Rows start on cache lines: two writers never share one."""
_ITERATION, _RELIST = range(2)
"""Places of the master's numbers."""
_WORKER: Final = struct.Struct("=qQ5QB")
"""Pid, incarnation, the five counters, the breaker's state; the step's text follows."""
_BREAKER_STATES: Final = frozenset(BreakerState)
_CURRENT_POD_BYTES: Final = WORD_BYTES
"""The last bytes of a worker row are a word of their own, beside the cell: one aligned store, with no checksum."""
_POD: Final = struct.Struct("=I")
"""Length of the uid in bytes; uid and payload follow."""


def pod_digest(uid: str) -> int:
    """A number of 64 bits, never 0, that stands for the pod where a UID is too long: UIDs come from manifests."""
    return int.from_bytes(hashlib.blake2b(uid.encode(errors="surrogatepass"), digest_size=8).digest()) | 1


class WorkerCounters(msgspec.Struct, frozen=True):
    """Counters of one incarnation of a worker."""

    syncs: int = 0
    sync_errors: int = 0
    runtime_calls: int = 0
    runtime_errors: int = 0
    task_errors: int = 0
    """Unexpected exceptions that have ended a task (`ipc.link.eventloop.tasks`)."""


class WorkerRow(msgspec.Struct, frozen=True):
    """One worker's row as it was read."""

    pid: int
    incarnation: int
    heartbeat: float
    """Monotonic seconds of the last beat; 0.0 before the first one."""
    step: str
    """Current step of the worker, for people."""
    counters: WorkerCounters
    breaker: BreakerState = BreakerState.NONE
    """State of its circuit breaker for Podman."""
    current_pod: int = 0
    """`pod_digest` of the pod whose step its event loop carries out now, or in which it died; 0 when it carries out
    no pod's."""


class PodRow(msgspec.Struct, frozen=True):
    """One pod's row as it was read."""

    uid: str
    observed_at: float
    """Monotonic seconds at which the observation began."""
    payload: bytes


class Board:
    """Worker rows and pod rows in one shared mapping. Every ``read_`` is safe while writers write."""

    @classmethod
    def create(cls, *, worker_slots: int, pod_rows: int, pod_row_bytes: int = POD_ROW_BYTES) -> Board:
        """Map a new, empty board. To be called before the processes that share it are forked.

        Raises ValueError for sizes beyond the maxima of this module, OSError when the memory cannot be mapped.
        """
        _refuse_outside("worker_slots", worker_slots, 1, MAX_WORKER_SLOTS)
        _refuse_outside("pod_rows", pod_rows, 1, MAX_POD_ROWS)
        _refuse_outside("pod_row_bytes", pod_row_bytes, _ALIGN_BYTES, MAX_POD_ROW_BYTES)
        return cls(worker_slots, pod_rows, _align(pod_row_bytes))

    def __init__(self, worker_slots: int, pod_rows: int, pod_row_bytes: int) -> None:
        """Not for callers: use ``create``."""
        self.worker_slots = worker_slots
        self.pod_rows = pod_rows
        self._pod_row_bytes = pod_row_bytes
        self._pods_start = worker_slots * WORKER_ROW_BYTES
        self._memory = memoryview(mmap.mmap(-1, self._pods_start + pod_rows * pod_row_bytes))
        masters = memoryview(mmap.mmap(-1, mmap.PAGESIZE))
        self._masters = masters[:_ALIGN_BYTES].cast("d")
        self._host_ips = Cell(masters[_ALIGN_BYTES:])
        self._verbosity = Cell(memoryview(mmap.mmap(-1, mmap.PAGESIZE)))
        self.trace = TraceBuffer(worker_slots + 1)
        """A lane for each slot, and after them the master's."""
        self.metrics = MetricCells(worker_slots + 1)
        """Likewise."""
        self.probes = ProbeCells(pod_rows)
        """A row for each pod row."""
        self.statistics = StatisticsBuffer()

    @property
    def last_iteration(self) -> float:
        """Monotonic seconds at which the master's sync loop last came to the end of an iteration; 0.0 before that."""
        return self._masters[_ITERATION]

    def record_iteration(self, mono: float) -> None:
        """Record that the master's sync loop has come to the end of an iteration. One aligned store, with no
        checksum."""
        self._masters[_ITERATION] = mono

    @property
    def last_relist(self) -> float:
        """Monotonic seconds at which the last full relist that succeeded began; 0.0 before that."""
        return self._masters[_RELIST]

    def record_relist(self, mono: float) -> None:
        """Record when the master's last relist began. One aligned store, with no checksum."""
        self._masters[_RELIST] = mono

    @property
    def host_ips(self) -> tuple[str, ...]:
        """The host's addresses as the master has last found them: at most one of each family, or none."""
        stamped = self._host_ips.read()
        return tuple(stamped.content.decode().split()) if stamped is not None else ()

    def record_host_ips(self, ips: Iterable[str]) -> None:
        """Record the host's addresses as the master knows them."""
        if text := " ".join(ips):
            self._host_ips.write(0.0, text.encode())
        else:
            self._host_ips.clear()

    @property
    def verbosity_sequence(self) -> int:
        """Tells writes of the verbosity apart, as `pod_sequence` does those of a row."""
        return self._verbosity.sequence()

    def read_verbosity(self) -> Verbosity | None:
        """Choice of the lines that every process is to log; None before the master has said so."""
        stamped = self._verbosity.read()
        return None if stamped is None else msgspec.msgpack.decode(stamped.content, type=Verbosity)

    def record_verbosity(self, verbosity: Verbosity) -> None:
        """Record the log levels that the master has set."""
        self._verbosity.write(0.0, msgspec.msgpack.encode(verbosity))

    def worker_writer(self, slot: int) -> WorkerRowWriter:
        """Writer of the slot's row, for the process that runs in the slot. Raises IndexError."""
        return WorkerRowWriter(self._worker_cell(slot), self._current_pod(slot))

    def read_worker(self, slot: int) -> WorkerRow | None:
        """The slot's row, or None when it was never written or its writer stopped in the middle. Raises IndexError."""
        stamped = self._worker_cell(slot).read()
        return None if stamped is None else _worker_row(stamped, self._current_pod(slot)[0])

    def pod_writer(self, row: int) -> PodRowWriter:
        """Writer of that row, for the one process that observes pods. Raises IndexError."""
        return PodRowWriter(self._pod_cell(row))

    def read_pod(self, row: int) -> PodRow | None:
        """The row's newest observation, or None when it is empty or its writer stopped in the middle.

        A row serves other pods in time: compare the uid. Raises IndexError.
        """
        stamped = self._pod_cell(row).read()
        return None if stamped is None else _pod_row(stamped)

    def pod_sequence(self, row: int) -> int:
        """Tells writes of the row apart: while it is what it was before a ``read_pod``, that would say the same again.

        A thousandth of a millisecond, where a read copies the row. Raises IndexError.
        """
        return self._pod_cell(row).sequence()

    def _worker_cell(self, slot: int) -> Cell:
        _refuse_index("worker slot", slot, self.worker_slots)
        return self._cell(slot * WORKER_ROW_BYTES, WORKER_ROW_BYTES - _CURRENT_POD_BYTES)

    def _current_pod(self, slot: int) -> memoryview:
        end = (slot + 1) * WORKER_ROW_BYTES
        return self._memory[end - _CURRENT_POD_BYTES : end].cast("Q")

    def _pod_cell(self, row: int) -> Cell:
        _refuse_index("pod row", row, self.pod_rows)
        return self._cell(self._pods_start + row * self._pod_row_bytes, self._pod_row_bytes)

    def _cell(self, start: int, size: int) -> Cell:
        return Cell(self._memory[start : start + size])


class WorkerRowWriter:
    """Writes one worker's row. For one thread of one process."""

    def __init__(self, cell: Cell, current_pod: memoryview) -> None:
        self.current_pod = current_pod
        """One item, stored at every step of a task (`workers.sync.attribution`): see `WorkerRow.current_pod`."""
        self._cell = cell
        self._pid = self._incarnation = 0
        self._heartbeat = 0.0
        self._step = b""
        self._counters = WorkerCounters()
        self._breaker = BreakerState.NONE

    def begin(self, pid: int, incarnation: int) -> None:
        """Take over the slot's row, whatever a dead predecessor left; heartbeat, step and counters start at zero."""
        self.current_pod[0] = 0
        self._pid, self._incarnation = pid, incarnation
        self._heartbeat, self._step, self._counters, self._breaker = 0.0, b"", WorkerCounters(), BreakerState.NONE
        self._write()

    def beat(self, mono: float, task_errors: int = 0) -> None:
        """The loop is alive at ``mono`` (monotonic seconds), and so many of its tasks have failed so far."""
        self._heartbeat = mono
        self._counters = msgspec.structs.replace(self._counters, task_errors=task_errors)
        self._write()

    def step(self, text: str) -> None:
        """Step that is carried out now, cut to MAX_STEP_BYTES at a character's border."""
        self._step = clipped(text, MAX_STEP_BYTES).encode()
        self._write()

    def breaker(self, state: BreakerState) -> None:
        """State of this process's circuit breaker for Podman."""
        self._breaker = state
        self._write()

    def count(
        self,
        *,
        syncs: int = 0,
        sync_errors: int = 0,
        runtime_calls: int = 0,
        runtime_errors: int = 0,
    ) -> None:
        """Add to the counters."""
        old = self._counters
        self._counters = msgspec.structs.replace(
            old,
            syncs=old.syncs + syncs,
            sync_errors=old.sync_errors + sync_errors,
            runtime_calls=old.runtime_calls + runtime_calls,
            runtime_errors=old.runtime_errors + runtime_errors,
        )
        self._write()

    def _write(self) -> None:
        counters = msgspec.structs.astuple(self._counters)
        numbers = _WORKER.pack(self._pid, self._incarnation, *counters, self._breaker)
        self._cell.write(self._heartbeat, numbers + self._step)


class PodRowWriter:
    """Writes one pod's row. For one thread of one process."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def write(self, uid: str, observed_at: float, payload: bytes) -> bool:
        """Replace the row (``observed_at`` in monotonic seconds).

        False when uid and payload do not fit: the row is then empty, so that no reader gets the old content, and the
        payload has to travel in a message. Raises ValueError for a uid that is not encodable as UTF-8.
        """
        name = uid.encode()
        content = b"".join((_POD.pack(len(name)), name, payload))
        if len(content) > self._cell.capacity:
            self.clear()
            return False
        self._cell.write(observed_at, content)
        return True

    def touch(self, observed_at: float) -> bool:
        """The same payload was seen again: only the date moves, the content is not copied.

        False when this writer has nothing on the row (cleared, too large, or not written by it yet).
        """
        return self._cell.touch(observed_at)

    def clear(self) -> None:
        """Leave the row empty."""
        self._cell.clear()


def _worker_row(stamped: Stamped, current_pod: int) -> WorkerRow | None:
    """None for content that no worker's writer makes."""
    content = stamped.content
    if len(content) < _WORKER.size:
        return None
    pid, incarnation, *counters, breaker = _WORKER.unpack_from(content)
    if breaker not in _BREAKER_STATES:
        return None
    step = content[_WORKER.size :].decode(errors="replace")
    return WorkerRow(
        pid, incarnation, stamped.stamp, step, WorkerCounters(*counters), BreakerState(breaker), current_pod
    )


def _pod_row(stamped: Stamped) -> PodRow | None:
    """None for content that no pod row's writer makes."""
    content = stamped.content
    if len(content) < _POD.size:
        return None
    end = _POD.size + _POD.unpack_from(content)[0]
    if end > len(content):
        return None
    try:
        uid = content[_POD.size : end].decode()
    except UnicodeDecodeError:
        return None
    return PodRow(uid, stamped.stamp, content[end:])


def _align(size: int) -> int:
    return -(-size // _ALIGN_BYTES) * _ALIGN_BYTES


def _refuse_outside(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must be within {low}..{high}, not {value}")


def _refuse_index(name: str, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise IndexError(f"{name} {index} is not within 0..{count - 1}")
