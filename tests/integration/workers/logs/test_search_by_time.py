"""Lines of a time on are found without reading what is older: no matter how long the log, the bytes read are few."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
from pathlib import Path

import pytest

from ipc.host.clock import rfc3339
from tests.support.shown_log import shown_log
from workers.api_server.handlers.log_files import LogOptions
from workers.logs import log_reader
from workers.logs.log_reader import PROBE_BYTES

BEGIN = 1_767_225_600.0
ODD = (b"", b"no entry at all", b"x" * 100_000, b"2026-01-01T00:00:00Z stdout", b"tomorrow stdout F x")


def entry(second: float, message: bytes) -> bytes:
    return rfc3339(BEGIN + second).encode() + b" stdout F " + message + b"\n"


def shown(log: Path, options: LogOptions, *, search: bool) -> bytes:
    return asyncio.run(shown_log(log, options, search=search))


@pytest.mark.parametrize("seed", range(6))
def test_a_search_finds_what_reading_everything_finds(tmp_path: Path, seed: int) -> None:
    """Lines of all lengths, several in one second, and lines that no monitor has written."""
    chance = random.Random(seed)
    log, second, lines = tmp_path / "0.log", 0.0, []
    for number in range(chance.choice((0, 1, 40, 1500))):
        second += chance.choice((0, 0, 1, 7))
        lines.append(entry(second, b"%d " % number + b"y" * chance.choice((0, 10, 200, 8000))))
        if chance.random() < 0.02:
            lines.append(chance.choice(ODD) + b"\n")
    log.write_bytes(b"".join(lines))
    for since in (-5.0, 0.5, 0.5 + second / 3, second, second + 5, *(chance.uniform(0, second) for _ in range(12))):
        options = LogOptions(since=BEGIN + since)
        assert shown(log, options, search=True) == shown(log, options, search=False)


class Reads:
    """Bytes that were read of all files."""

    def __init__(self) -> None:
        self.bytes = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    counted, pread = Reads(), os.pread

    def count(fd: int, length: int, offset: int) -> bytes:
        data = pread(fd, length, offset)
        counted.bytes += len(data)
        return data

    monkeypatch.setattr(os, "pread", count)
    return counted


def test_few_bytes_of_a_long_log_are_read(tmp_path: Path, reads: Reads) -> None:
    log = tmp_path / "0.log"
    block, count = b"z" * 1000, 60_000
    with log.open("wb") as file:
        for number in range(count):
            file.write(entry(number, b"%d " % number + block))
    size = log.stat().st_size
    found = shown(log, LogOptions(since=BEGIN + count - 5), search=True)
    assert [int(line.split()[0]) for line in found.splitlines()] == list(range(count - 5, count))
    halvings = (size // PROBE_BYTES).bit_length()
    assert reads.bytes <= (halvings + 2) * PROBE_BYTES + log_reader.READ_BYTES < size // 50

    reads.bytes = 0
    assert shown(log, LogOptions(since=BEGIN + count), search=True) == b""
    assert reads.bytes < size // 50


def test_the_search_begins_in_the_file_that_the_time_lies_in(tmp_path: Path, reads: Reads) -> None:
    """A compressed file is unpacked whole, and no line is looked at that needs not be; of the next ones nothing is."""
    log = tmp_path / "0.log"
    names = ("0.log.20260101-000001.gz", "0.log.20260101-000002.gz", "0.log.20260101-000003", "0.log")
    for part, name in enumerate(names):
        text = b"".join(entry(part * 1000 + number, b"%d" % (part * 1000 + number)) for number in range(1000))
        path = tmp_path / name
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        changed = BEGIN + part * 1000 + 999
        os.utime(path, (changed, changed))
    for since in (0, 500, 1700, 2999, 3500, 3999):
        found = shown(log, LogOptions(since=BEGIN + since), search=True)
        assert [int(line) for line in found.split()] == list(range(since, 4000))
