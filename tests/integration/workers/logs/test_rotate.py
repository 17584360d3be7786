"""Rotation on real files: nothing is lost and nothing stuck, wherever it is killed and however slow the monitor is."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gzip
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.crashing_os import Killed, killed_at, watched
from tests.support.log_monitor import STAMP, LogMonitor
from tests.support.shown_log import shown_log
from workers.api_server.handlers.log_files import LogOptions
from workers.logs.log_reader import LogReader
from workers.logs.rotate import Unconfirmed, compress_older, rotate

MODULES = ("workers.logs.rotate", "ipc.host.regular_files")
WALL = 1_763_665_431.0
MANY = 1000
LINE = re.compile(rb"line ([0-9]+)")


class Rotation:
    """A container's log, its monitor, and the process that rotates it: which remembers a doubt as long as it lives."""

    def __init__(self, directory: Path) -> None:
        self.log = directory / "logs" / "0.log"
        self.monitor = LogMonitor(self.log, directory)
        self.unconfirmed: Unconfirmed | None = None

    def rotate(self, max_files: int = MANY) -> bool:
        """Whether the monitor was told."""
        done = rotate(self.log, max_files, WALL, self.monitor.control, self.unconfirmed)
        self.unconfirmed = done.unconfirmed
        return done.was_signalled

    def compress(self) -> None:
        compress_older(self.log, lambda: True)

    def killed(self, act: Callable[[], object], step: int) -> bool:
        """Do it until that step: False when it has fewer. The next process knows nothing."""
        with killed_at(step, MODULES) as system:
            self.monitor.before_telling = system.change
            try:
                act()
            except Killed:
                self.unconfirmed = None
                return True
            finally:
                self.monitor.before_telling = lambda: None
        return False

    def shown(self, **options: object) -> list[int]:
        """Numbers of the lines that a client gets."""
        return asyncio.run(shown(self.log, LogOptions(**options)))  # type: ignore[arg-type]

    def files(self) -> list[str]:
        return sorted(os.listdir(self.log.parent))


async def shown(log: Path, options: LogOptions) -> list[int]:
    return [int(number) for number in LINE.findall(await shown_log(log, options))]


@pytest.fixture
def rotation(tmp_path: Path) -> Iterator[Rotation]:
    made = Rotation(tmp_path)
    yield made
    made.monitor.close()


def rotated(rotation: Rotation, times: int, lines: int = 3, max_files: int = MANY) -> None:
    for _ in range(times):
        rotation.monitor.write(lines)
        assert rotation.rotate(max_files)
        rotation.monitor.read()
        rotation.monitor.reopen()
        rotation.compress()


def test_all_but_the_newest_rotated_log_are_compressed(rotation: Rotation) -> None:
    rotated(rotation, 4)
    assert [re.sub(r"\d{8}-\d{6}", "T", name) for name in rotation.files()] == [
        "0.log",
        "0.log.T.gz",
        "0.log.T.gz",
        "0.log.T.gz",
        "0.log.T",
    ]
    for name in rotation.files():
        file = rotation.log.with_name(name)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first = rotation.log.with_name(rotation.files()[1])
    assert gzip.decompress(first.read_bytes()) == b"".join(STAMP + b" stdout F line %d\n" % n for n in range(3))


def test_no_more_files_than_allowed(rotation: Rotation) -> None:
    for max_files in (5, 3, 2):
        rotated(rotation, 6, max_files=max_files)
        assert len(rotation.files()) == max_files
    rotation.monitor.write(1)
    last = rotation.monitor.written - 1
    assert rotation.shown() == list(range(last - 3, last + 1))


def test_a_kill_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    for between in ("written", "taken", "nothing"):
        step = 0
        while True:
            directory = tmp_path / f"{between}-{step}"
            directory.mkdir()
            rotation = Rotation(directory)
            rotated(rotation, 3)
            rotation.monitor.write(2)

            def act(one: Rotation = rotation) -> None:
                one.rotate()
                one.monitor.read()
                one.monitor.reopen()
                one.compress()

            was_killed = rotation.killed(act, step)
            assert rotation.shown() == list(range(rotation.monitor.written))
            if between != "nothing":
                rotation.monitor.read()
            if between == "written":
                rotation.monitor.write(2)
            for _ in range(3):  # the next process finds out what is the matter, and goes on
                rotation.rotate()
                rotation.monitor.read()
                rotation.monitor.write(2)
                assert rotation.shown() == list(range(rotation.monitor.written))
            rotation.compress()
            assert rotation.shown() == list(range(rotation.monitor.written))
            assert rotation.log.stat().st_nlink == 1, "what was begun is not stuck"
            uncompressed = [name for name in rotation.files() if not name.endswith(".gz")]
            assert len(uncompressed) == 2, uncompressed
            rotation.monitor.close()
            if not was_killed:
                break
            step += 1
        assert step > 5


