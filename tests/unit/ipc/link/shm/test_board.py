from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ipc.link.shm.board import (
    MAX_POD_ROW_BYTES,
    MAX_POD_ROWS,
    MAX_STEP_BYTES,
    MAX_WORKER_SLOTS,
    WORKER_ROW_BYTES,
    Board,
    PodRow,
    PodRowWriter,
    WorkerCounters,
    WorkerRow,
    pod_digest,
)
from ipc.link.shm.breaker_state import BreakerState
from ipc.link.shm.cell import MAX_READ_ATTEMPTS, Cell, _Facts, _header

pytestmark = pytest.mark.timeout(60)

ROW_BYTES = 256
"""A small pod row, so that random payloads fall on both sides of its size."""
ROW_OVERHEAD_BYTES = 36
"""Bytes of a pod row: sequence, header, length of the uid."""

times = st.floats(min_value=0, max_value=1e9)
uids = st.text(max_size=40).filter(lambda text: text.isprintable())
Store = tuple[int, bytes]


@pytest.fixture
def board() -> Board:
    return Board.create(worker_slots=3, pod_rows=4, pod_row_bytes=ROW_BYTES)


# --- the master's own word ---


def test_the_last_iteration_of_the_sync_loop_touches_nobodys_row(board: Board) -> None:
    assert board.last_iteration == 0.0
    writer = board.worker_writer(2)
    writer.begin(1, 1)
    writer.current_pod[0] = 2**64 - 1
    board.pod_writer(0).write("a", 1.0, b"x")
    board.record_iteration(12.5)
    board.record_iteration(13.25)
    worker, pod = board.read_worker(2), board.read_pod(0)
    assert board.last_iteration == 13.25
    assert worker is not None
    assert worker.current_pod == 2**64 - 1
    assert pod is not None
    assert (pod.uid, pod.payload) == ("a", b"x")


def test_the_hosts_addresses_as_they_are_now(board: Board) -> None:
    assert board.host_ips == ()
    for ips in (("192.0.2.7", "fd00::7"), ("192.0.2.8",), (), ("f" * 39, "255.255.255.255")):
        board.record_host_ips(ips)
        assert board.host_ips == ips
    assert board.last_iteration == 0.0


# --- worker rows ---


def test_worker_row_from_birth(board: Board) -> None:
    assert board.read_worker(1) is None
    writer = board.worker_writer(1)
    writer.begin(pid=4711, incarnation=2)
    assert board.read_worker(1) == WorkerRow(4711, 2, 0.0, "", WorkerCounters())
    writer.beat(12.5)
    writer.step("SyncPod default/web: pulling image")
    writer.count(syncs=1, runtime_calls=3)
    writer.count(runtime_calls=1, runtime_errors=1, sync_errors=2)
    counters = WorkerCounters(syncs=1, sync_errors=2, runtime_calls=4, runtime_errors=1)
    assert board.read_worker(1) == WorkerRow(4711, 2, 12.5, "SyncPod default/web: pulling image", counters)
    assert board.read_worker(0) is None
    assert board.read_worker(2) is None


def test_next_incarnation_starts_anew(board: Board) -> None:
    first = board.worker_writer(0)
    first.begin(10, 1)
    first.step("dying")
    first.count(syncs=7)
    first.beat(99.0)
    board.worker_writer(0).begin(11, 2)
    assert board.read_worker(0) == WorkerRow(11, 2, 0.0, "", WorkerCounters())


@pytest.mark.parametrize("state", BreakerState)
def test_how_a_worker_stands_with_podman(board: Board, state: BreakerState) -> None:
    writer = board.worker_writer(0)
    writer.begin(10, 1)
    writer.breaker(state)
    writer.step("after it")
    row = board.read_worker(0)
    assert row is not None
    assert (row.breaker, row.step) == (state, "after it")
    board.worker_writer(0).begin(11, 2)
    assert board.read_worker(0) == WorkerRow(11, 2, 0.0, "", WorkerCounters())


