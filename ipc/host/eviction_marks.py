"""Eviction marks: a file in an evicted pod's own directory with the reason, which is removed with it.

Upstream has it in the pod's status, in the API. The pod's worker writes the mark before it stops anything; the master
reads all of them once, when it starts, lest an evicted pod runs again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ipc.host.atomic_file import write_atomically
from ipc.host.regular_files import read_regular_file

MARK: Final = "evicted"
MAX_MARK_BYTES: Final = 64 * 1024
"""Longest text that is read back: a message of a pod with a hundred containers, twice."""


def mark_evicted(directory: Path, text: str) -> None:
    """Replaces the mark of that pod directory, which is there, as a whole. Blocks. Raises OSError."""
    write_atomically(directory / MARK, text.encode(errors="backslashreplace"))


def evicted(pods_dir: Path) -> dict[str, str]:
    """Texts of the eviction marks there are, by UID. A file that cannot be read is no mark. Blocks. Raises OSError for
    an unreadable directory."""
    try:
        names = os.listdir(pods_dir)
    except FileNotFoundError:
        return {}
    # Most pods have none, and a look costs a tenth of an open that fails.
    marks = {name: mark for name in names if os.path.lexists(mark := f"{pods_dir}/{name}/{MARK}")}
    found = {uid: _read(mark) for uid, mark in marks.items()}
    return {uid: message for uid, message in found.items() if message}


def _read(mark: str) -> str:
    try:
        return read_regular_file(mark, MAX_MARK_BYTES).decode(errors="replace")
    except OSError:
        return ""
