"""Pods as the sync loop begins to track them, replaces them and syncs them anew (pkg/kubelet/pod_workers.go)."""

from __future__ import annotations

from ipc.api.v1.pod import Pod
from supervisor.loop.command_buffer import CommandBuffer
from supervisor.managers.probe_manager import ProbeManager
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable


class PodTracking:
    """Changes of the pod table that others have to hear of."""

    def __init__(
        self, pod_table: PodTable, observation_requests: ObservationRequests, probes: ProbeManager, out: CommandBuffer
    ) -> None:
        self._pod_table = pod_table
        self._observation_requests = observation_requests
        self._probes = probes
        self._out = out

    def begin(self, uid: str, name: str, pod: Pod | None, source: str, acted_at: float) -> PodRecord:
        """Track a pod from now on. ``acted_at``: no view observed before that (monotonic) may be acted on."""
        state = self._pod_table.begin(uid, name, pod, source)
        self._observation_requests.track(uid, acted_at)
        self._probes.recall(state, self._observation_requests.cache.get(uid))
        self._pod_table.touch((uid,))
        self._out.track(state)
        return state

    def replace(self, state: PodRecord, pod: Pod) -> None:
        """A newer desired pod, or other resources for it, that is synced."""
        self._pod_table.update(state, pod)
        self._probes.recall(state, self._observation_requests.cache.get(state.uid))
        self._pod_table.touch((state.uid,))

    def resync(self, state: PodRecord) -> None:
        """Have the pod synced though nothing of it has changed (pkg/kubelet/kubelet.go, syncCh)."""
        if not state.lifecycle.pending:
            self._observation_requests.accept_older(state.uid)
        state.lifecycle.resync()
        self._pod_table.touch((state.uid,))