def test_a_disk_that_is_full_at_any_step_loses_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    step, is_over = 0, False
    while not is_over:
        directory = tmp_path / str(step)
        directory.mkdir()
        rotation = Rotation(directory)
        rotated(rotation, 2)
        rotation.monitor.write(2)

        def fail(change: int, number: int = step) -> None:
            if change == number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with watched(fail, MODULES) as system:
            for act in (rotation.rotate, rotation.monitor.read, rotation.monitor.reopen, rotation.compress):
                with contextlib.suppress(OSError):
                    act()
            is_over = system.changes < step
        assert rotation.shown() == list(range(rotation.monitor.written))
        for _ in range(3):
            rotation.monitor.write(2)
            rotation.rotate()
            rotation.monitor.read()
        rotation.monitor.write(2)
        rotation.compress()
        assert rotation.shown() == list(range(rotation.monitor.written))
        assert rotation.log.stat().st_nlink == 1
        assert not [name for name in rotation.files() if name.endswith(".tmp")]
        rotation.monitor.close()
        step += 1
    assert step > 5


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 3)),
        st.tuples(st.just("read"), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0)),
        st.tuples(st.just("rotate"), st.just(MANY)),
        st.tuples(st.just("rotate"), st.integers(0, 4)),
        st.tuples(st.just("compress"), st.integers(0, 12)),
        st.tuples(st.just("look"), st.integers(0, 9)),
    ),
    min_size=20,
    max_size=40,
)


@settings(max_examples=60)
@given(ACTS)
def test_any_history_of_rotations_kills_and_slow_monitors(acts: list[tuple[str, int]]) -> None:
    """Numbers of ``rotate`` and ``compress`` are the step of a kill, if there are so many. A client that follows the
    log sees each line once, too, whenever it looks."""
    with tempfile.TemporaryDirectory() as directory:
        rotation = Rotation(Path(directory))
        follower, followed = LogReader(rotation.log.parent, rotation.log), bytearray()
        monitor = rotation.monitor

        def look() -> None:
            while True:
                moved = follower.has_moved()
                lines = follower.read_lines()
                if lines is not None:
                    followed.extend(b"".join(line + b"\n" for line in lines))
                elif moved:
                    follower.go_on()
                else:
                    return

        for act, number in [*acts, ("look", 0)]:
            match act:
                case "write":
                    monitor.write(number)
                case "read":
                    monitor.read()
                case "reopen":
                    monitor.reopen()
                case "rotate":
                    rotation.killed(rotation.rotate, number)
                case "compress":
                    rotation.killed(rotation.compress, number)
                case _:
                    look()
            assert rotation.shown() == list(range(monitor.written))
        assert [int(number) for number in LINE.findall(bytes(followed))] == list(range(monitor.written))
        follower.close()
        monitor.close()


def test_a_monitor_is_not_told_twice(rotation: Rotation) -> None:
    """The second time would take away what it has written since the first."""
    rotation.monitor.write(1)
    assert rotation.rotate()
    assert not rotation.rotate(), "it has not read what it was told"
    rotation.monitor.read()
    assert not rotation.rotate()
    assert not rotation.rotate(), "it may be about to open the new log"
    rotation.monitor.write(1)
    assert rotation.log.stat().st_nlink == 1
    assert rotation.shown() == [0, 1]


def test_a_monitor_that_was_not_told_is_told_once_it_goes_on_writing(rotation: Rotation) -> None:
    rotation.monitor.write(1)
    assert rotation.killed(rotation.rotate, 2)
    assert rotation.log.stat().st_nlink == 2
    assert not rotation.rotate()
    rotation.monitor.write(1)
    assert rotation.rotate()
    rotation.monitor.read()
    rotation.monitor.write(1)
    assert rotation.shown() == [0, 1, 2]
    assert rotation.log.stat().st_nlink == 1


def test_a_log_that_somebody_has_moved_away_is_made_again(rotation: Rotation) -> None:
    rotation.monitor.write(1)
    rotation.log.unlink()
    assert not rotation.rotate(), "it may be about to be made"
    assert rotation.rotate()
    rotation.monitor.read()
    rotation.monitor.write(1)
    assert rotation.shown() == [1]


