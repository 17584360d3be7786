"""Phase machine of one pod: sync -> terminating -> terminated (pkg/kubelet/pod_workers.go, podSyncStatus).

Without I/O. It says which work comes next, and keeps the rules that make the answer safe: at most one sync in flight,
the latest desired pod wins, a kill is never overwritten, a grace period only shrinks. What else is known of a pod has
its own owner: status and sync summary the status manager, probe results the probe manager, the date of the last act
the observation requests.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus, SandboxState
from ipc.link.messages.pod_worker import SyncDone, WorkType
from ipc.link.messages.wait_reasons import WaitReason

MINIMUM_GRACE_PERIOD_S: Final = 1
"""PW-10: a grace period of zero means this one."""
MAX_RESTS: Final = 4
"""So many periodic syncs in a row may be passed over: the one after them is made, whatever is known. So an event that
was lost delays, and breaks nothing."""


class InFlight(msgspec.Struct, frozen=True):
    """A SyncPod that was sent and not yet answered."""

    slot: int
    incarnation: int
    generation: int
    kind: WorkType
    remove: bool
    dead_containers: tuple[str, ...] = ()
    """Ids of those that it was to remove."""


def effective_grace_period(pod: Pod, override_s: int | None, current_s: int | None) -> int:
    """Seconds that the pod's containers get to stop (pkg/kubelet/pod_workers.go, calculateEffectiveGracePeriod).

    The smallest of what was asked for so far wins, zero included; the spec's own counts only if nothing was asked
    for; never below one second.
    """
    asked = [s for s in (current_s, pod.metadata.deletion_grace_period_seconds, override_s) if s is not None]
    return max(min(asked, default=pod.spec.termination_grace_period_seconds or 0), MINIMUM_GRACE_PERIOD_S)


class PodLifecycle:
    """Phase, pending work and work in flight of one pod, from its first sync to its removal."""

    def __init__(self, pod: Pod | None, head_start: int = 0) -> None:
        """``head_start``: so many fewer periodic syncs are passed over before the first one that is made."""
        self.pod = pod
        """The desired pod that the next sync acts on; None for an orphan."""
        self.phase = WorkType.SYNC
        self.pending = True
        """A sync is due."""
        self.in_flight: InFlight | None = None
        self.deletion_wall: float | None = None
        """When the pod was removed, in epoch seconds; None while it is wanted."""
        self.grace_period_s: int | None = None
        """Effective grace period of its termination."""
        self.finished = False
        """Nothing is left to do, unless something of the pod runs again."""
        self.dead_containers: tuple[str, ...] = ()
        """Ids of dead containers that the next sync removes, whatever else it does; a finished pod gets a sync for them
        alone."""
        self._cleaned = False
        """TERMINATED was carried out as the pod is wanted now; a fresh view ends it."""
        self._has_made = False
        """The last sync has changed something, nothing of it has failed, and it was not observed yet."""
        self.rested = 0
        """How many periodic syncs in a row were passed over, and the head start."""
        self._head_start = head_start
        self._is_round_over = False
        """The next sync is made because enough were passed over."""
        self._found_nothing = False
        """The last sync has found nothing to do, or what it has made was observed and is all that is wanted."""
        self._generation = 0

    # --- what is wanted of it ------------------------------------------------------------------------------------

    @property
    def removed(self) -> bool:
        """The pod is no longer wanted: nothing of it may stay."""
        return self.deletion_wall is not None

    @property
    def active(self) -> bool:
        """Whether the pod runs or may run (pkg/kubelet/kubelet_pods.go, filterOutInactivePods)."""
        return self.pod is not None and not self.finished and not self.removed

    def update(self, pod: Pod) -> None:
        """A newer desired pod. Once it goes down, only that matters."""
        self.pod = pod
        self.sync_soon()

    def sync_soon(self) -> None:
        """A sync is due, unless the pod goes down already."""
        self.pending = self.pending or self.phase is WorkType.SYNC

    def resync(self) -> None:
        """A sync is due, whatever phase the pod is in."""
        self.pending = True

    def collect(self, dead_containers: tuple[str, ...]) -> None:
        """Dead containers of the pod are too many on the node (pkg/kubelet/kuberuntime/kuberuntime_gc.go)."""
        self.dead_containers = dead_containers
        self.pending = True

    def terminate(self, grace_override_s: int | None = None) -> bool:
        """Go down, or go down sooner. True when the sync in flight is in the way."""
        if self.phase is WorkType.TERMINATED:
            return False
        before = self.grace_period_s
        self.grace_period_s = self._effective_grace_period(grace_override_s)
        shortened = self.grace_period_s is not None and (before is None or self.grace_period_s < before)
        first = self.phase is WorkType.SYNC
        self.phase = WorkType.TERMINATING
        self.pending = self.pending or first or shortened
        return self.in_flight is not None and (first or shortened)

    def remove(self, grace_override_s: int | None, wall: float) -> bool:
        """Go down and leave nothing behind. True when the sync in flight is in the way."""
        self._cleaned = self._cleaned and self.removed
        if self.deletion_wall is None:
            self.deletion_wall = wall
        if self.phase is WorkType.TERMINATED:
            self.finished = False
            self.pending = True
            return False
        return self.terminate(grace_override_s)

    def _effective_grace_period(self, override_s: int | None) -> int | None:
        """An orphan has what its labels say until somebody asks for less."""
        if self.pod is not None:
            return effective_grace_period(self.pod, override_s, self.grace_period_s)
        asked = [s for s in (self.grace_period_s, override_s) if s is not None]
        return max(min(asked), MINIMUM_GRACE_PERIOD_S) if asked else None

    # --- what was observed of it ---------------------------------------------------------------------------------

    def observed(self, view: RuntimePodStatus, *, is_newer: bool) -> None:
        """Note a change of the pod's view (isSyncPodWorthy). A pod that was down for good and runs again is no longer
        finished. ``is_newer``: it was observed after the last act."""
        self.finished = self.finished and not view.is_running()
        is_own_work = is_newer and self._is_own_work(view)
        self._has_made = self._has_made and not is_newer
        self._found_nothing = self._found_nothing or is_own_work
        self.pending = self.pending or not (self.finished or is_own_work)

    def _is_own_work(self, view: RuntimePodStatus) -> bool:
        """Whether the view shows what the last sync has made, and that this is all that is wanted: a sync would find
        nothing to do. Upstream makes it all the same; while many pods start, Podman has better use for the CPU."""
        return self._has_made and self.in_flight is None and self.has_all(view)

    def has_all(self, view: RuntimePodStatus) -> bool:
        """Whether the view shows all that is wanted of the pod, and nothing else: its sandbox and its containers, which
        run. Not of a pod with init containers."""
        if self.pod is None or self.phase is not WorkType.SYNC:
            return False
        spec = self.pod.spec
        if spec.init_containers or spec.ephemeral_containers or len(view.containers) != len(spec.containers):
            return False
        running = {container.name for container in view.containers if container.state is ContainerState.RUNNING}
        is_ready = len(view.sandboxes) == 1 and view.sandboxes[0].state is SandboxState.READY
        return is_ready and running == {container.name for container in spec.containers}

    def settle(self, view: RuntimePodStatus) -> None:
        """Decide the phase of a pod that goes down by a fresh view: it still runs (or again), it is down, it is
        finished. The sandbox of a pod that is not wanted any more ends with its removal."""
        if self.phase is WorkType.SYNC:
            return
        runs = view.has_running_containers() if self.removed else view.is_running()
        self.phase = WorkType.TERMINATING if runs else WorkType.TERMINATED
        self._cleaned = self._cleaned and self.phase is WorkType.TERMINATED
        self.finished = self._cleaned and (view.is_empty() or not self.removed)

    # --- the sync that comes next, and the one in flight ---------------------------------------------------------

    @property
    def idle(self) -> WaitReason | None:
        """One of `IDLE`, for which no sync of the pod is due; None where one is."""
        if self.in_flight is not None:
            return WaitReason.SYNC
        if self.finished and (self.removed or not self.dead_containers):
            return WaitReason.FINISHED
        return None if self.pending else WaitReason.NEXT_SYNC

    @property
    def is_settled(self) -> bool:
        """Whether nothing has happened to the pod since it was found to need nothing."""
        return self._found_nothing and not self.pending and self.in_flight is None

    def rest(self) -> None:
        """A periodic sync was passed over."""
        self.rested += 1

    def wake(self) -> None:
        """A periodic sync is made, and not passed over."""
        self._is_round_over = self.rested >= MAX_RESTS

    def unsettle(self) -> None:
        """The next periodic sync is made, for something beside the pod has changed."""
        self._found_nothing = False

    @property
    def can_move(self) -> bool:
        """Nothing of it is in its worker: no sync, and no preStop hook that a stop begun anew would find."""
        return self.in_flight is None and self.phase is not WorkType.TERMINATING

    def dispatched(self, slot: int, incarnation: int) -> InFlight:
        """A SyncPod goes out."""
        assert self.in_flight is None, "two syncs of one pod"
        self._generation += 1
        self._has_made = self._found_nothing = False
        self.rested = 0 if self._is_round_over else self._head_start
        self._is_round_over = False
        self.pending = False
        dead, self.dead_containers = self.dead_containers, ()
        self.in_flight = InFlight(slot, incarnation, self._generation, self.phase, self.removed, dead)
        return self.in_flight

    def answered_by(self, done: SyncDone) -> bool:
        """Whether a result answers the sync in flight. A stale generation or incarnation is not."""
        flight = self.in_flight
        return flight is not None and (done.generation, done.incarnation) == (flight.generation, flight.incarnation)

    def done(self, done: SyncDone) -> InFlight:
        """The sync ended, somehow; which one. When it did what its phase is for, a fresh view says what comes next
        (pkg/kubelet/pod_workers.go, completeSync, completeTerminating, completeTerminated)."""
        flight, self.in_flight = self.in_flight, None
        assert flight is not None
        has_failed = done.error or done.cancelled or any(result.error for result in done.results)
        if done.cancelled:
            self._collect_again(flight)
        self._has_made = done.changed and not has_failed
        self._found_nothing = not done.changed and not has_failed and flight.kind is WorkType.SYNC
        if not done.error and not done.cancelled and flight.kind is self.phase:
            self._cleaned = flight.kind is WorkType.TERMINATED and flight.remove == self.removed
            self.pending = self.pending or flight.kind is not WorkType.SYNC
        return flight

    def lost(self) -> None:
        """Note that the pod's worker died and was reaped: the effect of its sync is unknown until the pod is
        observed."""
        flight, self.in_flight = self.in_flight, None
        self.pending = True
        if flight is not None:
            self._collect_again(flight)

    def _collect_again(self, flight: InFlight) -> None:
        """Dead containers that a sync may have left are the next one's: an eviction waits for their removal."""
        self.dead_containers = tuple(dict.fromkeys((*flight.dead_containers, *self.dead_containers)))
