"""State that an earlier agent has left."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.probe_manager import ProbeManager
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.pods.ended_containers import EndedContainers
from supervisor.protocol.events import EndsRestored, EventsRestored, ProbeResultsRestored, ResourcesRestored
from supervisor.record.status_manager import StatusManager


class Restored(msgspec.Struct, frozen=True, eq=False):
    """Gives it to its owners. Evictions, bindings and requested restarts go to their own handlers."""

    _statuses: StatusManager
    _ended: EndedContainers
    _probes: ProbeManager
    _allocations: AllocationManager
    _out: CommandBuffer

    def on_events(self, restored: EventsRestored, now: Instant) -> None:
        self._out.to_api(self._statuses.restore_events(restored.events, now))

    def on_ends(self, restored: EndsRestored, now: Instant) -> None:
        """Before anything is observed."""
        self._ended.restored(restored.pods, restored.alive_at)

    def on_probe_results(self, restored: ProbeResultsRestored, now: Instant) -> None:
        self._probes.restore(restored.probe_results)

    def on_resources(self, restored: ResourcesRestored, now: Instant) -> None:
        self._allocations.restore(restored.pods)
