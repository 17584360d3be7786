"""A host in one thread: the real sync loop and the real decisions among model processes that are slow and die.

Everything that takes time elsewhere is cut into steps here, and a seeded driver chooses whose step comes next. Links
are first in, first out, as sockets are; a death takes with it what was not delivered. The world watches at every step:
one actor per pod, no acting on an old view, no two running containers of one name, no container before the init
containers ahead of it, nothing forgotten that exists.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from ipc.api import Container, ContainerPort, ObjectMeta, Pod, PodSpec
from ipc.board import Board
from ipc.clock import Instant
from ipc.hashing import container_hash, sandbox_hash
from ipc.messages import (
    CancelSync,
    Observe,
    Observed,
    PodChanged,
    PodGone,
    Relist,
    Relisted,
    SyncAction,
    SyncDone,
    SyncPod,
    SyncResult,
    Track,
    Untrack,
    WorkType,
)
from ipc.pod_containers import find_container
from ipc.restart_policy import is_restartable_init
from ipc.runtime import ContainerState, RuntimeContainerStatus, RuntimePodStatus, SandboxState, SandboxStatus
from supervisor import views
from supervisor.dialogue import (
    HousekeepingTick,
    LoopEvent,
    PodsStopped,
    Send,
    SourcesReady,
    SyncTick,
    Views,
    WorkerDown,
    WorkerUp,
)
from supervisor.settings import Settings
from supervisor.sources.types import FILE_SOURCE, PodOperation, PodUpdate
from supervisor.sync_loop import SyncLoop
from supervisor.worker_pool import API_SLOT, FIRST_POD_SLOT, NODE_SLOT
from workers.kills import ALIVE
from workers.pod_actions import compute_pod_actions
from workers.published import Published
from workers.restart import crash_loop_limits
from workers.view import read_view

WALL = 1_800_000_000.0
LIMITS = crash_loop_limits(4.0)
"""Back-off is not what is tested here: it must only not take long."""
POD_SLOTS = (FIRST_POD_SLOT, FIRST_POD_SLOT + 1)
ROWS = 5
"""Fewer than there can be pods and orphans."""
UIDS = tuple(f"pod-{n}" for n in range(6))
PORT_HOLDERS = UIDS[:2]
"""The first versions of these want the same port of the host: who is added second is rejected until it is updated."""
QUIET_TICKS = 250
"""Two resyncs (60 to 90 s) and some: more than a lost hint may cost."""
CALL_FAILS = 0.03
"""Part of the calls that time out, half of them after they had their effect."""
INIT_ENDS, INIT_FAILS, HINT_ARRIVES = 0.2, 0.3, 0.5
"""Chances: that an init container ends now, that it fails, that the node worker hears of an exit."""

Step = Callable[[], None]


class CallFailed(Exception):
    """The model runtime has no such thing any more."""


INIT, SIDECAR = Container(name="init"), Container(name="sidecar", restart_policy="Always")
INIT_CONTAINERS = {UIDS[2]: (INIT,), UIDS[3]: (INIT, SIDECAR, Container(name="late")), UIDS[5]: (SIDECAR, INIT)}
"""Of the pods that have some. A sidecar runs on, the others come to their end."""


def pod_of(uid: str, version: int) -> Pod:
    """Version 0 of some pods wants a port, every third restarts nothing."""
    ports = (ContainerPort(container_port=80, host_port=80),) if uid in PORT_HOLDERS and version == 0 else ()
    containers = tuple(Container(name=name, image=f"v{version}", ports=ports) for name in ("one", "two"))
    init = tuple(msgspec.structs.replace(c, image=f"v{version}") for c in INIT_CONTAINERS.get(uid, ()))
    never = UIDS.index(uid) % 3 == 2
    return Pod(
        metadata=ObjectMeta(name=uid, namespace="default", uid=uid),
        spec=PodSpec(containers=containers, init_containers=init, restart_policy="Never" if never else "Always"),
    )


def plain_init_names(spec: PodSpec) -> set[str]:
    """Of those that come to their end."""
    return {container.name for container in spec.init_containers if not is_restartable_init(container)}


class ModelRuntime:
    """The truth: what exists of every pod, as an observation that began just now would show it."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._pods: dict[str, RuntimePodStatus] = {}
        self._ids = 0
        self.acted_at: dict[str, float] = {}
        """When somebody last changed something of a pod on our behalf, monotonic seconds."""
        self._done: set[tuple[str, str]] = set()
        """(sandbox, init container) that came to its end there, or started as a sidecar."""
        self._initialized: set[str] = set()
        """Sandboxes in which a regular container was made."""

    def show(self, uid: str) -> RuntimePodStatus:
        return self._pods.get(uid, RuntimePodStatus(uid=uid))

    def uids(self) -> set[str]:
        return {uid for uid, pod in self._pods.items() if not pod.is_empty()}

    def forget(self, uid: str) -> None:
        """The master has made sure that nothing is left of it."""
        assert self.show(uid).is_empty(), f"{uid} is forgotten and exists"
        self.acted_at.pop(uid, None)

    def make_sandbox(self, pod: Pod, attempt: int) -> None:
        uid = pod.metadata.uid
        old = self.show(uid)
        assert all(s.attempt != attempt for s in old.sandboxes), f"{uid}: name in use"
        made = SandboxStatus(
            id=self._id(), name=uid, infra_id="", attempt=attempt, state=SandboxState.READY, hash=sandbox_hash(pod)
        )
        self._put(msgspec.structs.replace(old, name=uid, namespace="default", sandboxes=(made, *old.sandboxes)))

    def make_container(self, pod: Pod, container: Container, attempt: int, backoff_s: float) -> None:
        uid = pod.metadata.uid
        old = self.show(uid)
        if not old.sandboxes:
            raise CallFailed
        if container in pod.spec.containers:
            self._check_initialized(pod, old.sandboxes[0].id, container.name)
            self._initialized.add(old.sandboxes[0].id)
        assert all((c.name, c.attempt) != (container.name, attempt) for c in old.containers), f"{uid}: name in use"
        made = RuntimeContainerStatus(
            id=self._id(),
            name=container.name,
            attempt=attempt,
            state=ContainerState.CREATED,
            sandbox_id=old.sandboxes[0].id,
            hash=container_hash(container),
            backoff_s=backoff_s,
            created_at=self._now().wall,
        )
        self._put(msgspec.structs.replace(old, containers=(made, *old.containers)))

    def start(self, pod: Pod, name: str) -> None:
        uid = pod.metadata.uid
        newest = self.show(uid).newest(name)
        if newest is None:
            raise CallFailed
        self._check_initialized(pod, newest.sandbox_id, name)
        if name not in plain_init_names(pod.spec):
            self._done.add((newest.sandbox_id, name))
        twins = [c for c in self.show(uid).containers if c.name == name and c.state in ALIVE]
        assert not twins, f"{uid}: {name} runs twice"
        self._change(uid, newest.id, state=ContainerState.RUNNING, started_at=self._now().wall)

    def _check_initialized(self, pod: Pod, sandbox_id: str, name: str) -> None:
        """Once it was, the manifest may have changed."""
        names = [container.name for container in pod.spec.init_containers]
        ahead = names[: names.index(name)] if name in names else names
        missing = [other for other in ahead if (sandbox_id, other) not in self._done]
        assert not missing or sandbox_id in self._initialized, f"{pod.metadata.uid}: {name} before {missing}"

    def end(self, uid: str, id: str, exit_code: int = 0) -> None:
        """A process ends, or is ended."""
        running = next((c for c in self.show(uid).containers if c.id == id and c.state is ContainerState.RUNNING), None)
        if running is not None:
            if exit_code == 0:
                self._done.add((running.sandbox_id, running.name))
            self._change(uid, id, state=ContainerState.EXITED, exit_code=exit_code, finished_at=self._now().wall)

    def end_sandbox(self, uid: str, id: str) -> None:
        old = self.show(uid)
        down = tuple(
            msgspec.structs.replace(s, state=SandboxState.NOT_READY) if s.id == id else s for s in old.sandboxes
        )
        self._put(msgspec.structs.replace(old, sandboxes=down))

    def remove_container(self, uid: str, id: str) -> None:
        old = self.show(uid)
        self._put(msgspec.structs.replace(old, containers=tuple(c for c in old.containers if c.id != id)))

    def remove_sandbox(self, uid: str, id: str) -> None:
        """With everything in it."""
        old = self.show(uid)
        kept = tuple(c for c in old.containers if c.sandbox_id != id)
        left = tuple(s for s in old.sandboxes if s.id != id)
        self._put(msgspec.structs.replace(old, sandboxes=left, containers=kept))

    def _change(self, uid: str, id: str, **fields: object) -> None:
        old = self.show(uid)
        made = tuple(msgspec.structs.replace(c, **fields) if c.id == id else c for c in old.containers)
        self._put(msgspec.structs.replace(old, containers=made))

    def _put(self, status: RuntimePodStatus) -> None:
        ordered = tuple(sorted(status.containers, key=lambda c: (c.name, -c.attempt)))
        self._pods[status.uid] = msgspec.structs.replace(status, containers=ordered)

    def _id(self) -> str:
        self._ids += 1
        return f"id-{self._ids}"


