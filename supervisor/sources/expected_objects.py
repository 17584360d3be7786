"""The names of the ConfigMaps and Secrets that were there, on disk: never anything of their content.

After a restart of the agent they say of what is missing because its file cannot be read that it is not absent. A file
that is lost or damaged costs only that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import write_atomically
from ipc.host.private_directories import make_private
from ipc.host.state_file import usable_state
from supervisor.protocol.manifests import ExpectedObject

MAX_NAMES_BYTES: Final = 16 << 20
"""Largest file that is read: twice what the most objects need."""

log = logging.getLogger(__name__)


def save_names(path: Path, objects: Iterable[ExpectedObject]) -> None:
    """Replace the file: 0600, atomic, durable. Raises OSError."""
    make_private(path.parent)
    write_atomically(path, msgspec.json.encode(list(objects)))


def load_names(path: Path) -> tuple[ExpectedObject, ...]:
    """Names that were saved; none when there is no file, or none that can be used: that is logged."""
    return usable_state(path, MAX_NAMES_BYTES, _decode, "names of objects", log) or ()


def _decode(data: bytes) -> tuple[ExpectedObject, ...]:
    return msgspec.json.decode(data, type=tuple[ExpectedObject, ...])
