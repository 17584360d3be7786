"""The promises that hold at every step, whatever dies. Told of every effect in the moment in which it happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import ContainerStatus
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeType
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.pod_worker import SyncDone, SyncPod, WorkType
from ipc.link.messages.sync_error import SyncError
from ipc.link.shm.board import Board
from supervisor.status.container_states import INIT_LONG_GONE
from tests.fakes.podman import FakeContainer
from tests.sim.children import Child
from tests.sim.runtime import Caller, SimPodman, uid_of
from tests.sim.trace import Trace
from tests.sim.watch_probes import ProbeWatch
from workers.compute.crash_loop_backoff import CRASH_LOOP_RESET_S
from workers.compute.kill_spec import ALIVE
from workers.kubecontainer import labels
from workers.sync.pod_row import read_view

MAKING: Final = frozenset({"create_pod", "create_container", "start_container"})
TERMINAL: Final = frozenset({"Succeeded", "Failed"})
ROUNDING_S: Final = 1e-6
NEVER: Final = -math.inf
NEVER_SEEN: Final = RuntimePodStatus(uid="")


class Ran(msgspec.Struct, frozen=True):
    """A container that was made, as long as anybody may speak of it."""

    uid: str
    name: str
    finished_at: float = 0.0
    """Monotonic seconds; 0.0 while it runs or before it did."""


class Watch:
    """Keeps what has to be remembered to judge; knows nothing of how the product decides."""

    def __init__(self, trace: Trace, clock: Clock, in_flight: Callable[[str], SyncPod | None]) -> None:
        """``in_flight``: the sync that the master waits for, by uid."""
        self._trace = trace
        self._clock = clock
        self._in_flight = in_flight
        self.excused: Callable[[str], bool] = lambda uid: False
        """Whether a pod meets unexpected errors: then what is told of that one may be old."""
        self._acted_at: dict[str, float] = {}
        """When somebody last changed something of a pod on the agent's behalf, monotonic seconds."""
        self._views: dict[str, RuntimePodStatus] = {}
        """Observations that the newest sync of each pod acts on, and since when."""
        self._began_at: dict[str, float] = {}
        self._done: set[tuple[str, str]] = set()
        """(sandbox, init container): it came to its end there, or as a sidecar has started."""
        self._sidecars_ran: set[tuple[str, str]] = set()
        """(sandbox, sidecar): it ran there."""
        self._planned: dict[str, frozenset[str]] = {}
        """Sandbox -> names of the init containers that its pod has had ever since it was made."""
        self._sandboxes: dict[str, set[str]] = {}
        """Every sandbox that was made, by uid."""
        self._started_late: set[str] = set()
        """Containers that a call has started which nobody waited for any more: nothing can prevent a twin then, it is
        only found and stopped; nor a second run, when the first is over before the call that is made anew."""
        self._made_late_at: dict[str, float] = {}
        """When a call that nobody waited for any more last had an effect on a pod, monotonic seconds."""
        self._left_late_at: dict[str, float] = {}
        """When a call that an agent had given up before the present one began last had an effect on a pod."""
        self._agent_began_at = 0.0
        self._sidecars: dict[str, dict[str, Container]] = {}
        """By uid and name, as the newest sync has them."""
        self._initialized: set[str] = set()
        """Sandboxes in which a regular container was made."""
        self._attempts: dict[tuple[str, str], int] = {}
        """(uid, container): the last attempt that was started."""
        self._made: dict[tuple[str, str], int] = {}
        """And the last one that was made: what Podman died over is made again as the same."""
        self._restarts: dict[str, dict[str, int]] = {}
        """The restart counts that were told last, by uid and container: whoever has told them may be dead."""
        self._ran: dict[str, Ran] = {}
        self.acted: Callable[[SyncPod], None] = lambda request: None
        """Told of every sync on whose behalf something was done."""
        self.podman: SimPodman
        self.probes = ProbeWatch(trace)

    def note(self, line: str) -> None:
        self._trace.note(line)

    # --- syncs ---

    def begins(self, child: Child, request: SyncPod, board: Board) -> None:
        """No acting on an old view."""
        view = read_view(request, board)
        self.note(f"{child.name} begins {request.kind.value} {request.uid[:8]} #{request.generation}")
        if view is None:
            return
        acted_at = self._acted_at.get(request.uid, 0.0)
        if view.observed_at <= acted_at:
            self._broke(f"{request.uid[:8]}: acts on a view of {view.observed_at:.3f}, was changed at {acted_at:.3f}")
        if request.pod is not None:
            names = {container.name for container in request.pod.spec.init_containers}
            self._sidecars[request.uid] = {
                c.name: c for c in request.pod.spec.init_containers if is_restartable_init(c)
            }
            for sandbox in view.sandboxes:
                self._planned[sandbox.id] = self._planned.get(sandbox.id, frozenset()) & names
        if request.remove and request.kind is WorkType.TERMINATED and not self.podman.of_pod(request.uid):
            self._count_anew(request.uid)
        self._note_started(request.uid)
        self.probes.decided_from(request.uid, request.probe_results)
        self._views[request.uid] = view
        self._began_at[request.uid] = self._mono

    def is_edited(self, before: Pod) -> None:
        """Take an edit: a container without a startup probe may count as started, even untold (no API server)."""
        free = {found.container.name for found in every_container(before.spec) if found.container.startup_probe is None}
        self.probes.may_have_started(c.id for c in self.podman.of_pod(before.metadata.uid) if name_of(c) in free)

    def answered(self, done: SyncDone) -> None:
        self.note(f"done {done.uid[:8]} #{done.generation}: {done.summary} {done.error}")
        if done.error is SyncError.INTERNAL:
            self._broke(f"an error of the worker's own: {done.message}")

    def is_made_late(self, uid: str) -> bool:
        """Whether a call that nobody waited for any more ever had an effect on that pod."""
        return uid in self._made_late_at

    def agent_begins(self) -> None:
        """Another agent: it knows nothing of calls that were given up before."""
        self._agent_began_at = self._mono

    def forgotten(self, uid: str, seen_at: float, listed_at: float) -> None:
        """The master says that nothing of the pod is left, as was seen then; everything was ``listed_at`` that time
        (monotonic seconds).

        What a call that nobody waits for any more has made since is found as an orphan's. An agent lists a pod of which
        one of its own calls was given up; what an agent before it has left, or somebody else makes, shows in an event,
        which may be lost, or when everything is listed."""
        made_at, left_at = (late.get(uid, NEVER) for late in (self._made_late_at, self._left_late_at))
        if made_at >= seen_at or left_at >= listed_at:
            self.began_anew(uid)
            return
        left = [c.name for c in self.podman.of_pod(uid)]
        left += [pod.name for pod in self.podman.pods.values() if pod.labels.get(labels.POD_UID) == uid]
        if left:
            self._broke(f"{uid[:8]} is forgotten and has {left}")
        self.began_anew(uid)

    def began_anew(self, uid: str) -> None:
        """Forget the pod: another may come under that uid, as the master knows that nothing is left of this one."""
        self._acted_at.pop(uid, None)
        self._count_anew(uid)

    def _count_anew(self, uid: str) -> None:
        self._restarts.pop(uid, None)
        for key in [key for key in self._attempts if key[0] == uid]:
            del self._attempts[key]
            self._made.pop(key, None)

    # --- effects ---

    def began(self, caller: Caller, verb: str) -> None:
        """A sync that was told to stop makes nothing new."""
        request = caller.request
        if request is None or verb not in MAKING:
            return
        if isinstance(caller, Child) and (request.uid, request.generation) in caller.cancelled:
            self._broke(f"{request.uid[:8]}: {verb} after the sync was cancelled")

    def touched(self, caller: Caller | None, uid: str, what: str) -> None:
        """One actor per pod, and no pod by another's."""
        self.note(f"{caller.name if caller else 'somebody'}: {what}")
        if caller is None:
            self._made_late_at[uid] = self._mono
            if self.podman.given_up_at is None or self.podman.given_up_at <= self._agent_began_at:
                self._left_late_at[uid] = self._mono
            return None
        request = caller.request
        if request is None:
            return self._broke(f"{caller.name} changes something ({what}) and has no pod to do so for")
        if request.uid != uid:
            return self._broke(f"{what}: of {uid[:8]}, by the sync of {request.uid[:8]}")
        flight = self._in_flight(uid)
        mine = (request.incarnation, request.generation)
        if flight is None or (flight.incarnation, flight.generation) != mine:
            return self._broke(f"{what}: a second actor, #{request.generation} of {caller.name}")
        self.acted(request)
        self._acted_at[uid] = self._mono
        return None

    def made_sandbox(self, caller: Caller | None, id: str) -> None:
        """A file that is written before a container that has begun is as if that had run and been removed. A pod that
        restarts nothing, and of which nothing was left, goes on where it was."""
        pod = caller.request.pod if caller is not None and caller.request is not None else None
        if pod is None:
            return
        uid, inits = pod.metadata.uid, pod.spec.init_containers
        self._planned[id] = frozenset(container.name for container in inits)
        before = self._sandboxes.setdefault(uid, set())
        if pod.spec.restart_policy == "Never" and before.isdisjoint(self.podman.pods):
            names = {container.name for container in inits if not is_restartable_init(container)}
            self._done |= {(id, name) for home, name in self._done if home in before and name in names}
        before.add(id)

    def taken_away(self, containers: Iterable[FakeContainer]) -> None:
        """Nobody can know of it: its number is free again."""
        for container in containers:
            key = uid_of(container), name_of(container)
            self._attempts[key] = min(self._attempts.get(key, -1), attempt_of(container) - 1)

    def made(self, caller: Caller | None, container: FakeContainer) -> None:
        """The crash-loop back-off of what lies there has passed."""
        uid, name = uid_of(container), name_of(container)
        self._ran[container.id] = Ran(uid, name)
        if caller is None or caller.request is None:
            return
        pod = caller.request.pod
        if pod is not None and any(name == regular.name for regular in pod.spec.containers):
            self._check_initialized(pod, container)
            self._initialized.add(container.pod_id)
        others = [c for c in self.podman.of_pod(uid) if name_of(c) == name and c.id != container.id]
        newest = max(others, key=attempt_of, default=None)
        made_before = self._made.get((uid, name), -1)
        is_asked_for = newest is not None and newest.id in caller.request.restarts
        if newest is not None and attempt_of(container) != made_before and not is_asked_for:
            self._check_backoff(newest, container)
        self._made[uid, name] = attempt_of(container)

    def _check_backoff(self, newest: FakeContainer, made: FakeContainer) -> None:
        seen = next((c for c in self._view(uid_of(made)).containers if c.id == newest.id), None)
        if newest.state != "exited" or seen is None or seen.finished_at != newest.finished_at:
            return  # it ended since, by this sync or because an old start took effect late
        if any(newest.labels[key] != made.labels[key] for key in (labels.CONTAINER_HASH, labels.RESOURCES)):
            return
        backoff_s = float(newest.labels.get(labels.BACKOFF_S, "0"))
        if newest.finished_at - newest.created_at > CRASH_LOOP_RESET_S:
            return
        early_s = newest.finished_at + backoff_s - self._clock.now().wall
        if early_s > ROUNDING_S:
            self._broke(f"{made.name} is made {early_s:.3f} s before its back-off of {backoff_s:g} s is over")

    def started(self, caller: Caller | None, container: FakeContainer) -> None:
        """Nothing starts in a pod that goes down, nothing twice, nothing before its turn, and counts only rise."""
        uid, name = uid_of(container), name_of(container)
        request = caller.request if caller is not None else None
        if request is not None and request.kind is not WorkType.SYNC:
            self._broke(f"{container.name} starts in a sync of kind {request.kind.value}")
        if container.is_infra:
            return
        if caller is None:
            self._started_late.add(container.id)
        same = [c for c in self.podman.of_pod(uid) if name_of(c) == name and c.id not in self._started_late]
        twins = [c.name for c in same if c.state == "running"]
        if len(twins) > 1:
            self._broke(f"{twins} run at once")
        self._ran[container.id] = Ran(uid, name)
        last, attempt = self._attempts.get((uid, name), -1), attempt_of(container)
        if attempt <= last and caller is not None and container.id not in self._started_late:
            self._broke(f"{container.name} starts as attempt {attempt} after attempt {last}")
        self._attempts[uid, name] = max(attempt, last)
        if request is not None and request.pod is not None:
            self._check_initialized(request.pod, container)
        if name in self._sidecars.get(uid, ()):
            self._sidecars_ran.add((container.pod_id, name))
            self._note_started(uid)  # somebody may remove it before anything behind it starts

    def _check_initialized(self, pod: Pod, container: FakeContainer) -> None:
        """Per sandbox. Once it was, the manifest may have changed."""
        name, sandbox_id = name_of(container), container.pod_id
        if any(debug.name == name for debug in pod.spec.ephemeral_containers) or sandbox_id in self._initialized:
            return
        self._note_started(uid_of(container))
        names = [init.name for init in pod.spec.init_containers]
        ahead = names[: names.index(name)] if name in names else names
        planned = self._planned.get(sandbox_id, frozenset())
        missing = [other for other in ahead if other in planned and (sandbox_id, other) not in self._done]
        if missing:
            self._broke(f"{container.name} before {missing}")

    def _note_started(self, uid: str) -> None:
        """Sidecars that have started once in their sandbox: whatever an edit or a restart makes of them later, what is
        behind them may start."""
        for container in self.podman.of_pod(uid):
            self._note_if_started(container)

    def _note_if_started(self, container: FakeContainer) -> None:
        place = (container.pod_id, name_of(container))
        sidecar = self._sidecars.get(uid_of(container), {}).get(name_of(container))
        runs = place in self._sidecars_ran and sidecar is not None and sidecar.startup_probe is None
        if runs or self.probes.has_earned(container.id, ProbeType.STARTUP, ProbeResult.SUCCESS):
            self._done.add(place)

    def signalled(self, caller: Caller | None, container: FakeContainer, signal: str) -> None:
        """A sidecar is stopped after the regular containers and the sidecar behind it, unless their time is over."""
        request = caller.request if caller is not None else None
        if request is None or request.pod is None or request.kind is not WorkType.TERMINATING or container.is_infra:
            return
        spec, uid = request.pod.spec, request.uid
        sidecars = [c.name for c in spec.init_containers if is_restartable_init(c)]
        if name_of(container) not in sidecars:
            return
        after = sidecars.index(name_of(container)) + 1
        served = {c.name for c in spec.containers} | set(sidecars[after : after + 1])
        seen = {c.id for c in self._view(uid).containers if c.state in ALIVE}
        left = [
            c.name for c in self.podman.of_pod(uid) if name_of(c) in served and c.state == "running" and c.id in seen
        ]
        grace_s = request.grace_period_s or spec.termination_grace_period_seconds or 0
        waited_s = self._mono - self._began_at[uid]
        if left and waited_s < grace_s - ROUNDING_S:
            self._broke(f"{signal} to {container.name} after {waited_s:.3f} s of {grace_s} s, while {left} run")

    def ended(self, container: FakeContainer) -> None:
        if container.is_infra:
            return
        self._ran[container.id] = Ran(uid_of(container), name_of(container), self._mono)
        self._note_if_started(container)  # somebody may have removed it
        if container.exit_code == 0:
            self._done.add((container.pod_id, name_of(container)))

    def cleared(self, caller: Caller | None, uid: str) -> None:
        """A sandbox was removed. With the last one the pod ends, if it is on its way out."""
        request = caller.request if caller is not None else None
        if request is not None and request.remove and not self.podman.of_pod(uid):
            self._count_anew(uid)

    # --- what is told ---

    def told(self, before: PodChanged | None, message: PodChanged, seen_at: float) -> None:
        """Terminal phases are never left, counts never fall, and nothing is said to run that had ended before the
        newest look began (``seen_at``)."""
        uid, status = message.pod.metadata.uid, message.status
        shown = " ".join(f"{c.name}:{_word(c)}({c.restart_count})" for c in every_status(message))
        self.note(f"told {uid[:8]} {status.phase} {status.reason} {shown}")
        if before is not None:
            old = before.status.phase
            if old in TERMINAL and status.phase != old:
                self._broke(f"{uid[:8]} was {old} and is {status.phase}")
        self._check_restarts(uid, before, message)
        self.probes.told(message)
        for name, ran in self.false_claims(message):
            if ran.finished_at < seen_at and not self.excused(uid):
                self._broke(f"{uid[:8]} {name}: said to run, ended at {ran.finished_at:.3f}, seen at {seen_at:.3f}")

    def wanted(self, uids: Collection[str]) -> None:
        """The sources were read, and state these alone: of all others nothing has to stay."""
        for uid in [uid for uid in self._restarts if uid not in uids]:
            del self._restarts[uid]

    def _check_restarts(self, uid: str, before: PodChanged | None, message: PodChanged) -> None:
        """Counts never fall, also over a restart of the agent, until the pod goes. A status may tell none; of a
        container that never ran, but was made twice over a Podman that died, nothing is left to tell. As little of an
        init container that is gone and has nothing to do any more: the kubelet's count begins anew with the kubelet.
        A new agent does not repeat that one is to be restarted when that has never come."""
        told = _restarts(before) if before is not None else {}
        known = self._restarts.get(uid, {}) | told
        counts, gone = _restarts(message), _long_gone(message)
        inits = {status.name for status in message.status.init_container_statuses}
        for name, count in counts.items():
            attempt = self._attempts.get((uid, name), -1)
            never_came = name in inits and name not in told and count >= attempt
            if attempt >= 0 and name not in gone and not never_came and count < known.get(name, 0):
                self._broke(f"{uid[:8]} {name}: restart count fell from {known[name]} to {count}")
        if message.deletion_timestamp:
            self._restarts.pop(uid, None)
        elif counts:
            self._restarts[uid] = counts

    def false_claims(self, message: PodChanged) -> Iterable[tuple[str, Ran]]:
        """Containers that a status says run, and that have ended."""
        for status in every_status(message):
            ran = self._ran.get(status.container_id.rpartition("/")[2])
            if status.state.running is not None and ran is not None and ran.finished_at:
                yield status.name, ran

    # --- helpers ---

    @property
    def _mono(self) -> float:
        return self._clock.now().mono

    def _view(self, uid: str) -> RuntimePodStatus:
        return self._views.get(uid, NEVER_SEEN)

    def _broke(self, promise: str) -> None:
        self._trace.broke(promise)


def every_status(message: PodChanged) -> tuple[ContainerStatus, ...]:
    status = message.status
    return (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses)


def _restarts(message: PodChanged) -> dict[str, int]:
    return {status.name: status.restart_count for status in every_status(message)}


def _long_gone(message: PodChanged) -> frozenset[str]:
    """Init containers that ran long ago."""
    ended = {status.name: status.state.terminated for status in every_status(message)}
    return frozenset(name for name, end in ended.items() if end is not None and end.message == INIT_LONG_GONE)


def _word(status: ContainerStatus) -> str:
    if status.state.waiting is not None:
        return status.state.waiting.reason
    return "Running" if status.state.running is not None else "Terminated"


def name_of(container: FakeContainer) -> str:
    return container.labels.get(labels.CONTAINER_NAME, "")


def attempt_of(container: FakeContainer) -> int:
    return labels.read_container(container.labels).attempt
