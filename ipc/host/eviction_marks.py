"""Eviction marks: a file in an evicted pod's own directory with the reason, which is removed with it.

Upstream has it in the pod's status, in the API. The worker that finds a pod beyond its limits writes the mark before it
says so; the master reads all of them once, when it starts, lest an evicted pod runs again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ipc.host.atomic_file import write_atomically

MARK: Final = "evicted"
MAX_MESSAGE_BYTES: Final = 4096
"""Longest message that is read back."""


def mark_evicted(directory: Path, message: str) -> None:
    """Replaces the mark of that pod directory, which is there, as a whole. Blocks. Raises OSError."""
    write_atomically(directory / MARK, message.encode(errors="backslashreplace"))


def evicted(pods_dir: Path) -> dict[str, str]:
    """UID -> message. A file that cannot be read is no mark. Blocks. Raises OSError for an unreadable directory."""
    try:
        names = os.listdir(pods_dir)
    except FileNotFoundError:
        return {}
    found = {name: _read(pods_dir / name / MARK) for name in names}
    return {uid: message for uid, message in found.items() if message}


def _read(mark: Path) -> str:
    try:
        with mark.open("rb") as file:
            return file.read(MAX_MESSAGE_BYTES).decode(errors="replace")
    except OSError:
        return ""
