"""Tracking of pods: the sync loop begins, replaces, re-syncs and forgets them (pkg/kubelet/pod_workers.go)."""

from __future__ import annotations

from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.node_worker import Untrack
from supervisor.admission.node_usage import NodeUsage
from supervisor.managers.probe_manager import ProbeManager
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_pauses import PodPauses
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.record.status_manager import StatusManager


class PodTracking:
    """Changes of the pod table that other owners must learn of."""

    def __init__(
        self,
        pod_table: PodTable,
        observation_requests: ObservationRequests,
        probes: ProbeManager,
        statuses: StatusManager,
        pauses: PodPauses,
        out: CommandBuffer,
        usage: NodeUsage,
    ) -> None:
        self._pod_table = pod_table
        self._observation_requests = observation_requests
        self._probes = probes
        self._statuses = statuses
        self._pauses = pauses
        self._out = out
        self._usage = usage

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

    def forget(self, state: PodRecord) -> None:
        """Nothing of the pod is left."""
        self._pauses.ended(state)
        self._out.send_all(self._probes.leave(state))
        self._pod_table.end(state)
        self._usage.drop(state.uid)
        self._out.to_node(Untrack(uid=state.uid))
        self._out.to_api(self._statuses.gone(state.uid))
