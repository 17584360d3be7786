"""One life of the agent: the real sync loop, the board, and the shell between them, the workers and the sources."""

from __future__ import annotations

import asyncio
import operator
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.eviction_marks import evicted
from ipc.k8s.api.v1.config_objects import ConfigMap
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_failure import EVICTED, decode_failure
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.k8s.podobjects.config_objects import ObjectKey, object_key
from ipc.link.messages.api_server import FeedSynced, PodChanged, PodGone
from ipc.link.messages.base import EventReport, Ready
from ipc.link.messages.catalogue import ChildCommand
from ipc.link.messages.node_worker import (
    DeleteVolume,
    ImagesCollected,
    NodeObserved,
    RuntimeHealth,
    ServiceSilent,
    Track,
    Untrack,
)
from ipc.link.messages.pod_worker import (
    Freeze,
    ObjectsRead,
    ProbePod,
    ProbingStopped,
    SyncDone,
    SyncPod,
)
from ipc.link.shm.board import Board
from supervisor.control.shutdown_control import ShutdownControl
from supervisor.held_sends import HeldSends
from supervisor.loop.loop import SyncLoop
from supervisor.podcontrol.pod_kills import MIN_WAIT_S
from supervisor.processes.worker_pool import API_SLOT, FIRST_POD_SLOT, NODE_SLOT, QUARANTINE_SLOT
from supervisor.protocol.commands import (
    LoopCommand,
    RestsOn,
    Send,
    ShutdownChanged,
    WorkersWanted,
)
from supervisor.protocol.events import (
    BindingsRestored,
    ContainerRestartsRestored,
    EndsRestored,
    EvictionsRestored,
    FreezeRequest,
    HousekeepingTick,
    LoopEvent,
    NodeShutdownBegan,
    NodeShutdownCalledOff,
    Observations,
    ProbeResultsRestored,
    ResourcesRestored,
    SettingsChanged,
    ShutdownCause,
    SourcesReady,
    SyncTick,
    WorkerDown,
    WorkerUp,
)
from supervisor.protocol.manifests import FILE_SOURCE, DesiredObject
from supervisor.protocol.refusals import RequestRefused
from supervisor.protocol.source_updates import ObjectUpdate, PodOperation, PodUpdate
from supervisor.state.probe_checkpoint import worth_keeping
from supervisor.state.volume_bindings import Binding
from supervisor.wiring import Effects, LoopReport, carry_out, loop_event
from tests.sim.children import Child
from tests.sim.claims import Document
from tests.sim.disk import NO_FILES, Files, SimDisk
from tests.sim.given import Given
from tests.sim.loop import NOBODY
from tests.sim.objects import wrong_objects
from tests.sim.observation_times import ObservationTimes
from tests.sim.poison import UID as POISON
from tests.sim.preemption import early_start, is_preempted
from tests.sim.pressure import PressureWatch, has_conditions
from tests.sim.resizes import overcommitted, unasked_restart
from tests.sim.shutdowns import CONNECTS_S
from tests.sim.waits import TICK_S, endless
from tests.sim.watch import TERMINAL

POD_SLOTS: Final = (FIRST_POD_SLOT, FIRST_POD_SLOT + 1)
SLOTS: Final = (NODE_SLOT, *POD_SLOTS)
"""Slots whose children are killed at random."""
ALL_SLOTS: Final = (*SLOTS, QUARANTINE_SLOT)
HOUSEKEEPING_S: Final = 2.0
REAP_S: Final = 0.05
"""Longest time from a death to its report."""
LAST_SOURCE_S: Final = 4.0
"""Longest time between the source that states something and the last one."""
BOOT_S: Final = 1.0
"""Longest time from there to the successor's birth."""