@dataclass
class Sync:
    request: SyncPod
    steps: Iterator[Step]
    results: list[SyncResult] = field(default_factory=list)
    changed: bool = False
    cancelled: bool = False


class PodWorkerModel:
    """Carries out the real decisions, one call at a time."""

    def __init__(self, world: World, incarnation: int) -> None:
        self.incarnation = incarnation
        self.inbox: deque[SyncPod | CancelSync] = deque()
        self.outbox: deque[SyncDone] = deque()
        self._world = world
        self._syncs: dict[str, Sync] = {}

    def turn(self) -> None:
        rng = self._world.rng
        if self.inbox and (not self._syncs or rng.random() < 0.5):
            self._obey(self.inbox.popleft())
        elif self._syncs:
            self._go_on(self._syncs[rng.choice(sorted(self._syncs))])

    def _obey(self, command: SyncPod | CancelSync) -> None:
        sync = self._syncs.get(command.uid)
        if isinstance(command, CancelSync):
            if sync is not None and sync.request.generation == command.generation:
                sync.cancelled = True
            return
        assert sync is None, f"two syncs of {command.uid}"
        view = read_view(command, self._world.board)
        if view is None:
            self._end(Sync(command, iter(())), "StaleView")
            return
        acted_at = self._world.runtime.acted_at.get(command.uid, 0.0)
        assert view.observed_at > acted_at, f"{command.uid}: acts on a view of {view.observed_at}, changed {acted_at}"
        made = Sync(command, iter(()))
        made.steps = _STEPS[command.kind](self._world, made, view)
        self._syncs[command.uid] = made

    def _go_on(self, sync: Sync) -> None:
        if sync.cancelled:
            self._end(sync)
            return
        try:
            step = next(sync.steps)
        except StopIteration:
            self._end(sync)
            return
        sync.changed = True
        fate = self._world.rng.random() if self._world.noisy else 1.0
        try:
            if fate >= CALL_FAILS / 2:
                self._world.runtime.acted_at[sync.request.uid] = self._world.now.mono
                step()
        except CallFailed:
            self._end(sync, "NotFound")
            return
        if fate < CALL_FAILS:
            self._end(sync, "Timeout")

    def _end(self, sync: Sync, error: str = "") -> None:
        self._syncs.pop(sync.request.uid, None)
        self.outbox.append(
            SyncDone(
                uid=sync.request.uid,
                generation=sync.request.generation,
                incarnation=self.incarnation,
                kind=sync.request.kind,
                results=tuple(sync.results),
                error=error,
                changed=sync.changed,
                cancelled=sync.cancelled,
            )
        )


