"""Processes that have outlived their container, known by their mark."""

from __future__ import annotations

import pytest

from workers.proc.container_tags import container_tag, end_tagged


def test_a_mark_is_of_one_attempt() -> None:
    marks = [container_tag(uid, name, attempt) for uid in ("u", "v") for name in "ab" for attempt in (0, 1)]
    assert len(set(marks)) == 8
    assert all(mark.soft <= mark.hard < 2**63 for mark in marks)
    assert marks[0].rlimit() == {"type": "locks", "soft": marks[0].soft, "hard": marks[0].hard}


def test_processes_that_start_faster_than_they_end_are_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = container_tag("u", "a", 0)
    monkeypatch.setattr("workers.proc.container_tags.procfs.pids", lambda: [1])
    monkeypatch.setattr("workers.proc.container_tags._tag", lambda _pid: mine)
    monkeypatch.setattr("workers.proc.container_tags.kill_if", lambda _pid, _is_it: True)
    with pytest.raises(OSError, match="they still start new ones"):
        end_tagged({mine})
