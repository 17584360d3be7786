"""The node goes down in the simulation: logind as it says so, the state file, and the rules of an orderly end."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.scheduling.priority import SYSTEM_CRITICAL_PRIORITY, pod_priority
from ipc.link.messages.pod_worker import SyncPod, WorkType
from supervisor.config.settings import Settings, ShutdownGraceItem
from supervisor.loop.loop import SyncLoop
from supervisor.managers.node_shutdown import NODE_SHUTDOWN_REASON
from supervisor.podcontrol.pod_kills import MIN_WAIT_S, WAIT_FACTOR
from supervisor.protocol.commands import ShutdownChanged
from supervisor.state.shutdown_state import restore_shutdown, save_shutdown
from tests.sim.runtime import SimPodman
from tests.sim.trace import Trace
from tests.sim.watch import Watch

GRACE_S: Final = {0: 20, 1000: 12, SYSTEM_CRITICAL_PRIORITY: 8}
"""Time of each group, by its least priority."""
PRIORITIES: Final = (0, 0, 0, 500, 1000, 1001)
"""Priorities of the random pods."""
AVAILABLE_S: Final = (3.0, 15.0, 60.0, 60.0)
"""Time that logind gives."""
CONNECTS_S: Final = 2.0
"""Longest time from an agent's start until it knows from logind whether the host goes down."""
TAKES_S: Final = 8.0
"""Within which somebody dies meanwhile, or the host stays up after all."""
KILLED: Final = 0.5
CALLED_OFF: Final = 0.25
REBOOTS: Final = 0.3
"""Parts of the shutdowns of a quiet host."""


def with_shutdown_grace(settings: Settings, directory: Path) -> Settings:
    """``directory``: where the state is kept."""
    classes = tuple(
        ShutdownGraceItem(priority=priority, shutdown_grace_period_seconds=seconds)
        for priority, seconds in GRACE_S.items()
    )
    return msgspec.structs.replace(settings, shutdown_grace_period_by_pod_priority=classes, state_dir=directory)


def group_of(pod: Pod) -> int:
    """Least priority of the pod's group."""
    return max((least for least in GRACE_S if least <= pod_priority(pod)), default=0)