def _sync_steps(world: World, sync: Sync, view: RuntimePodStatus) -> Iterator[Step]:
    """workers.sync_pod."""
    pod, uid, runtime = sync.request.pod, sync.request.uid, world.runtime
    assert pod is not None
    actions = compute_pod_actions(
        pod, view, world.now.wall, LIMITS, restarting_all=sync.request.restarting_all, garbage=sync.request.garbage
    )
    if actions.kill_pod:
        yield from _stop_steps(world, view)
    resets = [reset.kill for reset in actions.containers_to_reset if reset.kill is not None]
    for kill in () if actions.kill_pod else (*actions.containers_to_kill, *resets):
        yield lambda id=kill.id: runtime.end(uid, id, 137)  # type: ignore[misc]
        if kill.remove:
            yield lambda id=kill.id: runtime.remove_container(uid, id)  # type: ignore[misc]
    first = (*(reset.container for reset in actions.containers_to_reset), *actions.init_containers_to_prune)
    for dead in first:
        yield lambda id=dead.id: runtime.remove_container(uid, id)  # type: ignore[misc]
    if actions.create_sandbox:
        yield lambda: runtime.make_sandbox(pod, actions.attempt)
    for start in (*actions.init_containers_to_start, *actions.containers_to_start):
        found = find_container(pod.spec, start.name)
        assert found is not None
        if not start.created_id:
            yield lambda c=found.container, s=start: runtime.make_container(pod, c, s.attempt, s.backoff_s)  # type: ignore[misc]
        yield lambda name=start.name: runtime.start(pod, name)  # type: ignore[misc]
    for wait in actions.waiting:
        sync.results.append(
            SyncResult(
                action=SyncAction.START_CONTAINER, target=wait.name, error="CrashLoopBackOff", retry_at=wait.retry_at
            )
        )
    for dead in actions.containers_to_remove:
        yield lambda id=dead.id: runtime.remove_container(uid, id)  # type: ignore[misc]
    for sandbox in actions.sandboxes_to_remove:
        yield lambda id=sandbox.id: runtime.remove_sandbox(uid, id)  # type: ignore[misc]


