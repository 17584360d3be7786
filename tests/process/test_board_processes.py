"""The board between real processes: writers that are killed at any moment while others read."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest

from ipc.host.clock import monotonic
from ipc.link.shm.board import Board, PodRow, WorkerCounters, WorkerRow

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(60),
    # The children only write to the board; they take no lock that a thread of the test runner could hold.
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]

KILLS = 60
"""At least so many; more while none of them met a writer in the middle of a write."""
MAX_KILLS = 1000
MAX_LIFE_S = 0.02
"""A writer is killed at a random moment within this."""
ORPHAN_LIFE_S = 30
"""A writer whose test died ends by itself (SIGALRM) after this."""
BOOT_DEADLINE_S = 30.0
POD_ROW_BYTES = 128 * 1024
"""Large, so that a writer spends a good part of its life in the middle of a write."""
MAX_PAYLOAD_BYTES = POD_ROW_BYTES - 1024


@contextmanager
def forked(lifecycle: Callable[[], None]) -> Iterator[int]:
    """A child that lives that life until it is killed, at the latest at the end of the block; always reaped."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(ORPHAN_LIFE_S)
            lifecycle()
        finally:
            os._exit(1)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "the writer failed before it was killed"


def pod_content(number: int) -> PodRow:
    """Every byte of the row depends on the number, and its length too: no two of them mix unnoticed."""
    payload = number.to_bytes(8, "big") * (1 + number * 7919 % (MAX_PAYLOAD_BYTES // 8))
    return PodRow(f"uid-{number}", float(number), payload)


def assert_whole_pod(row: PodRow) -> int:
    number = int(row.uid.removeprefix("uid-"))
    content = pod_content(number)
    assert row.payload == content.payload
    assert row.observed_at in (content.observed_at, content.observed_at + 0.5)
    return number


def write_pods(board: Board, start: int) -> None:
    writer = board.pod_writer(0)
    number = start
    while True:
        row = pod_content(number)
        assert writer.write(row.uid, row.observed_at, row.payload)
        assert writer.touch(row.observed_at + 0.5)
        number += 1


def worker_content(pid: int, incarnation: int, number: int) -> WorkerRow:
    counters = WorkerCounters(syncs=number, runtime_calls=number)
    return WorkerRow(pid, incarnation, float(number), "x" * (number % 97), counters)


def write_worker(board: Board, incarnation: int) -> None:
    """Each value is written in three acts; the reader knows the states between them."""
    writer = board.worker_writer(0)
    writer.begin(os.getpid(), incarnation)
    number = 0
    while True:
        number += 1
        writer.count(syncs=1, runtime_calls=1)
        writer.step("x" * (number % 97))
        writer.beat(float(number))


def assert_whole_worker(row: WorkerRow, pid: int, incarnation: int) -> None:
    number = row.counters.syncs
    done = worker_content(pid, incarnation, number)
    before = worker_content(pid, incarnation, number - 1)
    counted = msgspec.structs.replace(before, counters=done.counters)
    stepped = msgspec.structs.replace(counted, step=done.step)
    begun = WorkerRow(pid, incarnation, 0.0, "", WorkerCounters())
    assert row in (begun, counted, stepped, done)


def poll(condition: Callable[[], bool], deadline_s: float = BOOT_DEADLINE_S) -> None:
    end = monotonic() + deadline_s
    while not condition():
        assert monotonic() < end, f"not within {deadline_s} s"
        os.sched_yield()


def moments(within_s: float, chance: random.Random) -> Iterator[None]:
    """Go round until a random moment."""
    end = monotonic() + chance.uniform(0, within_s)
    while monotonic() < end:
        yield


def enough(rounds: int, met: int) -> bool:
    return rounds >= MAX_KILLS or (rounds >= KILLS and met > 0)


def read_number(board: Board) -> int:
    """The number of the whole pod that is on the row; 0 when there is none."""
    row = board.read_pod(0)
    return 0 if row is None else assert_whole_pod(row)


def test_killed_pod_writer_leaves_a_whole_row_or_none() -> None:
    board = Board.create(worker_slots=1, pod_rows=1, pod_row_bytes=POD_ROW_BYTES)
    chance = random.Random(1)
    newest = torn = kills = 0

    def heir_has_written(start: int) -> bool:
        return read_number(board) >= start

    while not enough(kills, torn):
        start = newest + 1
        with forked(partial(write_pods, board, start)):
            # The dead predecessor's row, torn or not, is repaired by this writer.
            poll(partial(heir_has_written, start))
            for _ in moments(MAX_LIFE_S, chance):
                number = read_number(board)
                assert number == 0 or number >= newest, "an older value came back"
                newest = max(newest, number)
        left = read_number(board)
        assert left == read_number(board), "nobody writes any more"
        assert left == 0 or left >= newest, "an older value came back"
        newest = max(newest, left)
        torn += left == 0
        kills += 1
    assert newest > KILLS
    assert torn > 0, "no writer died in the middle of a write: this test shows nothing"


def test_killed_worker_is_succeeded_by_its_next_incarnation() -> None:
    board = Board.create(worker_slots=1, pod_rows=1)
    chance = random.Random(2)
    beats = 0

    def heir_has_begun(incarnation: int) -> bool:
        row = board.read_worker(0)
        return row is not None and row.incarnation == incarnation

    for incarnation in range(1, KILLS + 1):
        with forked(partial(write_worker, board, incarnation)) as pid:
            poll(partial(heir_has_begun, incarnation))
            for _ in moments(MAX_LIFE_S, chance):
                row = board.read_worker(0)
                if row is not None:
                    assert_whole_worker(row, pid, incarnation)
        row = board.read_worker(0)
        if row is not None:
            assert_whole_worker(row, pid, incarnation)
            beats += row.counters.syncs
    assert beats > KILLS


def test_stopped_writer_never_holds_a_reader_up() -> None:
    """SIGSTOP in the middle of a write: reads go on answering, and the writer goes on where it was."""
    board = Board.create(worker_slots=1, pod_rows=1, pod_row_bytes=POD_ROW_BYTES)
    chance = random.Random(3)
    unreadable = stops = 0
    with forked(partial(write_pods, board, 1)) as pid:
        while not enough(stops, unreadable):
            poll(lambda: read_number(board) > 0)
            for _ in moments(MAX_LIFE_S / 4, chance):
                os.sched_yield()
            os.kill(pid, signal.SIGSTOP)
            os.waitpid(pid, os.WUNTRACED)
            number = read_number(board)
            assert number == read_number(board)
            unreadable += number == 0
            stops += 1
            os.kill(pid, signal.SIGCONT)
    assert unreadable > 0, "no writer stopped in the middle of a write: this test shows nothing"


def shared_mappings(pid: int, size: int) -> list[str]:
    """Names that the kernel gives the writable shared mappings of that size in bytes."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    fields = [line.split(maxsplit=5) for line in lines]
    return [field[5] for field in fields if field[1] == "rw-s" and _length(field[0]) == size]


def _length(addresses: str) -> int:
    start, end = addresses.split("-")
    return int(end, 16) - int(start, 16)


def files() -> set[str]:
    """Regular ones in memory: what simulations beside us make are directories."""
    with os.scandir("/dev/shm") as entries:
        return {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}


def _has_begun(board: Board) -> bool:
    return board.read_worker(0) is not None


def test_board_is_shared_has_no_name_and_vanishes_with_its_last_user() -> None:
    size = 37 * 64 * 1024  # Bytes; nothing else here has this size.
    before = files()
    board = Board.create(worker_slots=256, pod_rows=36, pod_row_bytes=64 * 1024)
    with forked(partial(write_worker, board, 1)) as pid:
        poll(partial(_has_begun, board))
        assert shared_mappings(pid, size) == ["/dev/zero (deleted)"]
        assert shared_mappings(os.getpid(), size) == ["/dev/zero (deleted)"]
        assert not [name for name in files() - before if "board" in name or "rootlet" in name]
    del board
    gc.collect()
    assert shared_mappings(os.getpid(), size) == []