class Agent:
    """Feeds the loop, carries out its commands, buries its children and makes new ones."""

    def __init__(
        self,
        given: Given,
        restored: Mapping[str, Pod],
        probe_results: Mapping[str, ProbeResults] | None = None,
        files: Files = NO_FILES,
    ) -> None:
        """``restored``: the checkpoint. ``probe_results``: what probes have said to the agent before it. ``files``:
        what that has written."""
        self.alive = True
        self.stated = dict(restored)
        """Pods that the loop was told to keep running, by uid."""
        self.refused: dict[str, Pod] = {}
        """Pods that stay because their edit was not admitted."""
        self.told: dict[str, PodChanged] = {}
        """Pods as the API server knows them."""
        self.in_flight: dict[str, SyncPod] = {}
        """Sent and not answered."""
        self.newest: dict[str, SyncPod] = {}
        """The last one of each pod, answered or not."""
        self.objects: dict[str, ConfigMap] = {}
        """ConfigMaps that the loop knows, by name."""
        self.probers: dict[str, int] = {}
        """Slots that were told to probe and have not said that they stopped, by pod."""
        self.rows: dict[str, int] = {}
        """Rows of the board, as they were given out."""
        self.children: dict[int, Child | None] = dict.fromkeys(ALL_SLOTS)
        self.sources_ready = False
        self._preempted_at: dict[str, float] = {}
        """By uid: when its first sync for that went out, monotonic seconds."""
        self._weighed: tuple[Pod, ...] = ()
        """Active pods when they were weighed last."""
        self.is_down = False
        """The loop has said that the pods of the node that goes down have ended."""
        self.answers_late = ""
        """The pod whose worker dies with its next answer: that comes when a successor works for the same pod."""
        self.disturbed_at = 0.0
        """When the eyes of the agent were last disturbed, monotonic seconds."""
        self.board = Board.create(worker_slots=max(ALL_SLOTS) + 1, pod_rows=given.pod_rows)
        self._given = given
        self._incarnations = dict.fromkeys(ALL_SLOTS, 0)
        self._in_flight_slots: dict[str, int] = {}
        self._generations: dict[str, int] = {}
        self._observed = ObservationTimes()
        self._late_answers: dict[str, SyncDone] = {}
        """Syncs of the dead, by pod."""
        self._api_up = False
        self._probe_results = dict(probe_results or {})
        self._claims: dict[ObjectKey, Document] = {}
        """Volumes and claims that the loop knows."""
        self.pressure = PressureWatch(given.trace, given.clock, given.podman, given.host)
        self._loop = SyncLoop(
            given.settings, given.pod_rows, ("10.0.0.1",), random.Random(given.rng.random()), given.node
        )
        self._disk = SimDisk(
            random.Random(given.rng.getstate()[1][0]), self._loop, files, lambda: self._if_alive(self._look_at_sends)
        )
        self._sends = HeldSends(self._post, self._disk.is_kept)
        self._effects = self._loop_effects()
        self._shutdown: ShutdownControl | None = None
        if given.shutdown is not None:
            self._shutdown = ShutdownControl(given.settings, self._take, lambda: None)
            self._listens_to_logind = False
            given.shutdown.agent_begins()
        self._closed = {*POD_SLOTS[self._loop.workers :], QUARANTINE_SLOT}
        """Slots in which nobody is to be."""

    def start(self) -> None:
        self._given.watch.agent_begins()
        if self._given.poison is not None:
            self._given.poison.begins_anew()
        self.api_up()
        marks = evicted(Path(self._given.worker_settings.pods_dir))
        self.pressure.restored = set(marks)
        self._feed(EvictionsRestored({uid: decode_failure(text) for uid, text in marks.items()}))
        if self._probe_results:
            self._feed(ProbeResultsRestored(self._probe_results))
        files = self._disk.files
        if files.resources:
            self._feed(ResourcesRestored(dict(files.resources)))
        if files.bindings:
            self._feed(BindingsRestored(files.bindings))
        if files.restarts:
            self._feed(ContainerRestartsRestored(files.restarts))
        if files.ends:
            self._feed(EndsRestored(files.ends, 0.0))
        if self._shutdown is not None:
            self._shutdown.restore()
            self._later(CONNECTS_S, self._connect_to_logind)
        if self.stated:
            self._feed(PodUpdate(op=PodOperation.RESTORE, source=FILE_SOURCE, pods=tuple(self.stated.values())))
        for slot in SLOTS:
            self._later(BOOT_S, self._boot, slot)
        self._every(TICK_S, self._tick)
        self._every(HOUSEKEEPING_S, lambda: self._feed(HousekeepingTick()))

    def _tick(self) -> None:
        self._feed(SyncTick())
        for promise in endless(self._loop, self._given.clock.now()):
            self._given.trace.broke(promise)

    def die(self, why: str) -> None:
        """Kill -9 of the whole agent."""
        self._given.trace.note(f"the agent dies: {why}")
        self.alive = False
        for child in self.children.values():
            if child is not None:
                child.die("with the agent")

    @property
    def has_pressure(self) -> bool:
        """The node has a condition of pressure."""
        return has_conditions(self._loop.node_conditions)

    def pods_supervised(self) -> int:
        return sum(self._loop.pods_per_slot().values())

    def accepted(self) -> dict[str, Pod]:
        """The checkpoint."""
        return {uid: self.refused.get(uid, pod) for uid, pod in self.stated.items()}

    def kept_verdicts(self) -> dict[str, ProbeResults]:
        """Results that the next agent is told of them."""
        return worth_keeping(self._loop.durable.probes.all_results())

    @property
    def files(self) -> Files:
        """Files that the next agent reads: those that were written last."""
        return self._disk.files

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """Bindings of claims, as they are now."""
        return self._loop.durable.volumes.bindings

    def _look_at_sends(self) -> None:
        self._sends.look(self._given.clock.now().mono)
        self._disk.keep()

    # --- what is wanted ---

    def restart_container(self, pod: Pod, name: str) -> bool:
        """Somebody wants a container restarted. False when that is refused."""
        try:
            request = self._loop.container_restarts.request(pod.metadata.namespace, pod.metadata.name, name, None)
        except RequestRefused as refused:
            self._given.trace.note(f"no restart of {pod.metadata.uid[:8]} {name}: {refused}")
            return False
        self._given.trace.note(f"restart {pod.metadata.uid[:8]} {name}")
        self._feed(request)
        return True

    def is_restart_kept(self) -> bool:
        """Whether the next agent would know of all restarts that were asked for: then they are answered."""
        return self._disk.is_kept(RestsOn(restarts=self._loop.durable.requested_restarts.version))

    def freeze(self, pod: Pod, freeze: Freeze) -> None:
        """Somebody pauses a pod or resumes it."""
        self._given.trace.note(f"{freeze} {pod.metadata.uid[:8]}")
        self._feed(FreezeRequest(ticket=0, namespace=pod.metadata.namespace, name=pod.metadata.name, freeze=freeze))

    def is_to_pause(self, uid: str) -> bool:
        """Whether somebody waits for the pod to be paused."""
        state = self._loop.state(uid)
        return state is not None and self._loop.pauses.requested(state) is Freeze.PAUSE

    def limit_pods(self, max_pods: int) -> None:
        self._feed(SettingsChanged(msgspec.structs.replace(self._given.settings, max_pods=max_pods)))

    def active_pods(self) -> int:
        """Pods that take a place of ``maxPods``."""
        states = (self._loop.state(uid) for uid in self.stated)
        return sum(state is not None and state.lifecycle.active for state in states)

    def drain(self) -> None:
        if self.alive:
            self._given.trace.note("the node is drained")
            self._feed(NodeShutdownBegan(ShutdownCause.DRAIN))

    def uncordon(self) -> None:
        if self.alive:
            self._given.trace.note("the node is uncordoned")
            self._feed(NodeShutdownCalledOff(ShutdownCause.DRAIN))

    def hear_of_host(self) -> None:
        """logind says whether the host goes down, to whoever has reached it."""
        if self.alive and self._shutdown is not None and self._given.shutdown is not None and self._listens_to_logind:
            self._given.shutdown.announced(self._given.shutdown.available_s)
            self._shutdown.noticed(self._given.shutdown.available_s)

    def _connect_to_logind(self) -> None:
        self._listens_to_logind = True
        self.hear_of_host()

    def state(self, desired: Mapping[str, Pod]) -> None:
        """The sources were read: this is what they state now."""
        wanted = dict(self._given.objects.stated)
        came = [found for name, found in wanted.items() if self.objects.get(name) != found]
        gone = {name: found for name, found in self.objects.items() if name not in wanted}
        self.objects = {**gone, **wanted}
        if came:
            stated = tuple(DesiredObject(source=FILE_SOURCE, object=found) for found in came)
            self._feed_objects(ObjectUpdate(stated=stated))
        self._state_claims()
        for uid in sorted(self.stated.keys() - desired.keys()):
            self._given.marks.gone(uid)
            self._update(PodOperation.REMOVE, self.stated.pop(uid))
        for uid, pod in desired.items():
            old = self.stated.get(uid)
            if old == pod:
                continue
            self.stated[uid] = pod
            self._given.allocations.stated(pod)
            self.refused.pop(uid, None)
            if old is not None:
                self._given.watch.is_edited(old)
            if self._loop.state(uid) is None:
                self.pressure.comes(pod)
            self._update(PodOperation.ADD if old is None else PodOperation.UPDATE, pod)
        self.objects = wanted
        if gone:
            self._feed_objects(ObjectUpdate(gone=tuple(map(object_key, gone.values()))))
        if not self.sources_ready:
            self._later(LAST_SOURCE_S, self._sources_read)

    def _state_claims(self) -> None:
        wanted = dict(self._given.claims.stated) if self._given.claims is not None else {}
        came = [document for key, document in wanted.items() if self._claims.get(key) != document]
        gone = tuple(key for key in self._claims if key not in wanted)
        self._claims = wanted
        if came or gone:
            stated = tuple(DesiredObject(source=FILE_SOURCE, object=found) for found in came)
            self._feed_objects(ObjectUpdate(stated=stated, gone=gone))

    def _sources_read(self) -> None:
        """The last of them, too, which has stated nothing."""
        if not self.sources_ready:
            self.sources_ready = True
            self._given.watch.wanted(self.stated)
            self._given.marks.uids.intersection_update(self.stated)
            self._feed(SourcesReady())

    def _feed_objects(self, update: ObjectUpdate) -> None:
        words = [*(f"+{item.key.name}" for item in update.stated), *(f"-{key.name}" for key in update.gone)]
        self._given.trace.note(f"objects: {' '.join(words)}")
        self._feed(update)

    def _update(self, op: PodOperation, pod: Pod) -> None:
        self._given.trace.note(f"{op.value} {pod.metadata.uid[:8]}")
        self._feed(PodUpdate(op=op, source=FILE_SOURCE, pods=(pod,)))

    # --- children ---

    def kill(self, slot: int) -> None:
        child = self.children[slot]
        if child is not None:
            child.die("killed")

    def api_down(self) -> None:
        if self._api_up:
            self._given.trace.note("api server dies")
            self._api_up = False
            self.told.clear()
            self._feed(WorkerDown(API_SLOT))
            self._later(BOOT_S, self.api_up)

    def api_up(self) -> None:
        self._api_up = True
        self.disturbed_at = self._given.clock.now().mono
        self._feed(WorkerUp(API_SLOT, 1))

    def _boot(self, slot: int) -> None:
        if slot in self._closed or self.children[slot] is not None:
            return
        given = self._given
        self._incarnations[slot] += 1
        child = Child(
            slot,
            self._incarnations[slot],
            given.rng,
            given.trace,
            hear=self._hear,
            begin=self._begins,
            died=self._died,
        )
        given.trace.note(f"{child.name} is born")
        self.children[slot] = child
        if slot == NODE_SLOT:
            self.disturbed_at = given.clock.now().mono
        child.live(
            given.podman,
            given.poison.attempts(child, given.probes.by(child)) if given.poison else given.probes.by(child),
            self.board,
            given.clock,
            given.worker_settings,
            given.rng.randrange(2**32),
        )

    def _begins(self, child: Child, request: SyncPod) -> None:
        self._given.watch.begins(child, request, self.board)
        if self._given.poison is not None:
            self._given.poison.begins(child, request)

    def _died(self, child: Child) -> None:
        self._later(REAP_S, self._reap, child)

    def _reap(self, child: Child) -> None:
        """Forget what has not arrived by now: it comes too late."""
        self.children[child.slot] = None
        self._sends.child_down(child.slot)
        self.in_flight = {uid: sync for uid, sync in self.in_flight.items() if self._in_flight_slots[uid] != child.slot}
        self.probers = {uid: slot for uid, slot in self.probers.items() if slot != child.slot}
        if child.slot == NODE_SLOT:
            self.pressure.node_worker_died()
        self._feed(WorkerDown(child.slot, current_pod=child.current_pod))
        self._later(BOOT_S, self._boot, child.slot)

    def _hear(self, child: Child, message: Any) -> None:
        """The master's `on_message`, but for one thing: answers of the dead are not kept from the loop here."""
        if not self.alive or (self.children[child.slot] is not child and not isinstance(message, SyncDone)):
            return
        match message:
            case Ready():
                self._feed(WorkerUp(child.slot, child.incarnation))
            case SyncDone(uid=uid) if uid == self.answers_late:
                self.answers_late = ""
                self._late_answers[uid] = message
                child.die("as it answers")
            case SyncDone():
                self._take_answer(message)
            case ServiceSilent(message=why):
                self._given.trace.note(f"podman is silent: {why}")
            case _:
                self._take_report(child.slot, message)

    def _take_report(self, slot: int, message: LoopReport) -> None:
        match message:
            case EventReport(uid=uid):
                sync = self.newest.get(uid)
                if why := unasked_restart(message, sync.pod if sync is not None else None):
                    self._given.trace.broke(why)
            case ImagesCollected():
                self.pressure.collected(message)
            case NodeObserved():
                self.pressure.observed(message)
            case ProbingStopped(uid=uid):
                self.probers.pop(uid, None)
            case _:
                pass
        self._feed(loop_event(slot, message, self.board))
        if isinstance(message, RuntimeHealth):
            self._given.trace.note(f"podman is {'healthy' if message.healthy else 'ill'}")
            self.disturbed_at = self._given.clock.now().mono

    def _take_answer(self, done: SyncDone) -> None:
        self._given.watch.answered(done)
        flight = self.in_flight.get(done.uid)
        if flight is not None and (flight.generation, flight.incarnation) == (done.generation, done.incarnation):
            del self.in_flight[done.uid]
            self._feed(done)
        elif self._feed(done):
            self._given.trace.broke(f"an answer of the dead for {done.uid[:8]}, #{done.generation}, has consequences")

    # --- events in, commands out ---

    def _take(self, event: LoopEvent) -> None:
        self._feed(event)

    def _feed(self, event: LoopEvent) -> bool:
        """Whether that has consequences. How many workers are wanted is counted at every event, whatever it says."""
        if not self.alive:
            return False
        if isinstance(event, Observations):
            self._observed.note(event)
        commands = self._handle(event)
        carry_out(commands, self._effects)
        self._disk.keep()
        return any(not isinstance(command, WorkersWanted) for command in commands)

    def _loop_effects(self) -> Effects:
        note = self._given.trace.note
        return Effects(
            send=self._take_send,
            update_refused=self._update_refused,
            log=lambda line: note(f"{line.level}: {line.text}"),
            death_explained=lambda slot: None,
            workers_wanted=lambda wanted: self._hire(
                (*POD_SLOTS[: wanted.count], *[QUARANTINE_SLOT] * wanted.quarantine)
            ),
            slot_vacated=self._vacate,
            garbage_collected=lambda answer: None,
            freeze_answered=lambda answer: note(f"answered: {answer.message or 'done'}"),
            pods_stopped=_nobody_asked,
            shutdown_changed=self._goes_down,
        )

    def _take_send(self, command: Send) -> None:
        self._note_send(command.slot, command.message)
        self._sends.take(command, self._given.clock.now().mono)

    def _update_refused(self, pod: Pod) -> None:
        self._given.trace.note(f"update of {pod.metadata.uid[:8]} refused")
        self.refused[pod.metadata.uid] = pod

    def _vacate(self, slot: int) -> None:
        self._closed.add(slot)
        self.kill(slot)

    def _handle(self, event: LoopEvent) -> list[LoopCommand]:
        """The loop raises nothing: that would end the agent."""
        if self._given.shutdown is not None:
            self._given.shutdown.next_event()
        try:
            commands = self._loop.handle(event, self._given.clock.now())
            self._weigh()
            if self._given.claims is not None:
                self._given.claims.look(self.bindings)
            if self.pressure.is_possible:
                self.pressure.conditions(self._loop.node_conditions)
                self._look_for_evictions()
            if self._given.shutdown is not None:
                self._given.shutdown.look(self._loop)
            return commands
        except Exception as error:
            self._given.trace.note(traceback.format_exc())
            self._given.trace.broke(f"the agent ends by {error!r}")
            return []

    def _goes_down(self, change: ShutdownChanged) -> None:
        assert self._shutdown is not None
        assert self._given.shutdown is not None
        self.is_down = bool(change.ended_at)
        self._given.trace.note(f"goes down: {change.cause}, drained: {change.drained}, is down: {self.is_down}")
        self._shutdown.changed(change)
        self._given.shutdown.changed(change, self._loop)

    def _look_for_evictions(self) -> None:
        """The pods that end because of pressure."""
        statuses = self._loop.statuses
        for state in self._loop.pod_table:
            failure = statuses.eviction(state.uid)
            if failure is not None and failure.reason == EVICTED and state.pod is not None:
                self.pressure.evicts(state.pod, state.lifecycle.grace_period_s or 0)

    def _weigh(self) -> None:
        """Never more is allocated than there is; looked at when a pod is another one than it was."""
        pods = tuple(self._active_pods()) if self._given.node.allocatable else ()
        is_same = len(pods) == len(self._weighed) and all(map(operator.is_, pods, self._weighed))
        self._weighed = pods
        if why := "" if is_same else overcommitted(pods):
            self._given.trace.broke(why)

    def _active_pods(self) -> Iterator[Pod]:
        """With what they were allocated: those that were admitted and do not end. What an agent before has evicted
        takes no place, nor what has ended and of which a call that nobody waited for has started the sandbox again."""
        statuses = self._loop.statuses
        for state in self._loop.pod_table:
            is_out = statuses.is_rejected(state.uid) or state.uid in self.pressure.restored
            is_out = is_out or statuses.phase(state.uid) in TERMINAL
            if state.pod is not None and state.lifecycle.active and not is_out:
                yield state.pod

    def _hire(self, slots: tuple[int, ...]) -> None:
        self._given.trace.note(f"{len(slots)} pod workers are wanted")
        self._closed.difference_update(slots)
        for slot in slots:
            self._later(BOOT_S, self._boot, slot)

    def _note_send(self, slot: int, message: ChildCommand) -> None:
        """The loop wants that sent, at once or when what it rests on is written."""
        if slot == API_SLOT:
            return
        child = self.children[slot]
        if slot == NODE_SLOT:
            self.pressure.asks(message)
        if isinstance(message, SyncPod):
            self._check(child, message)
            self.in_flight[message.uid] = message
            self._in_flight_slots[message.uid] = slot
            if self._given.claims is not None:
                self._given.claims.sync(message, self.bindings)
        if isinstance(message, ObjectsRead) and (newest := self.newest.get(message.uid)) is not None:
            self.newest[message.uid] = msgspec.structs.replace(newest, objects=message.objects)
        if isinstance(message, DeleteVolume) and self._given.claims is not None:
            self._given.claims.deletes(message)
        if isinstance(message, ProbePod):
            self._check_prober(slot, message)
        if isinstance(message, Track):
            self.rows[message.uid] = message.row
        if isinstance(message, Untrack):
            self.probers.pop(message.uid, None)
            self._forgotten(message.uid)
            self._given.allocations.gone(message.uid)
            self._given.marks.gone(message.uid)
            self.pressure.gone(message.uid)
            if self._given.shutdown is not None:
                self._given.shutdown.gone(message.uid)
            if self._given.poison is not None and message.uid == POISON:
                self._given.poison.begins_anew()

    def _post(self, command: Send) -> None:
        slot, message = command.slot, command.message
        if slot == API_SLOT:
            self._tell(message)
            return
        if isinstance(message, SyncPod) and (why := self._given.allocations.wrong(message)):
            self._given.trace.broke(why)
        child = self.children[slot]
        if child is not None and child.alive:
            child.to_child.post(message)
        if isinstance(message, SyncPod) and message.uid in self._late_answers:
            late = self._late_answers.pop(message.uid)
            asyncio.get_running_loop().call_soon(self._if_alive, self._take_answer, late, context=NOBODY)

    def _check(self, child: Child | None, sync: SyncPod) -> None:
        trace, uid = self._given.trace, sync.uid
        if uid in self.in_flight:
            trace.broke(f"two syncs of {uid[:8]} at a time")
        if child is None or child.incarnation != sync.incarnation:
            trace.broke(f"a sync of {uid[:8]} for an incarnation that is gone")
        if sync.generation <= self._generations.get(uid, 0):
            self._given.watch.began_anew(uid)
        self._generations[uid] = sync.generation
        self.newest[uid] = sync
        if why := wrong_objects(sync, self.objects, sources_ready=self.sources_ready):
            trace.broke(f"a sync of {uid[:8]} goes out with {why}")
        self._given.marks.check(sync)
        self.pressure.sync(sync)
        if is_preempted(sync) and sync.uid not in self.pressure.restored:  # of those whoever came last waits
            self._preempted_at.setdefault(uid, self._given.clock.now().mono)
        if other := early_start(sync, self._waited_for(), self._given.podman):
            trace.broke(f"the critical pod starts while {other[:8]}, which gives way to it, runs")
        if self._given.shutdown is not None:
            self._given.shutdown.check_sync(sync)
        if sync.remove and not self._may_remove(uid):
            trace.broke(f"{uid[:8]} is removed before the sources were read")

    def _may_remove(self, uid: str) -> bool:
        """Nothing is concluded from what is missing before every source was read."""
        return uid in self.stated or self.sources_ready

    def _waited_for(self) -> dict[str, SyncPod]:
        """Syncs of preempted pods, but for those whose end takes longer than anybody waits."""
        since = self._given.clock.now().mono - MIN_WAIT_S
        return {uid: self.newest[uid] for uid, at in self._preempted_at.items() if at > since}

    def _check_prober(self, slot: int, command: ProbePod) -> None:
        other = self.probers.get(command.uid, slot)
        if other != slot:
            self._given.trace.broke(f"{command.uid[:8]} is to be probed in slot {slot}, and still is in slot {other}")
        self.probers[command.uid] = slot
        if command.terminating:
            self._given.watch.probes.goes_down(command.uid)

    def _forgotten(self, uid: str) -> None:
        self._given.watch.forgotten(uid, self._observed.newest(uid), self._observed.newest_list(uid))

    def _tell(self, message: Any) -> None:
        match message:
            case PodChanged():
                uid = message.pod.metadata.uid
                self._given.watch.told(self.told.get(uid), message, self._observed.newest(uid))
                self.told[uid] = message
            case PodGone(uid=uid):
                self._given.trace.note(f"told {uid[:8]} is gone")
                self._forgotten(uid)
                self.told.pop(uid, None)
            case FeedSynced():
                self._given.trace.note("api server knows everything")

    # --- time ---

    def _later(self, within_s: float, act: Callable[..., None], *args: Any) -> None:
        delay_s = self._given.rng.uniform(0.001, within_s)
        asyncio.get_running_loop().call_later(delay_s, self._if_alive, act, *args, context=NOBODY)

    def _every(self, period_s: float, act: Callable[[], object]) -> None:
        def again() -> None:
            if self.alive:
                act()
                loop.call_later(period_s, again, context=NOBODY)

        loop = asyncio.get_running_loop()
        loop.call_later(self._given.rng.uniform(0.0, period_s), again, context=NOBODY)

    def _if_alive(self, act: Callable[..., None], *args: Any) -> None:
        if self.alive:
            act(*args)


def _nobody_asked() -> None:
    raise AssertionError("nobody has asked for the end of all pods")