def _stop_steps(world: World, view: RuntimePodStatus) -> Iterator[Step]:
    for container in view.containers:
        if container.state in ALIVE:
            yield lambda id=container.id: world.runtime.end(view.uid, id, 137)  # type: ignore[misc]
    for sandbox in view.sandboxes:
        yield lambda id=sandbox.id: world.runtime.end_sandbox(view.uid, id)  # type: ignore[misc]


def _terminating_steps(world: World, sync: Sync, view: RuntimePodStatus) -> Iterator[Step]:
    """workers.sync_terminating."""
    yield from _stop_steps(world, view)


def _terminated_steps(world: World, sync: Sync, view: RuntimePodStatus) -> Iterator[Step]:
    """workers.sync_terminated."""
    for sandbox in view.sandboxes if sync.request.remove else ():
        yield lambda id=sandbox.id: world.runtime.remove_sandbox(view.uid, id)  # type: ignore[misc]


_STEPS = {
    WorkType.SYNC: _sync_steps,
    WorkType.TERMINATING: _terminating_steps,
    WorkType.TERMINATED: _terminated_steps,
}


@dataclass
class Look:
    """One look under way, at some pods or (None) at everything. It shows each pod as it was at some moment of it."""

    uids: tuple[str, ...] | None
    waiting: tuple[str, ...]
    started_at: float
    shown: dict[str, RuntimePodStatus]


