"""Resources of a process, as the kernel tells them."""

from __future__ import annotations

import os

import psutil

from workers.proc import usage

NO_PID = 2**22 + 1
"""Beyond the largest that there is (PID_MAX_LIMIT)."""


def test_memory_is_that_of_other_readers() -> None:
    used, pss = usage.of(os.getpid()), usage.pss_bytes(os.getpid())
    assert used is not None
    assert pss is not None
    assert 0 < pss <= psutil.Process().memory_info().rss * 1.5
    assert used.rss_bytes > 0


def test_no_process_takes_nothing() -> None:
    assert usage.of(NO_PID) is None
    assert usage.pss_bytes(NO_PID) is None
