"""Changes of what holds for every pod: settings, addresses and devices of the node."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from supervisor.managers.devices import DeviceManager
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.sharding import worker_limits
from supervisor.pods.table import PodTable
from supervisor.protocol.events import DevicesChanged, HostAddressesChanged, SettingsChanged
from supervisor.record.status_manager import StatusManager


class NodeUpdates(msgspec.Struct, frozen=True, eq=False):
    """Handlers without a state of their own."""

    _node: ThisNode
    _pod_table: PodTable
    _devices: DeviceManager
    _statuses: StatusManager
    _reporter: PodReporter

    def on_settings_changed(self, change: SettingsChanged, now: Instant) -> None:
        self._node.settings_changed(change.settings)
        self._pod_table.limit_workers(worker_limits(change.settings))
        self._statuses.settings_changed(change.settings)
        for state in self._pod_table:
            state.lifecycle.unsettle()

    def on_host_addresses_changed(self, change: HostAddressesChanged, now: Instant) -> None:
        self._statuses.host_addresses_changed(change.ips)
        for state in self._pod_table:
            state.lifecycle.unsettle()
            self._reporter.report(state, now)

    def on_devices_changed(self, change: DevicesChanged, now: Instant) -> None:
        self._pod_table.touch(self._devices.recount(change.devices))