class NodeWorkerModel:
    """Looks at the runtime and publishes through the real `Published`, as workers.node_worker does."""

    def __init__(self, world: World, incarnation: int) -> None:
        self.incarnation = incarnation
        self.inbox: deque[Track | Untrack | Observe | Relist] = deque()
        self.outbox: deque[Observed | Relisted] = deque()
        self._world = world
        self._published = Published(world.board)
        self._due: dict[str, None] = {}
        self._relist_due = True
        self._look: Look | None = None

    def hint(self, uid: str) -> None:
        """A process of the pod has ended: a pidfd or an event says so."""
        self._due[uid] = None

    def relist(self) -> None:
        self._relist_due = True

    def turn(self) -> None:
        if self.inbox and self._world.rng.random() < 0.5:
            self._obey(self.inbox.popleft())
        elif self._look is not None:
            self._finish(self._look)
            self._look = None
        elif self._relist_due or self._due:
            self._begin()
        elif self.inbox:
            self._obey(self.inbox.popleft())

    def _obey(self, command: Track | Untrack | Observe | Relist) -> None:
        match command:
            case Track(uid=uid, row=row):
                self._published.track(uid, row)
            case Untrack(uid=uid):
                self._published.untrack(uid)
            case Observe(uids=uids):
                self._due.update(dict.fromkeys(uids))
            case Relist():
                self._relist_due = True

    def _begin(self) -> None:
        runtime, due = self._world.runtime, tuple(self._due)
        uids = None if self._relist_due else due
        shown = {uid: runtime.show(uid) for uid in (runtime.uids() if uids is None else uids)}
        self._look = Look(uids, due, self._world.now.mono, shown)
        self._due.clear()
        self._relist_due = False

    def _finish(self, look: Look) -> None:
        tracked = set(self._published.tracked)
        looked_at = {*look.waiting, *tracked, *look.shown} if look.uids is None else set(look.uids)
        seen = {uid: self._seen(look, uid) for uid in sorted(looked_at)}
        existing = {uid for uid, status in seen.items() if not status.is_empty()}
        told = {uid: self._published.record(status) for uid, status in seen.items()}
        if look.waiting:
            self.outbox.append(Observed(observations=tuple(told[uid] for uid in look.waiting)))
        if look.uids is None:
            self._published.retain(existing)
            news = [uid for uid in seen if (uid in tracked and told[uid].changed) or (uid in existing - tracked)]
            self.outbox.append(Relisted(started_at=look.started_at, changed=tuple(told[uid] for uid in news)))

    def _seen(self, look: Look, uid: str) -> RuntimePodStatus:
        early, late = look.shown.get(uid, RuntimePodStatus(uid=uid)), self._world.runtime.show(uid)
        return msgspec.structs.replace(self._world.rng.choice((early, late)), observed_at=look.started_at)


