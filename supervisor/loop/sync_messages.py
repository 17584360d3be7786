"""Syncs as they go to the workers, with all that is known of their pods."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.link.messages.pod_worker import Freeze, SyncPod, WorkType
from supervisor.managers.allocation import IN_PROGRESS, AllocationManager
from supervisor.managers.devices import DeviceManager
from supervisor.managers.probe_manager import ProbeManager
from supervisor.persistentvolume.controller import PersistentVolumeController
from supervisor.podcontrol.container_restarts import RequestedRestarts
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_pauses import PodPauses
from supervisor.pods.crash_attribution import CrashAttribution
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.parts import CacheEntry
from supervisor.pods.record import PodRecord
from supervisor.protocol.commands import RestsOn
from supervisor.record.status_manager import StatusManager
from supervisor.status.generate import is_restarting_all


class SyncMessages(msgspec.Struct, frozen=True, eq=False):
    """Reads the owners of what a sync carries."""

    _node: ThisNode
    _observation_requests: ObservationRequests
    _statuses: StatusManager
    _allocations: AllocationManager
    _devices: DeviceManager
    _probes: ProbeManager
    _restarts: RequestedRestarts
    _ended: EndedContainers
    _crashes: CrashAttribution
    _pauses: PodPauses
    _bindings: PersistentVolumeController

    def dispatch(
        self, state: PodRecord, incarnation: int, entry: CacheEntry, objects: ConfigObjects, now: Instant
    ) -> tuple[SyncPod, RestsOn]:
        """The sync of what is pending, which is in flight from now on, and what has to be on disk before it goes."""
        self._crashes.dispatched(state.slot, state.uid, now.mono)
        sync = self._sync_pod(state, incarnation, entry, objects)
        rests_on = self._rests_on(sync)
        return _stop_by_labels(sync) if self._crashes_going_down(state) else sync, rests_on

    def _rests_on(self, sync: SyncPod) -> RestsOn:
        """Versions of files that are on disk before a worker does this. The next agent would undo it, or do it again:
        restart a container for resources that it has, give a claim another volume, leave down a container that was
        stopped to begin anew, or run one again that had ended and was removed."""
        is_resized = self._allocations.condition(sync.uid, IN_PROGRESS) is not None
        return RestsOn(
            allocations=self._allocations.urgent_version if is_resized else 0,
            bindings=self._bindings.version if sync.objects.claims else 0,
            restarts=self._restarts.version if sync.restarts else 0,
            ends=self._ended.version if sync.dead_containers else 0,
        )

    def _sync_pod(self, state: PodRecord, incarnation: int, entry: CacheEntry, objects: ConfigObjects) -> SyncPod:
        lifecycle, is_inline = state.lifecycle, entry.row < 0
        dead_containers = lifecycle.dead_containers
        flight = lifecycle.dispatched(state.slot, incarnation)
        return SyncPod(
            uid=state.uid,
            generation=flight.generation,
            incarnation=flight.incarnation,
            kind=flight.kind,
            pod=state.pod,
            row=entry.row,
            min_observed_at=self._observation_requests.acted_at(state.uid),
            status=msgspec.structs.replace(entry.status, observed_at=entry.observed_at) if is_inline else None,
            grace_period_s=lifecycle.grace_period_s,
            remove=lifecycle.removed,
            dead_containers=dead_containers,
            restarting_all=is_restarting_all(self._statuses.status(state.uid)),
            pull_failures=state.parts.pull_failures,
            probe_results=dict(self._probes.results(state.uid)),
            evicted=self._statuses.eviction(state.uid),
            objects=objects,
            awaits=flight.kind is WorkType.SYNC and state.parts.is_incomplete,
            actuated=dict(self._allocations.actuated(state.uid)),
            devices=self._devices.given(state.uid),
            known_devices=self._devices.known(state.pod),
            unsure_resources=self._allocations.are_stale(state.uid),
            restarts=dict(state.parts.restarts),
            freeze=self._pauses.requested(state) if flight.kind is WorkType.SYNC else Freeze.NONE,
            network_problem=self._node.view.network_problem,
            active_since=self._statuses.active_since(state),
            ended=self._ended.lacked_by(entry.status),
        )

    def _crashes_going_down(self, state: PodRecord) -> bool:
        """A quarantined pod that goes down is tried once as its manifest has it: a removal always comes to its end."""
        return state.lifecycle.phase is not WorkType.SYNC and self._crashes.attributed(state.uid) > 0


def _stop_by_labels(sync: SyncPod) -> SyncPod:
    """As an orphan's, and without a hook: nothing that its manifest says is acted on any more."""
    return msgspec.structs.replace(sync, pod=None, grace_period_s=0, objects=ConfigObjects())
