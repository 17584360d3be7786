"""Next step of a pod, by all that holds it up."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from supervisor.desired.pod_admission import PodAdmission
from supervisor.managers.devices import DeviceManager
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_pauses import PodPauses
from supervisor.pods.crash_attribution import CrashAttribution
from supervisor.pods.next_step import OF_OBJECTS, Dispatch, Standing, Wait, next_step
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.parts import CacheEntry
from supervisor.pods.record import PodRecord


class PodSteps(msgspec.Struct, frozen=True, eq=False):
    """Asks all that may hold up a pod. Changes nothing."""

    _observation_requests: ObservationRequests
    _crashes: CrashAttribution
    _devices: DeviceManager
    _pauses: PodPauses
    _admission: PodAdmission
    _out: CommandBuffer

    def next_step(self, state: PodRecord, now: Instant) -> Dispatch | Wait:
        """Next step of that pod."""
        standing = self.standing(state, self._observation_requests.known_newer(state.uid), now)
        if state.wait is not None and state.wait.reason in OF_OBJECTS:
            standing = msgspec.structs.replace(standing, objects=state.wait.reason)
        return next_step(standing)

    def standing(self, state: PodRecord, entry: CacheEntry | None, now: Instant) -> Standing:
        """All that holds up the pod, but for what it refers to. ``entry``: a view that is new enough to act on."""
        uid, lifecycle = state.uid, state.lifecycle
        return Standing(
            phase=lifecycle.phase,
            idle=lifecycle.idle,
            has_fresh_view=entry is not None,
            lacks_admission=self._admission.is_waiting(state),
            lacks_devices=self._devices.is_waiting(uid),
            is_paused=self._pauses.holds_back(state),
            has_worker=self._out.is_up(state.slot),
            isolated_until=self._crashes.isolated_until(uid, now.mono),
            awaits_solo_sync=self._crashes.awaits_solo_sync(state.slot, uid),
            next_sync_at=state.parts.next_sync_at,
        )
