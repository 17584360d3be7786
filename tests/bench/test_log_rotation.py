"""A container that writes as fast as conmon takes it, 3 GB: every line is accounted for, and the disk is bounded.
``ROOTLET_BENCH_LOG_MB`` is another size."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ipc.host.clock import monotonic
from tests.e2e.agent import Agent
from tests.e2e.manifests import STAY, container, pod

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(3600)]

BLOCKS = int(os.environ.get("ROOTLET_BENCH_LOG_MB", "3000"))
BLOCK_LINES = 5000
DEADLINE_S = 600.0
FLOOD = (
    "pad=$(seq -s '' 100 148); i=0;"
    f" while [ $i -lt {BLOCK_LINES} ]; do echo $i $pad; i=$((i + 1)); done > /block;"
    f" b=0; while [ $b -lt {BLOCKS} ]; do echo block $b; cat /block; b=$((b + 1)); done; echo end; {STAY}"
)
"""A megabyte a block; its lines are numbered."""
NUMBER = re.compile(rb"block ([0-9]+)|([0-9]+) ")


class Flood:
    """One run: how much was on the disk at most, and what is there at the end."""

    def __init__(self, agent: Agent, max_files: int) -> None:
        agent.configure({"containerLogMaxFiles": max_files})
        agent.start()
        self._agent = agent
        self._over = threading.Event()
        self.most_bytes = 0
        self.most_files = 0

    def run(self) -> None:
        agent = self._agent
        watching = threading.Thread(target=self._watch)
        watching.start()
        agent.write(pod("flood", container(script=FLOOD)))
        agent.until_running(["flood"])
        began, used = monotonic(), self._cpu_s()
        agent.until(lambda: agent.cli("logs", "flood", "--tail", "1").out == "end\n", "all is written", DEADLINE_S, 0.5)
        self.seconds = monotonic() - began
        self.cpu_s = self._cpu_s() - used
        agent.until(self._is_packed, "all but the newest two are compressed", DEADLINE_S, 0.5)
        self._over.set()
        watching.join()

    def _is_packed(self) -> bool:
        return len([file for file in self.files() if file.suffix != ".gz"]) <= 2

    def _cpu_s(self) -> float:
        times = psutil.Process(self._agent.processes()["node"]).cpu_times()
        return float(times.user + times.system)

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            files = [found for file in self.files() if (found := _stat(file)) is not None]
            self.most_bytes = max(self.most_bytes, sum(found.st_blocks * 512 for found in files))
            self.most_files = max(self.most_files, len(files))

    def files(self) -> list[Path]:
        """The newest last."""
        found = list((self._agent.directory / "logs").glob("*_flood_*/main/*"))
        return sorted(found, key=lambda file: (file.name == "0.log", file.name))

    def lines(self) -> Iterator[int]:
        """Numbers of the lines that are there, in order, counted over all blocks."""
        block, rest = -1, b""
        for file in self.files():
            with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
                for entry in opened:
                    _, _, tag, text = entry.rstrip(b"\n").split(b" ", 3)
                    rest += text
                    if tag == b"P":
                        continue
                    line, rest = rest, b""
                    match = NUMBER.match(line)
                    if match is not None and match[1]:
                        block = int(match[1])
                        yield block * (BLOCK_LINES + 1)
                    elif match is not None:
                        yield block * (BLOCK_LINES + 1) + 1 + int(match[2])


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except FileNotFoundError:
        return None


def told(capsys: pytest.CaptureFixture[str], flood: Flood, what: str) -> None:
    with capsys.disabled():
        print(
            f"\n{what}: {BLOCKS} MB in {flood.seconds:.0f} s ({BLOCKS / flood.seconds:.0f} MB/s); at most"
            f" {flood.most_files} files, {flood.most_bytes / 1e6:.0f} MB; node worker {flood.cpu_s:.1f} s of CPU time"
        )


def test_every_line_is_accounted_for(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    flood = Flood(agent, max_files=1000)
    flood.run()
    told(capsys, flood, "all files kept")
    expected = 0
    for number in flood.lines():
        assert number == expected
        expected += 1
    assert expected == BLOCKS * (BLOCK_LINES + 1)


def test_the_disk_is_bounded(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    flood = Flood(agent, max_files=5)
    flood.run()
    told(capsys, flood, "five files")
    lines = [number for number in flood.lines() if number >= 0]
    missing = [(before, after) for before, after in itertools.pairwise(lines) if after != before + 1]
    assert not missing
    assert lines[-1] == BLOCKS * (BLOCK_LINES + 1) - 1
    a_second = 1e6 * BLOCKS / flood.seconds
    assert flood.most_bytes < 5 * (10 * 2**20 + 4 * a_second), "five files of a size and what is written between looks"
