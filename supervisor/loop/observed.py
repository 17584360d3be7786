"""Observations of pods, as the node worker makes them (pkg/kubelet/pleg): a changed pod is synced."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages import event_reasons
from ipc.link.messages.node_worker import Observation, ObservationFailed
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.devices import DeviceManager
from supervisor.managers.probe_manager import ProbeManager
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.container_restarts import RequestedRestarts
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.podcontrol.removals import PodRemovals
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.table import PodTable
from supervisor.protocol.events import Observations
from supervisor.record.pod_texts import PodTexts
from supervisor.record.status_manager import pod_event


class Observed(msgspec.Struct, frozen=True, eq=False):
    """Tells the owners of pods' state what was seen of each."""

    _pod_table: PodTable
    _observation_requests: ObservationRequests
    _texts: PodTexts
    _ended: EndedContainers
    _probes: ProbeManager
    _allocations: AllocationManager
    _restarts: RequestedRestarts
    _devices: DeviceManager
    _removals: PodRemovals
    _reporter: PodReporter
    _out: CommandBuffer

    def on_observations(self, views: Observations, now: Instant) -> None:
        """PLEG: a changed pod is synced (HandlePodSyncs); an unknown one is an orphan, if the sources are known."""
        for observation in (*views.observations, *self._absent(views)):
            self._take_view(observation, now)
        if views.relisted_at:
            self._pod_table.touch(self._observation_requests.relisted(views.relisted_at, views.unseen))
            if not views.unseen:
                self._probes.relisted(self._observation_requests.cache.statuses().values())
            self._removals.carry_out(now)

    def _absent(self, views: Observations) -> list[Observation]:
        """The node worker speaks of a pod without a row, and of an unknown one, only while something of it exists."""
        if not views.relisted_at:
            return []
        cache = self._observation_requests.cache
        untracked = {*self._pod_table.without_row(), *cache.untracked()} - set(views.unseen)
        return self._observation_requests.absent(views.relisted_at, views.observations, sorted(untracked))

    def _take_view(self, observation: Observation, now: Instant) -> None:
        state = self._pod_table.get(observation.uid)
        changed = self._observation_requests.take(observation)
        if state is None:
            return
        self._pod_table.touch((state.uid,))
        if changed is not None:
            is_newer = changed.observed_at > self._observation_requests.acted_at(state.uid)
            state.lifecycle.observed(changed, is_newer=is_newer)
            if state.pod is not None:
                fit = self._texts.readable(state, changed)
                if state.lifecycle.removed:
                    self._ended.ended(fit)
                else:
                    self._ended.observed(state.pod, fit, now.wall)
            self._observation_requests.accept_older(state.uid)  # a noted end has the date of the view before it
            self._probes.recall(state, changed)
            self._allocations.drop_gone(state.uid, changed)
            self._restarts.observed(state.uid, self._observation_requests.cache.get(state.uid))
            self._devices.observed(state.pod, changed, self._pod_of)
            self._reporter.report(state, now, observed_at=changed.observed_at)
        elif self._reporter.awaits_view(state):
            self._reporter.report(state, now)

    def _pod_of(self, uid: str) -> Pod | None:
        state = self._pod_table.get(uid)
        return state.pod if state is not None else None

    def on_observation_failed(self, failed: ObservationFailed, now: Instant) -> None:
        """A pod that cannot be observed gets no work until it can (pkg/kubelet/pod_workers.go, podWorkerLoop)."""
        state = self._pod_table.get(failed.uid)
        if state is not None and state.pod is not None:
            message = f"error determining status: {failed.message}"
            self._reporter.event(pod_event(state, event_reasons.FAILED_SYNC, message), now)

    def ask(self, now: Instant) -> None:
        """Ask the node worker for the observations that are needed since the last time."""
        if request := self._observation_requests.take_request():
            self._out.to_node(request)
