"""Processes that have outlived their container, known by their mark."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from workers.proc.container_tags import ContainerTag, container_tag, end_tagged

DEADLINE_S: Final = 20.0
RLIMIT_LOCKS: Final = 10
"""The resource module has no name for it."""
FORKS: Final = "import os, time; os.fork() or os.setsid(); os.write(1, b'up\\n'); time.sleep(600)"


@contextlib.contextmanager
def marked(mark: ContainerTag) -> Iterator[subprocess.Popen[str]]:
    """A process with that mark, which forks another one that leaves its session."""
    process = subprocess.Popen(
        [sys.executable, "-c", FORKS],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(RLIMIT_LOCKS, (mark.soft, mark.hard)),
    )
    assert process.stdout is not None
    with process, process.stdout as output:
        try:
            assert [output.readline() for _ in range(2)] == ["up\n"] * 2
            yield process
        finally:
            end_tagged({mark})


def test_a_mark_is_of_one_attempt() -> None:
    marks = [container_tag(uid, name, attempt) for uid in ("u", "v") for name in "ab" for attempt in (0, 1)]
    assert len(set(marks)) == 8
    assert all(mark.soft <= mark.hard < 2**63 for mark in marks)
    assert marks[0].rlimit() == {"type": "locks", "soft": marks[0].soft, "hard": marks[0].hard}


def test_what_has_the_mark_ends_and_nothing_else() -> None:
    mine, other = container_tag("u", "a", 0), container_tag("u", "a", 1)
    with marked(mine) as ends, marked(other) as stays:
        assert end_tagged({mine}) == 2
        assert ends.wait(DEADLINE_S) == -9
        assert stays.poll() is None
        assert end_tagged({mine}) == 0
        assert end_tagged({other}) == 2


def test_processes_that_start_faster_than_they_end_are_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = container_tag("u", "a", 0)
    monkeypatch.setattr("workers.proc.container_tags.procfs.pids", lambda: [1])
    monkeypatch.setattr("workers.proc.container_tags._tag", lambda _pid: mine)
    monkeypatch.setattr("workers.proc.container_tags.kill_if", lambda _pid, _is_it: True)
    with pytest.raises(OSError, match="they still start new ones"):
        end_tagged({mine})