def test_the_new_log_is_there_before_the_monitor_is_told(rotation: Rotation, monkeypatch: pytest.MonkeyPatch) -> None:
    """conmon ends when it cannot make it: on a file system without room its container would go with it."""
    rotation.monitor.write(1)
    (rotation.log.parent / "0.log.tmp").mkdir()
    with pytest.raises(IsADirectoryError):
        rotation.rotate()
    rotation.monitor.read()
    rotation.monitor.reopen()
    (rotation.log.parent / "0.log.tmp").rmdir()
    assert rotation.shown() == [0]


def test_without_a_monitor_nothing_is_changed(rotation: Rotation) -> None:
    rotation.monitor.write(1)

    @contextlib.contextmanager
    def nobody() -> Iterator[None]:
        raise FileNotFoundError
        yield

    with pytest.raises(FileNotFoundError):
        rotate(rotation.log, MANY, WALL, nobody, None)  # type: ignore[arg-type]
    assert rotation.files() == ["0.log"]


def test_what_was_removed_while_it_was_compressed_stays_so(rotation: Rotation) -> None:
    rotated(rotation, 1)
    rotation.monitor.write(1)
    rotation.rotate()
    oldest = rotation.log.with_name(rotation.files()[1])

    def removed() -> bool:
        oldest.unlink(missing_ok=True)
        return True

    compress_older(rotation.log, removed)
    assert not [name for name in rotation.files() if name.startswith(oldest.name)]


def test_a_compression_that_is_broken_off_leaves_nothing(rotation: Rotation) -> None:
    rotated(rotation, 1)
    rotation.monitor.write(1)
    rotation.rotate()
    before = rotation.files()
    compress_older(rotation.log, lambda: False)
    assert rotation.files() == before


def test_a_tail_goes_over_all_files(rotation: Rotation) -> None:
    rotated(rotation, 4, lines=3)
    rotation.monitor.write(2)
    for lines in range(16):
        assert rotation.shown(tail_lines=lines) == list(range(14 - min(14, lines), 14)), lines


def test_files_that_are_too_old_are_not_read(rotation: Rotation) -> None:
    rotated(rotation, 3)
    rotation.monitor.write(1)
    for number, name in enumerate(name for name in rotation.files() if name != "0.log"):
        os.utime(rotation.log.with_name(name), (100.0 * number, 100.0 * number))
    reader = LogReader(rotation.log.parent, rotation.log, since=150.0)
    lines = []
    while (found := reader.read_lines()) is not None:
        lines += found
    reader.close()
    assert [int(number) for number in LINE.findall(b"\n".join(lines))] == [6, 7, 8, 9]


def test_a_damaged_file_ends_and_the_next_one_follows(rotation: Rotation) -> None:
    rotated(rotation, 3)
    rotation.monitor.write(1)
    first = rotation.log.with_name(rotation.files()[1])
    for damaged in (b"", b"garbage", first.read_bytes()[:-12]):
        first.write_bytes(damaged)
        assert [number for number in rotation.shown() if number > 2] == list(range(3, 10))


def test_a_log_that_was_moved_away_is_followed_there(rotation: Rotation) -> None:
    rotation.monitor.write(1)
    reader, seen = LogReader(rotation.log.parent, rotation.log), bytearray()

    def look() -> None:
        while True:
            moved, lines = reader.has_moved(), reader.read_lines()
            if lines is None and not moved:
                return
            seen.extend(b"".join(line + b"\n" for line in lines or ()))
            if lines is None:
                reader.go_on()

    look()
    rotation.log.rename(rotation.log.with_name("elsewhere"))
    rotation.monitor.write(1)
    look()
    rotation.rotate()
    assert rotation.rotate()
    rotation.monitor.read()
    rotation.monitor.write(1)
    look()
    reader.close()
    assert [int(number) for number in LINE.findall(bytes(seen))] == [0, 1, 2]


def test_a_slow_reader_misses_only_what_was_removed(rotation: Rotation) -> None:
    rotated(rotation, 1, max_files=3)
    rotation.monitor.write(3)
    reader = LogReader(rotation.log.parent, rotation.log)
    assert reader.read_lines()
    rotated(rotation, 4, max_files=3)
    seen = []
    while True:
        moved, lines = reader.has_moved(), reader.read_lines()
        if lines is not None:
            seen += lines
        elif moved:
            reader.go_on()
        else:
            break
    reader.close()
    numbers = [int(number) for number in LINE.findall(b"\n".join(seen))]
    assert numbers == sorted(set(numbers))
    assert numbers[:3] == [3, 4, 5], "the file that is open stays readable"
    assert numbers[-1] == rotation.monitor.written - 1
