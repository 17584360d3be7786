"""Measures what a flush to a disk costs: a start of a pod waits for many of them."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ipc.host.clock import monotonic

FLUSHES: Final = 9
BYTES: Final = b"\0" * 4096


def flush_s(directory: Path) -> float | None:
    """Median seconds of a flush there; None where no file can be made."""
    try:
        with tempfile.TemporaryFile(dir=directory, prefix=".rootlet-doctor-") as file:
            return statistics.median(_flushes(file.fileno()))
    except OSError:
        return None


def _flushes(descriptor: int) -> Iterator[float]:
    """Seconds of each. Raises OSError."""
    for _ in range(FLUSHES):
        os.write(descriptor, BYTES)
        began = monotonic()
        os.fdatasync(descriptor)
        yield monotonic() - began