class World:
    """The master's shell, the sources, and the driver."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.mono = 100.0
        self.noisy = True
        self.board = Board.create(worker_slots=8, pod_rows=ROWS)
        self.runtime = ModelRuntime(lambda: self.now)
        self.desired: dict[str, Pod] = {}
        self.told: dict[str, PodChanged] = {}
        self.rows: dict[str, int] = {}
        """As the node worker was told."""
        self._sources_ready = False
        self._in_flight: dict[str, SyncPod] = {}
        self._slots: dict[str, int] = {}
        self._children: dict[int, NodeWorkerModel | PodWorkerModel | None] = dict.fromkeys((NODE_SLOT, *POD_SLOTS))
        self._incarnations = dict.fromkeys(self._children, 0)
        self._loop = SyncLoop(Settings(), len(POD_SLOTS), ROWS, "10.0.0.1", random.Random(seed))
        self._feed(WorkerUp(API_SLOT, 1))

    @property
    def now(self) -> Instant:
        return Instant(mono=self.mono, wall=WALL + self.mono)

    # --- driving ---

    def make_noise(self, steps: int) -> None:
        """Anything may happen, in any order."""
        acts = (self._progress, self._tick, self._change_desired, self._accident, self._kill_child)
        for _ in range(steps):
            self.mono += self.rng.uniform(0.001, 0.2)
            self.rng.choices(acts, weights=(60, 3, 3, 3, 1))[0]()

    def settle(self, ticks: int = QUIET_TICKS) -> None:
        """Nothing goes wrong any more; everybody gets as many turns as they want. Fails unless all is well in time."""
        self.noisy = False
        if not self._sources_ready:
            self._read_sources()
        for tick in range(ticks):
            for _ in range(60):
                self.mono += 0.001
                self._progress()
            self._tick()
            if tick % 10 == 0:
                self._node_do(NodeWorkerModel.relist)
            if not self.complaints():
                return
        raise AssertionError(f"after {ticks} quiet ticks: {'; '.join(self.complaints())}")

    def start_over(self) -> None:
        """Everything goes, and as many pods as there are rows come."""
        for uid in sorted(self.desired):
            self._remove(uid)
        self.settle()
        assert not self.rows, f"rows are not given back: {self.rows}"
        for uid in UIDS[:ROWS]:
            self._state(PodOperation.ADD, pod_of(uid, 1))
        assert sorted(self.rows.values()) == list(range(ROWS)), "a row is lost"

    def complaints(self) -> list[str]:
        """Everything that is not yet as it should be."""
        extra = (self.runtime.uids() | self.told.keys()) - self.desired.keys()
        wrong = [f"{uid} is not wanted" for uid in sorted(extra)]
        wrong += [f"{uid}: {why}" for uid, pod in self.desired.items() if (why := self._complaint(uid, pod))]
        if sum(self._loop.pods_per_slot().values()) != len(self.desired):
            wrong.append(f"supervised: {self._loop.pods_per_slot()}")
        return wrong

    def _complaint(self, uid: str, pod: Pod) -> str:
        shown = self.runtime.show(uid)
        if uid not in self.told:
            return "nothing is told of it"
        status, never = self.told[uid].status, pod.spec.restart_policy == "Never"
        sidecars = tuple(c for c in pod.spec.init_containers if is_restartable_init(c))
        wanted = {(c.name, container_hash(c)) for c in (*pod.spec.containers, *sidecars)}
        alive = {(c.name, c.hash) for c in shown.containers if c.state in ALIVE}
        if status.phase in ("Succeeded", "Failed") and (never or status.reason == "NodePorts"):
            return "it is done and runs" if shown.is_running() else ""
        if status.phase == "Running" and (alive == wanted or (never and alive and alive < wanted)):
            return ""
        return f"{status.phase}, runs {sorted(alive)}"

    # --- what happens ---

    def _progress(self) -> None:
        """One child does something, or one of its messages arrives; one that is dead is reaped and replaced."""
        slot = self.rng.choice(sorted(self._children))
        child = self._children[slot]
        if child is None:
            self._boot(slot)
        elif child.outbox and self.rng.random() < 0.5:
            self._deliver(child.outbox.popleft())
        else:
            child.turn()
        self._finish_one_init_container()

    def _finish_one_init_container(self) -> None:
        """Sooner or later each comes to its end; while it is noisy some fail, and not every end is noticed."""
        uid = self.rng.choice(UIDS)
        names = plain_init_names(pod_of(uid, 0).spec)
        running = [c for c in self.runtime.show(uid).containers if c.name in names and c.state in ALIVE]
        if running and self.rng.random() < INIT_ENDS:
            self.runtime.end(uid, running[0].id, int(self.noisy and self.rng.random() < INIT_FAILS))
            if not self.noisy or self.rng.random() < HINT_ARRIVES:
                self._node_do(lambda node: node.hint(uid))

    def _boot(self, slot: int) -> None:
        self._incarnations[slot] += 1
        incarnation = self._incarnations[slot]
        made = NodeWorkerModel if slot == NODE_SLOT else PodWorkerModel
        if slot == NODE_SLOT:
            self.rows.clear()
        self._children[slot] = made(self, incarnation)
        self._feed(WorkerUp(slot, incarnation))

    def _kill_child(self) -> None:
        """What it has said arrives, up to somewhere; then its exit."""
        slot = self.rng.choice(sorted(self._children))
        child = self._children[slot]
        if child is None:
            return
        for _ in range(self.rng.randint(0, len(child.outbox))):
            self._deliver(child.outbox.popleft())
        self._children[slot] = None
        self._in_flight = {uid: sync for uid, sync in self._in_flight.items() if self._slots[uid] != slot}
        self._feed(WorkerDown(slot))

    def _deliver(self, message: Observed | Relisted | SyncDone) -> None:
        match message:
            case Observed(observations=observations):
                self._feed(Views(views.resolve(self.board, observations)))
            case Relisted(started_at=started_at, changed=changed):
                self._feed(Views(views.resolve(self.board, changed), started_at))
            case SyncDone(uid=uid):
                del self._in_flight[uid]
                self._feed(message)

    def _tick(self) -> None:
        self.mono += 1.0
        self._feed(SyncTick())
        self._feed(HousekeepingTick())

    def _change_desired(self) -> None:
        uid, roll = self.rng.choice(UIDS), self.rng.random()
        if not self._sources_ready and roll < 0.3:
            self._read_sources()
        elif uid not in self.desired:
            self._state(PodOperation.ADD, pod_of(uid, self.rng.randrange(3)))
        elif roll < 0.6:
            self._state(PodOperation.UPDATE, pod_of(uid, self.rng.randrange(1, 3)))
        else:
            self._remove(uid)

    def _remove(self, uid: str) -> None:
        self._feed(PodUpdate(op=PodOperation.REMOVE, source=FILE_SOURCE, pods=(self.desired.pop(uid),)))

    def _state(self, op: PodOperation, pod: Pod) -> None:
        self.desired[pod.metadata.uid] = pod
        self._feed(PodUpdate(op=op, source=FILE_SOURCE, pods=(pod,)))

    def _read_sources(self) -> None:
        self._sources_ready = True
        self._feed(SourcesReady())

    def _accident(self) -> None:
        """A process ends by itself, somebody removes a whole pod by hand, or leaves one that nobody wants."""
        uids = sorted(self.runtime.uids())
        roll = self.rng.random()
        if roll < 0.1:
            self._leave_orphan()
        elif uids and roll < 0.2:
            uid = self.rng.choice(uids)
            for sandbox in self.runtime.show(uid).sandboxes:
                self.runtime.remove_sandbox(uid, sandbox.id)
        elif uids:
            uid = self.rng.choice(uids)
            for container in self.runtime.show(uid).containers[:1]:
                self.runtime.end(uid, container.id, self.rng.randrange(2))
            if self.rng.random() < HINT_ARRIVES:
                self._node_do(lambda node: node.hint(uid))

    def _leave_orphan(self) -> None:
        uid = f"orphan-{self.rng.randrange(2)}"
        if self.runtime.show(uid).is_empty():
            self.runtime.make_sandbox(msgspec.structs.replace(pod_of(UIDS[0], 1), metadata=ObjectMeta(uid=uid)), 0)

    def _node_do(self, what: Callable[[NodeWorkerModel], None]) -> None:
        node = self._children[NODE_SLOT]
        if isinstance(node, NodeWorkerModel):
            what(node)

    # --- the master's shell ---

    def _feed(self, event: LoopEvent) -> None:
        for command in self._loop.handle(event, self.now):
            assert not isinstance(command, PodsStopped)
            if isinstance(command, Send):
                self._carry_out(command)

    def _carry_out(self, send: Send) -> None:
        message = send.message
        match message:
            case PodChanged():
                self.told[message.pod.metadata.uid] = message
            case PodGone(uid=uid):
                del self.told[uid]
                self.runtime.forget(uid)
            case Track(uid=uid, row=row):
                self.rows[uid] = row
            case Untrack(uid=uid):
                self.rows.pop(uid, None)
            case SyncPod():
                self._check(send.slot, message)
        child = self._children.get(send.slot)
        if child is not None:
            child.inbox.append(message)  # type: ignore[arg-type]

    def _check(self, slot: int, sync: SyncPod) -> None:
        child = self._children[slot]
        assert child is not None, f"{sync.uid} to slot {slot}, where nobody is"
        assert child.incarnation == sync.incarnation
        assert sync.uid not in self._in_flight, f"two syncs of {sync.uid}"
        stated = sync.uid in self.desired  # a rejected pod that was changed begins anew, too
        assert stated or self._sources_ready or not sync.remove, f"{sync.uid} is removed before the sources were read"
        self._in_flight[sync.uid] = sync
        self._slots[sync.uid] = slot
