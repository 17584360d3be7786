"""How far the node is with going down, on disk (pkg/kubelet/nodeshutdown/storage.go, graceful_node_shutdown_state).

Upstream keeps it for its metrics. Here an agent that was killed meanwhile goes on with it: a drained node stays drained
until the host starts anew.

Format: one JSON object ``{"startTime", "endTime", "cause", "bootID", "drained"}``, replaced as a whole; times in epoch
seconds.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import write_atomically
from ipc.host.state_file import usable_state

FILE: Final = "graceful_node_shutdown_state"
"""Below ``stateDir``, as below the kubelet's root directory."""
MAX_FILE_BYTES: Final = 4096
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

log = logging.getLogger(__name__)


class StoredShutdown(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The newest one, also when it is over long since."""

    start_time: float = 0.0
    end_time: float = 0.0
    """0.0 before the end of the last pod."""
    cause: str = ""
    """Empty: it was called off, or there was none."""
    boot_id: str = msgspec.field(name="bootID", default="")
    drained: bool = False
    """Somebody wants the node drained, whatever becomes of the host's shutdown."""


def save_shutdown(directory: Path, shutdown: StoredShutdown) -> None:
    """Replace the file. Raises OSError; the previous file is whole then."""
    write_atomically(directory / FILE, msgspec.json.encode(shutdown))


def restore_shutdown(directory: Path) -> StoredShutdown:
    """A file that cannot be believed is moved aside: then there was none."""
    return usable_state(directory / FILE, MAX_FILE_BYTES, _decode, "state of the shutdown", log) or StoredShutdown()


def _decode(data: bytes) -> StoredShutdown:
    return msgspec.json.decode(data, type=StoredShutdown)


def boot_id() -> str:
    """Id of the host's present boot; empty where the kernel does not tell."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
