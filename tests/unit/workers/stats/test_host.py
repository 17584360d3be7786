"""Figures of the whole host, beside what psutil reads of the same kernel."""

from __future__ import annotations

import os

import psutil

from workers.stats import flat_files, host
from workers.statsapi.values import Source


def test_io_of_the_host() -> None:
    """Bytes since boot never fall; a host that was booted has read some."""
    first, then = host.read_io(1.0), host.read_io(2.0)
    assert first is not None
    assert then is not None
    assert (first.source, first.time) == (Source.HOST, 1.0)
    assert first.read_bytes is not None
    assert then.read_bytes is not None
    assert first.write_bytes is not None
    assert then.write_bytes is not None
    assert 0 < first.read_bytes <= then.read_bytes
    assert first.write_bytes <= then.write_bytes


def test_memory_of_the_host() -> None:
    found = host.read_memory(1.0)
    assert found.memory is not None
    assert found.memory.usage is not None
    assert 0 < found.memory.usage < psutil.virtual_memory().total


def test_a_process_has_the_name_that_it_gave_itself() -> None:
    assert host.command_of(os.getpid()) == psutil.Process().name()[:15]


def test_a_file_of_many_lines_is_read_beyond_its_first_page() -> None:
    """The kernel gives such a file page by page."""
    assert len(flat_files.read("/proc/self/maps") or b"") > os.sysconf("SC_PAGE_SIZE")
