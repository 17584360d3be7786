"""An operating system that stops somebody at a given call, as kill -9 would, or watches every one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

WRITER_MODULES = ("workers.volumemanager.plugins.atomic_writer", "workers.fs.directories", "workers.fs.tree_removal")
CHANGES = frozenset({"mkdir", "write", "fchmod", "chmod", "symlink", "link", "rename", "unlink", "rmdir"})
"""Calls that change something; `open` does when it creates."""


class Killed(BaseException):
    """Nothing that comes after it has happened."""


class WatchedOs:
    """Stands for the module ``os``. ``before`` is called with the number of each change that is about to happen."""

    def __init__(self, before: Callable[[int], None]) -> None:
        self._before = before
        self.changes = 0

    def change(self) -> None:
        """One is about to happen."""
        self._before(self.changes)
        self.changes += 1

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CHANGES and name != "open":
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            if name in CHANGES or args[1] & os.O_CREAT:
                self.change()
            if name == "write":  # as little as a kernel may take
                args = (args[0], args[1][: max(1, len(args[1]) // 2)])
            return real(*args, **kwargs)

        return call


@contextmanager
def watched(before: Callable[[int], None], modules: Sequence[str] = WRITER_MODULES) -> Iterator[WatchedOs]:
    """Calls of these modules go through it."""
    system = WatchedOs(before)
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(f"{module}.os", system)
        yield system


@contextmanager
def killed_at(number: int, modules: Sequence[str] = WRITER_MODULES) -> Iterator[WatchedOs]:
    """The change of that number, and all after it, do not happen."""

    def stop(change: int) -> None:
        if change >= number:
            raise Killed

    with watched(stop, modules) as system:
        yield system
