"""The sync loop's parts, which its handlers share. Each owns its own state."""

from __future__ import annotations

import msgspec

from ipc.api.v1.pod import Pod
from ipc.eviction.signals import NodePressure
from ipc.host.clock import Instant
from ipc.messages import event_reasons
from ipc.messages.cluster import NodeStated
from ipc.messages.node_worker import RuntimeHealth
from ipc.metrics import kubelet as metrics
from ipc.podobjects.cluster_values import ClusterValues
from ipc.podresources.node_resources import NodeResources
from ipc.shm.metric_cells import METERS
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import Rejected
from supervisor.config.settings import Settings
from supervisor.loop.announcer import Announcer
from supervisor.loop.command_buffer import CommandBuffer
from supervisor.loop.container_restarts import RequestedRestarts
from supervisor.loop.incomplete_pods import IncompletePods
from supervisor.loop.pod_kills import PodKills
from supervisor.loop.pod_pauses import PodPauses
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.devices import DeviceManager
from supervisor.managers.image_gc import ImageGc
from supervisor.managers.image_pulls import ImagePulls, pull_limits
from supervisor.managers.object_store import ObjectStore
from supervisor.managers.probe_manager import ProbeManager
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.held_up import HeldUpPods
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.poison import PoisonPods
from supervisor.pods.record import PodRecord
from supervisor.pods.sharding import worker_limits
from supervisor.pods.table import PodTable
from supervisor.pods.work_queue import WorkQueue
from supervisor.processes.worker_pool import fed_slots, longest_hang_s
from supervisor.record.pod_texts import PodTexts
from supervisor.record.status_manager import StatusManager


class LoopParts:
    """Made once; only the settings are ever replaced, and what a cluster says of the node."""

    def __init__(self, settings: Settings, pod_rows: int, host_ips: tuple[str, ...], node: NodeResources) -> None:
        self.settings = settings
        self.node = node
        self.usage = NodeUsage()
        self.out = CommandBuffer(fed_slots(is_member=settings.cluster.is_configured))
        self.pod_table = PodTable(worker_limits(settings), pod_rows, self.out.is_up)
        self.poison_pods = PoisonPods(longest_hang_s(settings.workers.heartbeat_timeout_s))
        self.ended = EndedContainers()
        self.observation_requests = ObservationRequests(self.ended.merged)
        self.cache = self.observation_requests.cache
        self.queue = WorkQueue()
        self.waits = HeldUpPods()
        self.objects = ObjectStore()
        self.cluster_values: dict[str, ClusterValues] = {}
        """Values that a cluster gives to pods beside objects, by UID: `ObjectUpdates` writes them."""
        self.incomplete = IncompletePods()
        self.pulls = ImagePulls(pull_limits(settings))
        self.image_gc = ImageGc()
        self.probes = ProbeManager()
        self.texts = PodTexts(self.pod_table, self.objects)
        self.allocations = AllocationManager()
        self.devices = DeviceManager(node.devices, self.allocations, self.cache.statuses)
        self.restarts = RequestedRestarts()
        self.statuses = StatusManager(
            settings,
            host_ips,
            self.texts,
            self.pod_table,
            self.allocations,
            node.controllers,
            requested_restarts=self.restarts.of_pod,
        )
        self.announcer = Announcer(self.statuses, self.probes, self.cache, self.out)
        self.pauses = PodPauses(self.pod_table, self.cache, self.statuses, self.announcer, self.out)
        self.node_pressures: tuple[NodePressure, ...] = ()
        """Conditions of pressure that the node has: its manager sets them, admission asks."""
        self.network_problem = ""
        """Why no pod can get a network of its own (pkg/kubelet/runtime.go, networkErrors)."""
        self.kills = PodKills(self.pod_table, self.statuses, self.announcer, self.out)

    def settings_changed(self, settings: Settings) -> None:
        """Replace the settings, and the limits that follow from them."""
        self.settings = settings
        self.pod_table.limit_workers(worker_limits(settings))
        self.statuses.settings_changed(settings)

    def node_stated(self, stated: NodeStated) -> None:
        """The cluster has told of its Node: pods that come are held against that."""
        no_execute = tuple(taint for taint in stated.taints if taint.effect == "NoExecute")
        self.node = msgspec.structs.replace(self.node, labels=stated.labels, no_execute=no_execute)

    def runtime_health_changed(self, health: RuntimeHealth, now: Instant) -> None:
        """Syncs that failed for want of a network are tried again when their pause is over."""
        self.network_problem = health.network_problem

    def pressures_changed(self, pressures: tuple[NodePressure, ...]) -> None:
        """Other conditions of pressure hold on the node."""
        self.node_pressures = pressures

    def begin(self, uid: str, name: str, pod: Pod | None, source: str, acted_at: float) -> PodRecord:
        """Track a pod from now on. ``acted_at``: no view observed before that (monotonic) may be acted on."""
        state = self.pod_table.begin(uid, name, pod, source)
        self.observation_requests.track(uid, acted_at)
        self.probes.recall(state, self.cache.get(uid))
        self.pod_table.touch((uid,))
        self.out.track(state)
        return state

    def reject(self, state: PodRecord, why: Rejected, now: Instant) -> None:
        """The pod was not admitted: it has failed (rejectPod and recordAdmissionRejection, pkg/kubelet/kubelet.go)."""
        known = why.reason if why.reason in metrics.ADMISSION_REASONS else "Other"
        METERS.counter(metrics.ADMISSION_REJECTIONS, known).inc()
        self.statuses.reject(state.uid, why.reason, why.message)
        state.lifecycle.terminate()
        self.announcer.pod_event(state, event_reasons.rejected(why.reason), why.message, now)

    def resync(self, state: PodRecord) -> None:
        """Have the pod synced though nothing of it has changed (pkg/kubelet/kubelet.go, syncCh)."""
        if not state.lifecycle.pending:
            self.observation_requests.accept_older(state.uid)
        state.lifecycle.resync()
        self.pod_table.touch((state.uid,))
