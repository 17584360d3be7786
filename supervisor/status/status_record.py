"""What is kept of one pod for its status: the causes that nothing else keeps, and the status before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.k8s.podresources.allocation import PodResourceInfo
from ipc.link.messages.pod_worker import SyncDone, SyncResult, WorkType
from supervisor.state.resources_checkpoint import PodResources
from supervisor.status.reason_cache import Reasons, of_containers, with_results


class StatusBasis(msgspec.Struct, frozen=True):
    """Causes of a status, but for the status before it and, when the pod has a deadline, the time."""

    pod: Pod
    observed: RuntimePodStatus
    """Without its date, of which a status says nothing: 1.0, or 0.0 of a pod that nobody has observed."""
    reasons: Mapping[str, SyncResult]
    probe_results: Mapping[str, ProbeResults]
    host_ips: tuple[str, ...]
    phase: WorkType
    was_observed_before: bool
    rejection: PodFailure | None
    kill: PodFailure | None
    resources: PodResources
    restarts: frozenset[str]
    """Ids of containers that are to begin anew because somebody wants it."""


class ReportContext(msgspec.Struct, frozen=True):
    """Parts of a report that do not follow from the basis of its status."""

    pod: Pod
    """The pod as its source states it."""
    source: str
    slot: int
    deletion_wall: float | None
    is_observed: bool
    summary: str
    sandbox: SandboxStatus | None
    allocated: PodResourceInfo | None
    """Other resources than its source states."""
    waits_for: str


class StatusRecord(msgspec.Struct, frozen=True, eq=False):
    """Status, reported status and sync summary of one pod, and what they follow from."""

    status: PodStatus | None = None
    """The one that is acted on."""
    reported: PodStatus | None = None
    """The one that is reported: a terminal phase comes later there."""
    was_observed: bool = False
    """``status`` was generated from an observation once."""
    is_restored: bool = False
    """The pod is known from the checkpoint: it may run, and nobody has looked yet."""
    summary: str = ""
    """Summary of the pod's last sync with any effect."""
    rejection: PodFailure | None = None
    """Why it was not admitted (pkg/kubelet/kubelet.go, rejectPod)."""
    kill: PodFailure | None = None
    """Why the agent ends it."""
    stays_down: bool = False
    """The pod was evicted: later agents do not run it either."""
    reasons: Reasons = {}
    """Why containers did not start."""
    context: ReportContext | None = None
    """With what ``reported`` was reported last."""
    settled: StatusBasis | None = None
    """From which ``status`` follows again and again."""
    failed: tuple[SyncResult, ...] = ()
    """Failed actions of the pod's last sync."""
    error: str = ""
    """Why its last sync failed as a whole."""
    clock_offset_s: float | None = None
    """From the monotonic to the wall clock, when the pod's activity was measured first."""

    def adopted(self, pod: Pod) -> StatusRecord:
        """Begin with the status that a cluster has of the pod, whose node told it before: an agent before this one."""
        if self.status is not None or pod.status.start_time is None:
            return self
        return msgspec.structs.replace(self, status=pod.status, reported=pod.status, was_observed=True)

    def is_news(self, done: SyncDone) -> bool:
        """Did it do anything, or fail otherwise than the last time?"""
        return done.changed or done.error != self.error or done.failed != self.failed

    def sync_ended(self, done: SyncDone, pod: Pod | None) -> StatusRecord:
        """With the results and the summary of that sync."""
        reasons = with_results(self.reasons, done.results)
        if pod is not None:
            reasons = of_containers(reasons, {found.container.name for found in every_container(pod.spec)})
        has_effect = done.changed or done.error or done.failed
        return msgspec.structs.replace(
            self,
            reasons=reasons,
            failed=done.failed,
            error=done.error,
            summary=(done.summary or done.message) if has_effect else self.summary,
        )

    def is_settled(self, basis: StatusBasis) -> bool:
        """Whether the status that follows from that is the one that there is, at any time."""
        return basis.pod.spec.active_deadline_seconds is None and basis == self.settled

    def generated(self, basis: StatusBasis, status: PodStatus, reported: PodStatus) -> StatusRecord:
        """With the status that follows from that, and the one that is to be reported."""
        was_observed = self.was_observed or basis.observed.observed_at > 0.0
        if (status, reported) == (self.status, self.reported):  # those stay that the feed has, too
            return msgspec.structs.replace(self, settled=basis, was_observed=was_observed)
        return msgspec.structs.replace(
            self, settled=None, status=status, reported=reported, context=None, was_observed=was_observed
        )

    def with_clock(self, now: Instant) -> StatusRecord:
        """Measures the pod's activity from now on, unless it does."""
        if self.clock_offset_s is not None:
            return self
        return msgspec.structs.replace(self, clock_offset_s=now.wall - now.mono)

    def steady_wall(self, now: Instant) -> float:
        """The wall clock, but not what it was set forward since the pod is known here: that was no time to be active
        in. Upstream's is the clock as it is."""
        return now.wall if self.clock_offset_s is None else min(now.wall, now.mono + self.clock_offset_s)


NO_STATUS: Final = StatusRecord()
