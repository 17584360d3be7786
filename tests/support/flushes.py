"""Flushes of the disk by this process, watched."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def flushes() -> Iterator[list[str]]:
    """Kinds of what is flushed within the block, in its order: ``file`` or ``directory``."""
    found: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        found.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield found
