"""A pod in whose steps its worker dies or hangs: when it is synced, stopped, removed or probed, as its seed has it."""

from __future__ import annotations

import random
from typing import Final

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.kubecontainer.probe_results import ProbeType
from ipc.link.messages.pod_worker import SyncPod, WorkType
from ipc.link.shm.board import pod_digest
from supervisor.pods.crash_attribution import CRASH_THRESHOLD
from supervisor.processes.worker_pool import QUARANTINE_SLOT
from tests.sim.children import Child
from tests.sim.pods import PRESENT
from tests.sim.probes import HEALTHY
from tests.sim.runtime import SimPodman, uid_of
from tests.sim.trace import Trace
from workers.prober.manager import Attempt
from workers.prober.outcome import ProbeOutcome, ProbeTarget

UID: Final = "ffffffff-poison"
PROBED: Final = "Probed"
PLACES: Final = (*WorkType, PROBED)
HANGS: Final = 0.3
"""Part of the strikes."""


class Poison:
    """Strikes whenever the manifest of that pod is acted on in one of its places; counts where."""

    def __init__(self, rng: random.Random, trace: Trace, podman: SimPodman) -> None:
        self.places = frozenset(rng.sample(PLACES, rng.choice((1, 1, 2, len(PLACES)))))
        self._rng = rng
        self._trace = trace
        self._podman = podman
        self._struck: list[Child] = []
        """As long as the agent knows of the pod."""

    def pod(self) -> Pod:
        """A pod for which work is done soon, and again."""
        probe = Probe(exec=ExecAction(command=(ProbeType.READINESS.value, HEALTHY)), period_seconds=3)
        main = Container(name="one", image=PRESENT, args=("fail",), readiness_probe=probe)
        spec = PodSpec(containers=(main,), termination_grace_period_seconds=5)
        return Pod(metadata=ObjectMeta(name="poison", namespace="default", uid=UID), spec=spec)

    def begins_anew(self) -> None:
        """The agent knows nothing of what was before: it is another one, or has forgotten the pod."""
        self._struck.clear()

    def begins(self, child: Child, request: SyncPod) -> None:
        """A worker is about to carry out a sync."""
        if request.uid == UID and request.pod is not None and request.kind in self.places:
            self._strike(child, request.kind.value)

    def attempts(self, child: Child, attempt: Attempt) -> Attempt:
        """Attempts of one worker."""

        async def poisoned(probe: Probe, target: ProbeTarget) -> ProbeOutcome:
            await child.turn()
            container = self._podman.containers.get(target.container_id)
            if PROBED in self.places and container is not None and uid_of(container) == UID:
                self._strike(child, PROBED)
                await child.turn()
            return await attempt(probe, target)

        return poisoned

    def _strike(self, child: Child, place: str) -> None:
        """Strike a worker, of which it is known that it hangs when it is killed."""
        felt = [other for other in self._struck if other.slot != QUARANTINE_SLOT and not other.alive]
        self._trace.note(f"{child.name} is struck: {place}")
        child.strike(pod_digest(UID), hangs=self._rng.random() < HANGS)
        if len(felt) >= CRASH_THRESHOLD and child.slot != QUARANTINE_SLOT:
            self._trace.broke(f"the poison pod has struck {len(felt) + 1} workers that others need")
        self._struck.append(child)