@given(text=st.text(max_size=2 * MAX_STEP_BYTES))
@example("x" * (MAX_STEP_BYTES - 1) + "é")
@example("x" * (MAX_STEP_BYTES - 2) + "é")
@example("x" * (MAX_STEP_BYTES - 3) + "\N{WHALE}")
@example("\N{WHALE}" * MAX_STEP_BYTES)
def test_step_is_cut_between_characters(text: str) -> None:
    board = Board.create(worker_slots=1, pod_rows=1)
    writer = board.worker_writer(0)
    writer.begin(1, 1)
    writer.step(text)
    row = board.read_worker(0)
    assert row is not None
    assert text.startswith(row.step)
    kept_bytes = len(row.step.encode())
    assert kept_bytes <= MAX_STEP_BYTES
    if row.step != text:
        assert kept_bytes + len(text[len(row.step)].encode()) > MAX_STEP_BYTES


def test_the_pod_in_whose_step_a_worker_has_died_stands_there_until_its_successor_begins(board: Board) -> None:
    writer = board.worker_writer(1)
    writer.begin(1, 1)
    writer.current_pod[0] = pod_digest("a")
    writer.step("x" * MAX_STEP_BYTES)
    writer.count(syncs=2**63 - 1)
    row = board.read_worker(1)
    assert row is not None
    assert (row.current_pod, row.step) == (pod_digest("a"), "x" * MAX_STEP_BYTES)
    assert all(other is None or other.current_pod == 0 for other in (board.read_worker(0), board.read_worker(2)))
    board.worker_writer(1).begin(2, 2)
    row = board.read_worker(1)
    assert row is not None
    assert row.current_pod == 0


@pytest.mark.parametrize("uid", ["", "a", "x" * 100_000, "\udcff", "\0"])
def test_a_digest_stands_for_any_uid(uid: str) -> None:
    assert 0 < pod_digest(uid) < 2**64
    assert pod_digest(uid) == pod_digest(uid) != pod_digest(f"{uid}+")


def test_step_that_utf8_cannot_carry(board: Board) -> None:
    writer = board.worker_writer(0)
    writer.begin(1, 1)
    writer.step("half \ud83d of a pair")
    row = board.read_worker(0)
    assert row is not None
    assert row.step == "half ? of a pair"


@given(
    pid=st.integers(1, 2**31),
    incarnation=st.integers(0, 2**64 - 1),
    beat=times,
    counts=st.tuples(*[st.integers(0, 2**64 - 1)] * 5),
)
def test_worker_content_round_trip(pid: int, incarnation: int, beat: float, counts: tuple[int, ...]) -> None:
    board = Board.create(worker_slots=2, pod_rows=1)
    writer = board.worker_writer(1)
    writer.begin(pid, incarnation)
    counters = WorkerCounters(*counts)
    writer.beat(beat, counters.task_errors)
    summed = [name for name in WorkerCounters.__struct_fields__ if name != "task_errors"]
    writer.count(**{name: getattr(counters, name) for name in summed})
    assert board.read_worker(1) == WorkerRow(pid, incarnation, beat, "", counters)


# --- pod rows ---


def test_pod_row_from_birth(board: Board) -> None:
    assert board.read_pod(3) is None
    writer = board.pod_writer(3)
    assert not writer.touch(1.0)
    assert board.read_pod(3) is None
    assert writer.write("uid-a", 1.5, b"payload")
    assert board.read_pod(3) == PodRow("uid-a", 1.5, b"payload")
    assert writer.touch(2.5)
    assert board.read_pod(3) == PodRow("uid-a", 2.5, b"payload")
    writer.clear()
    assert board.read_pod(3) is None
    assert not writer.touch(3.5)
    assert board.read_pod(3) is None
    assert writer.write("uid-b", 4.5, b"")
    assert board.read_pod(3) == PodRow("uid-b", 4.5, b"")
    assert all(board.read_pod(row) is None for row in range(3))


def test_every_act_on_a_row_has_a_number_of_its_own(board: Board) -> None:
    writer, numbers = board.pod_writer(3), [board.pod_sequence(3)]
    for act in (
        lambda: writer.write("uid-a", 1.5, b"payload"),
        lambda: writer.write("uid-a", 1.5, b"payload"),
        lambda: writer.touch(2.5),
        writer.clear,
        lambda: board.pod_writer(3).write("uid-b", 1.5, b"payload"),
    ):
        act()
        assert board.pod_sequence(3) == board.pod_sequence(3)
        numbers.append(board.pod_sequence(3))
    assert len(set(numbers)) == len(numbers)
    assert board.pod_sequence(2) == 0


