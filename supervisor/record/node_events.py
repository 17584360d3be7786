"""Events of the node about its start and its readiness (pkg/kubelet/kubelet.go, BirthCry; kubelet_node_status.go)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.state_file import usable_state
from ipc.k8s.nodestatus.node import NODE_NOT_READY, NODE_READY
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
BOOT_FILE: Final = "boot-id"
"""Below ``stateDir``: the host's boot, when the agent last started."""
MAX_BOOT_ID_BYTES: Final = 64
_ID: Final = re.compile(rb"\s*([0-9a-f-]{1,36})\s*")

log = logging.getLogger(__name__)


class NodeEvents:
    """Tells what is news. Of conditions of pressure tells whoever sets them."""

    def __init__(self, node_name: str, boot_file: Path, tell: Callable[[EventReason, str], None]) -> None:
        """``boot_file`` keeps the boot id that the agent has run under."""
        self._node_name = node_name
        self._boot_file = boot_file
        self._tell = tell
        self._is_ready = False

    def started(self) -> None:
        """The agent has started; and the host, where that happened since the agent last did."""
        self._tell(event_reasons.STARTING, "Starting rootlet.")
        now = _kernels(BOOT_ID)
        before = usable_state(self._boot_file, MAX_BOOT_ID_BYTES, _decode, "boot id", log) or ""
        if now and before and now != before:
            self._tell(event_reasons.NODE_REBOOTED, f"Node {self._node_name} has been rebooted, boot id: {now}")
        if now and now != before:
            self.keep()

    def ready(self, *, is_ready: bool) -> None:
        """The node is ready or not: of a change its event. At first it is not."""
        if is_ready is not self._is_ready:
            self._is_ready = is_ready
            self.status_changed(NODE_READY if is_ready else NODE_NOT_READY)

    def status_changed(self, event: str) -> None:
        """A condition has changed (recordNodeStatusEvent)."""
        self._tell(event_reasons.node_status(event), f"Node {self._node_name} status is now: {event}")

    def keep(self) -> None:
        """Write down under which boot of the host the agent runs."""
        try:
            write_atomically(self._boot_file, _kernels(BOOT_ID).encode())
        except OSError as error:
            log.warning("%s cannot be written: %s", self._boot_file, error.strerror or error)


def _kernels(path: Path) -> str:
    """Id of the present boot; empty when the kernel does not tell."""
    try:
        return _decode(read_bounded(path, MAX_BOOT_ID_BYTES))
    except (OSError, UntrustedFile):
        return ""


def _decode(data: bytes) -> str:
    """Raises UntrustedFile for what is no id: it would be taken for that of another boot."""
    if not (found := _ID.fullmatch(data)):
        raise UntrustedFile("it is no boot id")
    return found[1].decode()