class SimShutdown:
    """Outlives agents. Knows what has ended with the node, and what was there when it began to go down."""

    def __init__(
        self, rng: random.Random, trace: Trace, podman: SimPodman, watch: Watch, clock: Clock, directory: Path
    ) -> None:
        self.rng = rng
        self.available_s: float | None = None
        """Seconds that logind gives while the host goes down; None: it does not."""
        self._trace = trace
        self._podman = podman
        self._watch = watch
        self._clock = clock
        self._directory = directory
        self._least_s = math.inf
        """The least time that was ever given for this shutdown."""
        self.is_under_way = self._is_down = False
        self._known: set[str] = set()
        """UIDs of pods that were there when it began."""
        self._ended: set[str] = set()
        """UIDs of pods that have ended with the node, for whatever agent."""
        self._seen: dict[str, float] = {}
        """Since when the present agent ends those of them, monotonic seconds."""
        self._fresh: set[str] = set()
        """Pods whose end was decided with the event at hand: a sync that went out just before is cancelled."""
        self._began_at: dict[int, float] = {}
        """When the present agent began to end a group, monotonic seconds."""

    def ranked(self, pod: Pod) -> Pod:
        """The pod with a priority, always the same one."""
        priority = PRIORITIES[int(pod.metadata.uid[:8], 16) % len(PRIORITIES)]
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=priority or None))

    # --- the host ---

    def begin(self) -> float:
        """The host goes down; seconds that logind gives."""
        self.available_s = self.rng.choice(AVAILABLE_S)
        self._trace.note(f"the host goes down, {self.available_s:g} s are given")
        return self.available_s

    def reboot(self) -> None:
        """The host comes up again: a drain is over."""
        self.available_s = None
        stored = restore_shutdown(self._directory)
        save_shutdown(self._directory, msgspec.structs.replace(stored, boot_id="another"))
        self._over()

    # --- what the agent does ---

    def agent_begins(self) -> None:
        """Another agent: it may begin anew with the groups that are left."""
        self._seen.clear()
        self._began_at.clear()

    def announced(self, available_s: float | None) -> None:
        """The agent was told by logind."""
        self._least_s = min(self._least_s, available_s or math.inf)

    def changed(self, change: ShutdownChanged, loop: SyncLoop) -> None:
        """The loop is further with it."""
        self._is_down = bool(change.ended_at)
        if change.cause is None:
            self._over()
        elif not self.is_under_way:
            self.is_under_way = True
            self._known = set(loop.pod_table.uids())
        self.look(loop)

    def _over(self) -> None:
        self.is_under_way = self._is_down = False
        self._least_s = math.inf
        for uids in (self._known, self._ended, self._fresh):
            uids.clear()
        self._seen.clear()
        self._began_at.clear()

    def gone(self, uid: str) -> None:
        """Nothing of the pod is left."""
        for uids in (self._known, self._ended, self._fresh):
            uids.discard(uid)
        self._seen.pop(uid, None)

    # --- rules ---

    def check_sync(self, sync: SyncPod) -> None:
        """Nothing starts that has ended with the node, or that came afterwards."""
        uid = sync.uid
        if not self.is_under_way or sync.kind is not WorkType.SYNC:
            return
        if self._is_down or uid in self._ended:
            self._trace.broke(f"{uid[:8]} is synced to run on a node that has gone down")
        elif uid not in self._known and not self._podman.of_pod(uid):
            self._trace.broke(f"{uid[:8]} is admitted while the node goes down")

    def next_event(self) -> None:
        """The agent has carried out everything that was decided so far."""
        self._ended |= self._fresh
        self._fresh.clear()

    def look(self, loop: SyncLoop) -> None:
        """Groups end in order: of those before nothing runs, or their time is over."""
        if not self.is_under_way:
            return
        statuses, table = loop.statuses, loop.pod_table
        came = [
            state.pod
            for state in table
            if state.pod is not None
            and state.uid not in self._seen
            and statuses.failure_reason(state.uid) == NODE_SHUTDOWN_REASON
        ]
        for pod in sorted(came, key=group_of):
            self._ends(pod, loop)

    def _ends(self, pod: Pod, loop: SyncLoop) -> None:
        uid, group, now = pod.metadata.uid, group_of(pod), self._clock.now().mono
        self._seen[uid] = now
        self._fresh.add(uid)
        self._began_at.setdefault(group, now)
        if not self._runs(uid):
            return  # it has ended before, and need not wait
        for state in loop.pod_table:
            other = state.pod
            if other is None or group_of(other) >= group or state.lifecycle.removed or not self._runs(state.uid):
                continue
            if loop.statuses.is_rejected(state.uid):
                continue
            if now < (until := self._until(other)):
                self._trace.broke(f"{uid[:8]} ends with the node before {state.uid[:8]}, which has {until - now:.1f} s")

    def _until(self, pod: Pod) -> float:
        """When the pod's time is over: its group's, and nobody waits for longer than it takes at the most."""
        group = group_of(pod)
        group_s = int(GRACE_S[group] * min(1.0, self._least_s / sum(GRACE_S.values())))
        own_s = max(WAIT_FACTOR * (pod.spec.termination_grace_period_seconds or 0), MIN_WAIT_S)
        began_at = self._began_at.get(group, math.inf)
        return min(began_at + group_s, self._seen.get(pod.metadata.uid, math.inf) + own_s)

    def _runs(self, uid: str) -> bool:
        """As far as the agent can know: not what cannot be read, nor what nobody has waited for."""
        if self._watch.is_made_late(uid) or self._watch.excused(uid):
            return False
        running = [c for c in self._podman.of_pod(uid) if c.state == "running"]
        return bool(running) and not any(c.id in self._podman.unreadable for c in running)