def test_new_writer_touches_only_what_it_wrote(board: Board) -> None:
    board.pod_writer(0).write("uid-a", 1.0, b"old")
    heir = board.pod_writer(0)
    assert not heir.touch(2.0)
    assert board.read_pod(0) == PodRow("uid-a", 1.0, b"old")
    assert heir.write("uid-b", 3.0, b"new")
    assert heir.touch(4.0)
    assert board.read_pod(0) == PodRow("uid-b", 4.0, b"new")


@given(uid=uids, observed_at=times, payload=st.binary(max_size=2 * ROW_BYTES))
def test_pod_content_round_trips_or_leaves_the_row_empty(uid: str, observed_at: float, payload: bytes) -> None:
    board = Board.create(worker_slots=1, pod_rows=2, pod_row_bytes=ROW_BYTES)
    writer = board.pod_writer(1)
    assert writer.write("old", 1.0, b"old content")
    fits = len(uid.encode()) + len(payload) <= ROW_BYTES - ROW_OVERHEAD_BYTES
    assert writer.write(uid, observed_at, payload) is fits
    assert board.read_pod(1) == (PodRow(uid, observed_at, payload) if fits else None)
    assert writer.touch(5.0) is fits
    assert board.read_pod(1) == (PodRow(uid, 5.0, payload) if fits else None)


def test_uid_that_utf8_cannot_carry_is_refused_and_changes_nothing(board: Board) -> None:
    writer = board.pod_writer(0)
    writer.write("uid", 1.0, b"content")
    with pytest.raises(ValueError, match="utf-8"):
        writer.write("\ud800", 2.0, b"other")
    assert board.read_pod(0) == PodRow("uid", 1.0, b"content")


@given(st.lists(st.tuples(st.integers(0, 5), uids, times, st.binary(max_size=ROW_BYTES)), max_size=20))
def test_rows_never_touch_each_other(writes: list[tuple[int, str, float, bytes]]) -> None:
    board = Board.create(worker_slots=2, pod_rows=6, pod_row_bytes=ROW_BYTES)
    workers = [board.worker_writer(slot) for slot in range(2)]
    writers = [board.pod_writer(row) for row in range(6)]
    expected: dict[int, PodRow | None] = {}
    for slot, worker in enumerate(workers):
        worker.begin(slot + 1, 1)
        worker.step("x" * MAX_STEP_BYTES)
    for row, uid, observed_at, payload in writes:
        fits = writers[row].write(uid, observed_at, payload)
        expected[row] = PodRow(uid, observed_at, payload) if fits else None
    assert {row: board.read_pod(row) for row in expected} == expected
    for slot in range(2):
        worker_row = board.read_worker(slot)
        assert worker_row is not None
        assert (worker_row.pid, worker_row.step) == (slot + 1, "x" * MAX_STEP_BYTES)


def test_largest_board_can_be_made() -> None:
    board = Board.create(worker_slots=MAX_WORKER_SLOTS, pod_rows=MAX_POD_ROWS, pod_row_bytes=16 * 1024)
    assert board.pod_writer(MAX_POD_ROWS - 1).write("last", 1.0, b"row")
    assert board.read_pod(MAX_POD_ROWS - 1) == PodRow("last", 1.0, b"row")


@pytest.mark.parametrize("index", [-1, 3, 4, 10**9])
def test_worker_slot_out_of_range(board: Board, index: int) -> None:
    for use in (board.read_worker, board.worker_writer):
        with pytest.raises(IndexError, match=str(index)):
            use(index)


