"""Events of the node about its start and its readiness (pkg/kubelet/kubelet.go, BirthCry; kubelet_node_status.go)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.messages import event_reasons
from ipc.messages.event_reasons import EventReason
from ipc.nodestatus.node import NODE_NOT_READY, NODE_READY

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
MAX_BOOT_ID_BYTES: Final = 64

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
        now, before = _read(BOOT_ID), _read(self._boot_file)
        if now and before and now != before:
            self._tell(event_reasons.NODE_REBOOTED, f"Node {self._node_name} has been rebooted, boot id: {now}")
        if now and now != before:
            self._keep(now)

    def ready(self, *, is_ready: bool) -> None:
        """The node is ready or not: of a change its event. At first it is not."""
        if is_ready is not self._is_ready:
            self._is_ready = is_ready
            self.status_changed(NODE_READY if is_ready else NODE_NOT_READY)

    def status_changed(self, event: str) -> None:
        """A condition has changed (recordNodeStatusEvent)."""
        self._tell(event_reasons.node_status(event), f"Node {self._node_name} status is now: {event}")

    def _keep(self, boot_id: str) -> None:
        try:
            write_atomically(self._boot_file, boot_id.encode())
        except OSError as error:
            log.warning("%s cannot be written: %s", self._boot_file, error.strerror or error)


def _read(path: Path) -> str:
    """Empty when it cannot be read."""
    try:
        return read_bounded(path, MAX_BOOT_ID_BYTES).decode(errors="replace").strip()
    except (OSError, UntrustedFile):
        return ""
