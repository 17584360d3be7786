"""Eviction marks: a file in an evicted pod's own directory with the reason, which is removed with it.

Upstream has it in the pod's status, in the API. The pod's worker writes the mark before it stops anything; the master
reads all of them once, when it starts, lest an evicted pod runs again.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from ipc.host.atomic_file import write_atomically
from ipc.host.state_file import usable_state

MARK: Final = "evicted"
MAX_MARK_BYTES: Final = 64 * 1024
"""Longest text that is kept: a message of a pod with a hundred containers, twice."""

log = logging.getLogger(__name__)


def mark_evicted(directory: Path, text: str) -> None:
    """Replaces the mark of that pod directory, which is there, as a whole. Blocks. Raises OSError."""
    write_atomically(directory / MARK, text.encode(errors="backslashreplace")[:MAX_MARK_BYTES])


def evicted(pods_dir: Path) -> dict[str, str]:
    """Texts of the eviction marks there are, by UID. What cannot be read is no mark, and told in the log. Blocks."""
    try:
        names = os.listdir(pods_dir)
    except FileNotFoundError:
        return {}
    except OSError as error:
        log.error("marks of evicted pods in %s cannot be read: %s", pods_dir, error.strerror or error)
        return {}
    # Most pods have none, and a look costs a tenth of an open that fails.
    marks = {name: mark for name in names if os.path.lexists(mark := f"{pods_dir}/{name}/{MARK}")}
    found = {uid: _read(mark) for uid, mark in marks.items()}
    return {uid: message for uid, message in found.items() if message}


def _read(mark: str) -> str:
    return usable_state(Path(mark), MAX_MARK_BYTES, _decode, "mark of an evicted pod", log) or ""


def _decode(data: bytes) -> str:
    return data.decode(errors="replace")