@pytest.mark.parametrize("index", [-1, 4, 10**9])
def test_pod_row_out_of_range(board: Board, index: int) -> None:
    for use in (board.read_pod, board.pod_writer):
        with pytest.raises(IndexError, match=str(index)):
            use(index)


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ({"worker_slots": 0}, "worker_slots"),
        ({"worker_slots": MAX_WORKER_SLOTS + 1}, "worker_slots"),
        ({"pod_rows": 0}, "pod_rows"),
        ({"pod_rows": MAX_POD_ROWS + 1}, "pod_rows"),
        ({"pod_row_bytes": 8}, "pod_row_bytes"),
        ({"pod_row_bytes": MAX_POD_ROW_BYTES + 1}, "pod_row_bytes"),
    ],
)
def test_sizes_out_of_range(sizes: dict[str, int], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Board.create(**{"worker_slots": 1, "pod_rows": 1, **sizes})


def test_odd_row_size_is_rounded_up() -> None:
    board = Board.create(worker_slots=1, pod_rows=3, pod_row_bytes=ROW_BYTES + 1)
    writers = [board.pod_writer(row) for row in range(3)]
    payload = bytes(ROW_BYTES + 1 - ROW_OVERHEAD_BYTES)
    assert all(writer.write("", 1.0, payload) for writer in writers)
    assert [board.read_pod(row) for row in range(3)] == [PodRow("", 1.0, payload)] * 3
    assert (len(board._memory) - WORKER_ROW_BYTES) % (3 * 64) == 0, "a sequence number must be aligned"


# --- writers that die in the middle ---


class RecordingMemory:
    """A row's bytes; remembers every store that a writer makes, in order."""

    def __init__(self, row: bytearray, stores: list[Store]) -> None:
        self._view = memoryview(row)
        self._stores = stores

    def __len__(self) -> int:
        return len(self._view)

    def __getitem__(self, key: slice) -> memoryview:
        return self._view[key]

    def __setitem__(self, key: slice, value: bytes) -> None:
        self._stores.append((key.start, bytes(value)))
        self._view[key] = value


class RecordingSequence:
    """Recorder of stores to the sequence number, which is stored as one item of 8 bytes."""

    def __init__(self, row: bytearray, stores: list[Store]) -> None:
        self._items = memoryview(row)[:8].cast("Q")
        self._stores = stores

    def __getitem__(self, index: int) -> int:
        return self._items[index]

    def __setitem__(self, index: int, value: int) -> None:
        self._items[index] = value
        self._stores.append((0, self._items.tobytes()))


def pod_writer(row: bytearray) -> PodRowWriter:
    return PodRowWriter(Cell(memoryview(row)))


def read_pod(row: bytes | bytearray) -> PodRow | None:
    """Read a lone row as the board reads one of its own."""
    board = Board.create(worker_slots=1, pod_rows=1, pod_row_bytes=len(row))
    board._memory[WORKER_ROW_BYTES:] = row
    return board.read_pod(0)


def _sequence(row: bytes) -> int:
    return int.from_bytes(row[:8], sys.byteorder)


class Tear(msgspec.Struct, frozen=True):
    """One act of a writer, taken apart."""

    before: bytes
    stores: tuple[Store, ...]
    after: bytes

    def values(self) -> list[PodRow | None]:
        return [read_pod(self.before), read_pod(self.after)]

    def cut(self, order: Sequence[Store]) -> Iterator[bytes]:
        """The row after every number of stored bytes, the stores happening in that order."""
        row = bytearray(self.before)
        yield bytes(row)
        for start, data in order:
            for offset, byte in enumerate(data):
                row[start + offset] = byte
                yield bytes(row)


Act = Callable[[PodRowWriter], object]


def first_write(writer: PodRowWriter) -> None:
    writer.write("uid-a", 1.0, b"first content")


ACTS: dict[str, tuple[Act | None, Act]] = {
    "first write": (None, first_write),
    "longer": (first_write, lambda writer: writer.write("uid-b", 2.0, b"second and longer content")),
    "shorter": (first_write, lambda writer: writer.write("uid-b", 2.0, b"2")),
    "same length": (first_write, lambda writer: writer.write("uid-b", 2.0, b"other content")),
    "touch": (first_write, lambda writer: writer.touch(3.0)),
    "clear": (first_write, lambda writer: writer.clear()),
    "too large": (first_write, lambda writer: writer.write("uid-b", 2.0, bytes(ROW_BYTES))),
    "write after clear": (lambda writer: writer.clear(), first_write),
}
SEQUENCES = [0, 0xFC, 0xFE, 0xFFFE, 0xFF_FFFC, 2**32 - 2, 2**64 - 6, 2**64 - 4, 2**64 - 3, 2**64 - 2, 2**64 - 1]
"""Where a row starts from: carries over many bytes, the end of the number, a predecessor's odd number."""


def tear(name: str, sequence: int = 0) -> Tear:
    before_act, act = ACTS[name]
    row = bytearray(ROW_BYTES)
    memoryview(row)[:8].cast("Q")[0] = sequence
    writer = pod_writer(row)
    if before_act is not None:
        before_act(writer)
    before, stores = bytes(row), list[Store]()
    writer._cell._memory = RecordingMemory(row, stores)  # type: ignore[assignment]
    writer._cell._sequence = RecordingSequence(row, stores)  # type: ignore[assignment]
    act(writer)
    return Tear(before, tuple(stores), bytes(row))


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("name", ACTS)
def test_writer_dead_after_any_byte_leaves_old_new_or_nothing(name: str, sequence: int) -> None:
    torn = tear(name, sequence)
    old, new = torn.values()
    rows = list(torn.cut(torn.stores))
    assert rows[-1] == torn.after
    assert old != new
    for row in rows:
        expected = {torn.before: old, torn.after: new}.get(row)
        assert read_pod(row) == expected


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("name", ACTS)
def test_every_act_is_framed_by_an_odd_and_the_next_even_number(name: str, sequence: int) -> None:
    torn = tear(name, sequence)
    old, under_way, done = (_sequence(row) for row in (torn.before, torn.stores[0][1], torn.stores[-1][1]))
    assert (torn.stores[0][0], torn.stores[-1][0]) == (0, 0)
    assert under_way % 2 == 1
    assert done == under_way + 1
    assert old not in (under_way, done)


def test_odd_number_is_never_accepted() -> None:
    """Not even with checksums that hold: its writer has not said that it is done."""
    row = bytearray(ROW_BYTES)
    Cell(memoryview(row)).write(1.0, b"abc")
    assert Cell(memoryview(row)).read() is not None
    row[:8] = (3).to_bytes(8, sys.byteorder)
    header = _header(3, _Facts(zlib.crc32(b"abc"), 3, 1.0))
    row[8 : 8 + len(header)] = header
    assert Cell(memoryview(row)).read() is None


@pytest.mark.parametrize("name", ACTS)
def test_next_writer_repairs_whatever_is_left(name: str) -> None:
    torn = tear(name)
    for row in map(bytearray, torn.cut(torn.stores)):
        heir = pod_writer(row)
        assert not heir.touch(8.0)
        assert heir.write("uid-heir", 9.0, b"repaired")
        assert read_pod(row) == PodRow("uid-heir", 9.0, b"repaired")


@pytest.mark.parametrize("name", ACTS)
def test_stores_seen_in_another_order_never_mix(name: str) -> None:
    """Orders that a CPU with weak memory ordering may show to another process."""
    torn = tear(name)
    values = [*torn.values(), None]
    for order in permutations(torn.stores):
        assert all(read_pod(row) in values for row in torn.cut(order)), order


@given(name=st.sampled_from(sorted(ACTS)), sequence=st.sampled_from(SEQUENCES), data=st.data())
def test_any_part_of_the_stored_bytes_never_mixes(name: str, sequence: int, data: st.DataObject) -> None:
    torn = tear(name, sequence)
    seen = [(start + n, byte) for start, stored in torn.stores for n, byte in enumerate(stored)]
    mask = data.draw(st.lists(st.booleans(), min_size=len(seen), max_size=len(seen)))
    row = bytearray(torn.before)
    for (position, byte), visible in zip(seen, mask, strict=True):
        if visible:
            row[position] = byte
    assert read_pod(row) in [*torn.values(), None]


class FailingMemory(RecordingMemory):
    def __setitem__(self, key: slice, value: bytes) -> None:
        super().__setitem__(key, value)
        raise KeyboardInterrupt


def test_writer_that_was_interrupted_has_nothing_to_touch() -> None:
    row = bytearray(ROW_BYTES)
    writer = pod_writer(row)
    first_write(writer)
    memory = writer._cell._memory
    writer._cell._memory = FailingMemory(row, [])  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        writer.write("uid-b", 2.0, b"second content")
    writer._cell._memory = memory
    assert read_pod(row) is None
    assert not writer.touch(3.0)
    assert read_pod(row) is None
    assert writer.write("uid-b", 4.0, b"second content")
    assert read_pod(row) == PodRow("uid-b", 4.0, b"second content")


def test_worker_that_died_in_the_middle_is_taken_over(board: Board) -> None:
    first = board.worker_writer(1)
    first.begin(10, 1)
    first.step("dying")
    row = board._memory[WORKER_ROW_BYTES : 2 * WORKER_ROW_BYTES]
    row[:8].cast("Q")[0] += 1
    row[40:60] = bytes(20)
    assert board.read_worker(1) is None
    heir = board.worker_writer(1)
    heir.begin(11, 2)
    heir.beat(5.0)
    assert board.read_worker(1) == WorkerRow(11, 2, 5.0, "", WorkerCounters())


# --- readers beside a living writer ---


class Interrupted:
    """A sequence number as a reader meets it when something happens between any two of its looks."""

    def __init__(self, row: bytearray, between: Callable[[int], None]) -> None:
        self._items = memoryview(row)[:8].cast("Q")
        self._between = between
        self.observation_requests = 0

    def __getitem__(self, index: int) -> int:
        self._between(self.observation_requests)
        self.observation_requests += 1
        return self._items[index]


def interrupted_reader(row: bytearray, between: Callable[[int], None]) -> tuple[Cell, Interrupted]:
    cell = Cell(memoryview(row))
    sequence = Interrupted(row, between)
    cell._sequence = sequence  # type: ignore[assignment]
    return cell, sequence


def test_reader_looks_again_when_the_row_changed_under_it() -> None:
    row = bytearray(ROW_BYTES)
    writer = Cell(memoryview(row))
    writer.write(1.0, b"old")

    def write_before_second_look(look: int) -> None:
        if look == 1:
            writer.write(2.0, b"new")

    cell, sequence = interrupted_reader(row, write_before_second_look)
    stamped = cell.read()
    assert stamped is not None
    assert (stamped.stamp, stamped.content) == (2.0, b"new")
    assert sequence.observation_requests == 4


def test_reader_gives_up_on_a_writer_that_never_rests() -> None:
    row = bytearray(ROW_BYTES)
    writer = Cell(memoryview(row))
    cell, sequence = interrupted_reader(row, lambda look: writer.write(float(look), b"restless"))
    assert cell.read() is None
    assert sequence.observation_requests == 2 * MAX_READ_ATTEMPTS


def test_reader_gives_up_on_a_writer_that_stopped_in_the_middle() -> None:
    row = bytearray(ROW_BYTES)
    Cell(memoryview(row)).write(1.0, b"content")
    row[0] += 1
    cell, sequence = interrupted_reader(row, lambda _: None)
    assert cell.read() is None
    assert sequence.observation_requests == MAX_READ_ATTEMPTS


# --- hostile content ---


@settings(deadline=None)
@given(
    noise=st.binary(min_size=2 * ROW_BYTES, max_size=2 * ROW_BYTES), sequence=st.integers(0, 2**63).map(lambda n: 2 * n)
)
def test_noise_is_never_a_row(noise: bytes, sequence: int) -> None:
    board = Board.create(worker_slots=1, pod_rows=1, pod_row_bytes=ROW_BYTES)
    board._memory[:] = noise
    for start in (0, WORKER_ROW_BYTES):
        board._memory[start : start + 8].cast("Q")[0] = sequence % 2**64
    assert board.read_worker(0) is None
    assert board.read_pod(0) is None


@given(stamp=st.floats(), content=st.binary(min_size=1, max_size=100))
def test_well_formed_nonsense_is_read_without_harm(stamp: float, content: bytes) -> None:
    board = Board.create(worker_slots=1, pod_rows=1, pod_row_bytes=ROW_BYTES)
    board._worker_cell(0).write(stamp, content)
    board._pod_cell(0).write(stamp, content)
    worker, pod = board.read_worker(0), board.read_pod(0)
    assert worker is None or len(content) >= 56
    assert pod is None or content.endswith(pod.payload)


def test_length_beyond_the_row_is_not_believed() -> None:
    cell = Cell(memoryview(bytearray(ROW_BYTES)))
    everything = bytes(range(cell.capacity))
    cell._store(_Facts(zlib.crc32(everything), cell.capacity, 1.0), everything)
    assert cell.read() is not None
    cell._store(_Facts(zlib.crc32(everything), 2**32 - 1, 1.0), everything)
    assert cell.read() is None


@pytest.mark.parametrize("size", [0, ROW_BYTES])
def test_cell_refuses_content_it_cannot_hold(size: int) -> None:
    cell = Cell(memoryview(bytearray(ROW_BYTES)))
    with pytest.raises(ValueError, match=f"{size} bytes"):
        cell.write(1.0, bytes(size))
