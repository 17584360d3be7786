"""The promises about probes. Told of every attempt, and of what is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipc.k8s.api.pod_containers import ContainerKind, every_container
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.status import ContainerStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults, ProbeType, probes_of
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from ipc.link.messages.api_server import PodChanged
from tests.sim.runtime import Caller
from tests.sim.trace import Trace
from workers.prober.outcome import Answer

Asked = tuple[str, ProbeType]
"""Container id, and which probe of it."""


class ProbeWatch:
    """Counts for itself what every container has answered."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._under_way: dict[Asked, Caller] = {}
        self._runs: dict[Asked, tuple[Answer, int]] = {}
        """The newest answer, and how often in a row it came."""
        self._earned: set[tuple[Asked, ProbeResult]] = set()
        """Results whose thresholds were reached at any time."""
        self._goes_down: set[str] = set()
        """Pods whose startup counts as a success."""
        self._started: set[str] = set()
        """Containers that have started: an edit may give them a startup probe later."""

    def goes_down(self, uid: str) -> None:
        self._goes_down.add(uid)

    def may_have_started(self, ids: Iterable[str]) -> None:
        self._started.update(ids)

    # --- attempts ---

    def begins(self, caller: Caller, id: str, kind: ProbeType) -> None:
        other = self._under_way.get((id, kind))
        if other is not None:
            self._trace.broke(f"{kind.value} of {id[:12]} is probed by {caller.name} beside {other.name}")
        self._under_way[id, kind] = caller

    def is_over(self, caller: Caller, id: str, kind: ProbeType) -> None:
        """Also of one that was broken off."""
        if self._under_way.get((id, kind)) is caller:
            del self._under_way[id, kind]

    def answered(self, caller: Caller, id: str, container: Container, kind: ProbeType, answer: Answer) -> None:
        self._trace.note(f"{caller.name}: {kind.value} of {container.name} {id[:12]}: {answer.value}")
        before, run = self._runs.get((id, kind), (answer, 0))
        run = run + 1 if before is answer else 1
        self._runs[id, kind] = answer, run
        probe = probes_of(container)[kind]
        if answer is Answer.FAILURE and run >= probe.failure_threshold:
            self._earned.add(((id, kind), ProbeResult.FAILURE))
        if answer is not Answer.FAILURE and run >= probe.success_threshold:
            self._earned.add(((id, kind), ProbeResult.SUCCESS))

    def has_earned(self, id: str, kind: ProbeType, result: ProbeResult) -> bool:
        """So many answers of that kind came in a row as the threshold says."""
        return ((id, kind), result) in self._earned

    # --- what is made of them ---

    def decided_from(self, uid: str, probe_results: Mapping[str, ProbeResults]) -> None:
        """A sync acts on them: nobody is killed for less than its threshold, and none counts as started for nothing."""
        for id, said in probe_results.items():
            for kind in (ProbeType.LIVENESS, ProbeType.STARTUP):
                result = said.of(kind)
                if result is ProbeResult.UNKNOWN or (result is ProbeResult.SUCCESS and self._is_assumed(uid, kind)):
                    continue
                if not self.has_earned(id, kind, result):
                    self._trace.broke(f"{uid[:8]}: {kind.value} of {id[:12]} is {result.value} for nothing")

    def _is_assumed(self, uid: str, kind: ProbeType) -> bool:
        return kind is ProbeType.LIVENESS or uid in self._goes_down

    def told(self, message: PodChanged) -> None:
        """Nobody is said to be ready or to have started whose probe has not said so."""
        uid = message.pod.metadata.uid
        containers = {
            found.container.name: found.container
            for found in every_container(message.pod.spec)
            if found.kind is ContainerKind.REGULAR or is_restartable_init(found.container)
        }
        for status in _statuses(message):
            container = containers.get(status.name)
            if container is None:
                continue
            id = status.container_id.rpartition("/")[2]
            if status.ready and status.state.running is None:
                self._trace.broke(f"{uid[:8]} {status.name} is ready and does not run")
            if status.ready and container.readiness_probe is not None and not self._has_succeeded(id, "readiness"):
                self._trace.broke(f"{uid[:8]} {status.name} is ready, and its probe has never said so")
            is_assumed = container.startup_probe is None or uid in self._goes_down or id in self._started
            if status.started and not is_assumed and not self._has_succeeded(id, "startup"):
                self._trace.broke(f"{uid[:8]} {status.name} has started, and its probe has never said so")
            if status.started:
                self._started.add(id)

    def _has_succeeded(self, id: str, kind: str) -> bool:
        return self.has_earned(id, ProbeType(kind), ProbeResult.SUCCESS)


def _statuses(message: PodChanged) -> tuple[ContainerStatus, ...]:
    status = message.status
    return (*status.init_container_statuses, *status.container_statuses)
