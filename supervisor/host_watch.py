"""Watch over the parts of the host that change while the agent runs: its addresses, and the configuration's devices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ipc.host.network_addresses import node_ips
from ipc.k8s.nodestatus.node_ip import chosen_node_ips
from ipc.k8s.podresources.devices import Devices
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from ipc.link.shm.board import Board
from supervisor.admission.node_devices import device_problems, not_healthy, read_devices
from supervisor.config.resolution.cluster_section import configured_node_ips
from supervisor.config.settings import Settings
from supervisor.control.configuration import Configuration
from supervisor.protocol.events import DevicesChanged, HostAddressesChanged, LoopEvent

NO_ADDRESS: Final = "the host has no address but loopback's: pods have no hostIP, and those in its network no podIP"

log = logging.getLogger(__name__)


def host_ips(settings: Settings) -> tuple[str, ...]:
    """Addresses of this host as pods and the node are told them, the first one first."""
    return chosen_node_ips(configured_node_ips(settings), node_ips())


class HostWatch:
    """Owns the devices as they were found last; the addresses are on the board."""

    def __init__(
        self,
        configuration: Configuration,
        board: Board,
        devices: Devices,
        feed: Callable[[LoopEvent], None],
        node_event: Callable[[EventReason, str], None],
    ) -> None:
        self._configuration = configuration
        self._board = board
        self._devices = devices
        self._feed = feed
        self._node_event = node_event

    @property
    def unhealthy_devices(self) -> dict[str, str]:
        """Numbers of devices that no pod is given, by extended resource."""
        return not_healthy(self._devices)

    def started(self) -> None:
        """Tell of a host without addresses."""
        if not self._board.host_ips:
            self._tell_addresses(())

    def look_at_addresses(self) -> None:
        """Take over the host's addresses, which may be others by now (tryUpdateNodeStatus)."""
        found = host_ips(self._configuration.settings)
        if found != self._board.host_ips:
            self._board.record_host_ips(found)
            self._feed(HostAddressesChanged(found))
            self._tell_addresses(found)

    async def watch_devices(self, changed: Callable[[], None]) -> None:
        """Look again at the devices of the configuration, as often as the node's status is told, for ever: one that
        was plugged in is given out, and one that is gone is not."""
        while True:
            await asyncio.sleep(self._configuration.settings.node_status_update_frequency_s)
            found = await asyncio.to_thread(read_devices, self._configuration.settings)
            if found != self._devices:
                self._take_devices(found)
                changed()

    def _take_devices(self, found: Devices) -> None:
        before, now = set(device_problems(self._devices)), set(device_problems(found))
        self._devices = found
        for problem in sorted(now - before):
            log.warning("a device is not healthy any more: %s", problem)
            self._node_event(event_reasons.DEVICE_NOT_HEALTHY, problem)
        for problem in sorted(before - now):
            log.info("a device is healthy again, which was not: %s", problem)
        self._feed(DevicesChanged(found))

    def _tell_addresses(self, found: tuple[str, ...]) -> None:
        if found:
            self._node_event(event_reasons.NODE_ADDRESSES, f"the host's addresses are {', '.join(found)}")
        else:
            self._node_event(event_reasons.NODE_WITHOUT_ADDRESS, NO_ADDRESS)
