"""A conversation with the sync loop: events in as verbs, commands out as short words.

``talk.add("a")`` answers ``["track a", "observe a"]``. A second passes with every verb. Whatever is said, the loop must
keep two promises, which are checked here at every word: one sync in flight per pod, and syncs only to who is there.
"""

from __future__ import annotations

import random
from typing import Any, Literal

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.container import Container, ContainerPort
from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.volume import EmptyDirVolumeSource, Volume
from ipc.k8s.kubecontainer.hashing import container_hash, sandbox_hash
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeType
from ipc.k8s.podobjects.config_objects import ConfigObject, object_key
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages.api_server import (
    EventChanged,
    EventGone,
    FeedSynced,
    ObjectChanged,
    ObjectGone,
    ObjectSummary,
    PackedEventChanged,
    PodChanged,
    PodGone,
)
from ipc.link.messages.base import PullEnded, PullProgress
from ipc.link.messages.node_worker import (
    CancelPull,
    CollectImages,
    CollectLogs,
    DeleteVolume,
    Observation,
    Observe,
    ObserveNode,
    Relist,
    StartPull,
    Track,
    Untrack,
    UpdatePodCgroups,
)
from ipc.link.messages.pod_worker import (
    AbandonPull,
    CancelSync,
    ContainersChanged,
    ObjectsRead,
    ProbePod,
    ProbeResultChanged,
    ProbingStopped,
    PullImage,
    StopProbing,
    SyncAction,
    SyncDone,
    SyncPod,
    SyncResult,
)
from ipc.link.messages.sync_error import SyncError
from ipc.link.shm.board import pod_digest
from supervisor.admission.predicates import UNKNOWN_NODE
from supervisor.config.settings import Settings, WorkersSettings
from supervisor.loop.loop import SyncLoop
from supervisor.processes.worker_pool import API_SLOT, FIRST_POD_SLOT, NODE_SLOT
from supervisor.protocol.commands import (
    DeathExplained,
    FreezeAnswered,
    GarbageCollected,
    Log,
    LoopCommand,
    PodsStopped,
    RestsOn,
    Send,
    ShutdownChanged,
    SlotVacated,
    UpdateRefused,
    WorkersWanted,
)
from supervisor.protocol.events import (
    HousekeepingTick,
    KillPod,
    LoopEvent,
    Observations,
    PullRequest,
    SettingsChanged,
    SourcesReady,
    StopPods,
    SyncTick,
    WorkerDown,
    WorkerLeaving,
    WorkerUp,
)
from supervisor.protocol.garbage_report import GarbageReport
from supervisor.protocol.manifests import FILE_SOURCE, DesiredObject
from supervisor.protocol.source_updates import ObjectUpdate, PodOperation, PodUpdate

RestartPolicy = Literal["Always", "OnFailure", "Never"]
WALL = 1_800_000_000.0
POD_SLOT = FIRST_POD_SLOT
CHILDREN = (NODE_SLOT, API_SLOT, POD_SLOT)
STARTED = SyncResult(action=SyncAction.START_CONTAINER, target="main")
PULL = SyncResult(action=SyncAction.START_CONTAINER, target="main", error=SyncError.IMAGE_PULL)
"""Outcome of a container's start."""


def pod(
    uid: str,
    *,
    image: str = "v1",
    policy: RestartPolicy = "Always",
    grace_s: int = 30,
    host_port: int = 0,
    priority: int | None = None,
) -> Pod:
    """Called like its UID, with one container ``main``."""
    ports = (ContainerPort(container_port=80, host_port=host_port),) if host_port else ()
    return Pod(
        metadata=ObjectMeta(name=uid, namespace="default", uid=uid),
        spec=PodSpec(
            containers=(Container(name="main", image=image, ports=ports),),
            restart_policy=policy,
            termination_grace_period_seconds=grace_s,
            priority=priority,
        ),
    )


def restless(uid: str) -> Pod:
    """With a volume, which each sync looks at: no periodic sync of it is passed over."""
    wanted = pod(uid)
    volume = Volume(name="scratch", empty_dir=EmptyDirVolumeSource())
    return msgspec.structs.replace(wanted, spec=msgspec.structs.replace(wanted.spec, volumes=(volume,)))


def absent(uid: str) -> RuntimePodStatus:
    return RuntimePodStatus(uid=uid)


def running(uid: str) -> RuntimePodStatus:
    return _view(uid, SandboxState.READY, ContainerState.RUNNING, 0)


def exited(uid: str, exit_code: int = 0) -> RuntimePodStatus:
    """Status of a pod whose container and sandbox are down."""
    return _view(uid, SandboxState.NOT_READY, ContainerState.EXITED, exit_code)


def _view(uid: str, sandbox: SandboxState, container: ContainerState, exit_code: int) -> RuntimePodStatus:
    """As `pod` describes it when nothing else is asked for."""
    wanted = pod(uid)
    made = SandboxStatus(
        id=f"s-{uid}", name=uid, infra_id=f"i-{uid}", attempt=0, state=sandbox, hash=sandbox_hash(wanted)
    )
    main = RuntimeContainerStatus(
        id=f"c-{uid}",
        name="main",
        attempt=0,
        state=container,
        hash=container_hash(wanted.spec.containers[0], ContainerKind.REGULAR),
        sandbox_id=made.id,
        exit_code=exit_code,
        started_at=WALL,
        finished_at=WALL,
    )
    return RuntimePodStatus(uid=uid, name=uid, namespace="default", sandboxes=(made,), containers=(main,))


class Talk:
    """One sync loop, its children up (without having been asked anything yet)."""

    def __init__(
        self,
        *,
        up: tuple[int, ...] = CHILDREN,
        rows: int = 8,
        workers: int = 1,
        pods_per_worker: int = 0,
        node: NodeResources = UNKNOWN_NODE,
        **settings: Any,
    ) -> None:
        limits = WorkersSettings(count=workers, pods_per_worker=pods_per_worker)
        self.settings = Settings(workers=limits, **settings)
        self.loop = SyncLoop(self.settings, rows, ("10.0.0.1",), random.Random(0), node)
        self.mono = 100.0
        self.clock_set_by_s = 0.0
        self.syncs: dict[str, SyncPod] = {}
        """The newest of every pod."""
        self.rests_on: dict[str, RestsOn] = {}
        """Versions of files that are on disk before that goes, by pod, or before a volume is emptied, by volume."""
        self.told: dict[str, PodChanged] = {}
        self.objects: dict[str, ObjectSummary] = {}
        """ConfigMaps and Secrets as they are told, by name."""
        self.events: list[str] = []
        """``Reason pod``"""
        self.logs: list[str] = []
        self.levels: list[str] = []
        """Levels of the lines of the log."""
        self.collected: list[tuple[str, ...]] = []
        """Pods whose directories stay, every time that the others are collected."""
        self.asked = 0
        """Number of the newest request for signals of the node."""
        self.image_requests: list[CollectImages] = []
        self.plans: list[UpdatePodCgroups] = []
        self.garbage: dict[int, GarbageReport] = {}
        self._up: dict[int, int] = {}
        self.slots: dict[str, int] = {}
        """Where the newest sync of every pod went."""
        self.probing: dict[str, tuple[int, ProbePod]] = {}
        """Workers that probe pods, and as what each was told last."""
        self._in_flight: dict[str, SyncPod] = {}
        for slot in up:
            self.up(slot)

    # --- events ---

    def say(self, event: LoopEvent) -> list[str]:
        self.mono += 1.0
        commands = self.loop.handle(event, Instant(mono=self.mono, wall=WALL + self.mono + self.clock_set_by_s))
        return [word for command in commands for word in self._words(command)]

    def update(self, *pods: Pod | str, op: PodOperation = PodOperation.UPDATE) -> list[str]:
        made = tuple(each if isinstance(each, Pod) else pod(each) for each in pods)
        return self.say(PodUpdate(op=op, source=FILE_SOURCE, pods=made))

    def add(self, *pods: Pod | str) -> list[str]:
        return self.update(*pods, op=PodOperation.ADD)

    def remove(self, *pods: Pod | str) -> list[str]:
        return self.update(*pods, op=PodOperation.REMOVE)

    def state(self, *objects: ConfigObject) -> list[str]:
        """State that these ConfigMaps and Secrets came or changed."""
        return self.say(ObjectUpdate(stated=tuple(DesiredObject(source=FILE_SOURCE, object=each) for each in objects)))

    def retract(self, *objects: ConfigObject) -> list[str]:
        """State that they are gone."""
        return self.say(ObjectUpdate(gone=tuple(map(object_key, objects))))

    def ready(self) -> list[str]:
        return self.say(SourcesReady())

    def see(self, *statuses: RuntimePodStatus, row: int = 0, age_s: float = 0.5) -> list[str]:
        """Single pods were looked at, so long ago."""
        return self.say(Observations(self._observed(statuses, row, age_s)))

    def relist(
        self, *statuses: RuntimePodStatus, row: int = 0, age_s: float = 0.5, unseen: tuple[str, ...] = ()
    ) -> list[str]:
        """Relist: of all pods only these have changed, or nobody tracks them; the unseen could not be looked at."""
        return self.say(Observations(self._observed(statuses, row, age_s), self.mono + 1.0 - age_s, unseen))

    def unreadable(self, uid: str) -> list[str]:
        return self.say(Observations((Observation(uid=uid, observed_at=self.mono + 0.5, changed=True, row=0),)))

    def done(self, uid: str, **answer: Any) -> list[str]:
        """The answer to the pod's newest sync. Fields of SyncDone can be given, generation and incarnation too."""
        asked = self.syncs[uid]
        done = SyncDone(uid=uid, generation=asked.generation, incarnation=asked.incarnation, kind=asked.kind)
        done = msgspec.structs.replace(done, **answer)
        if (done.generation, done.incarnation) == (asked.generation, asked.incarnation):
            self._in_flight.pop(uid, None)
        return self.say(done)

    def up(self, slot: int, incarnation: int = 1) -> list[str]:
        self._up[slot] = incarnation
        return self.say(WorkerUp(slot, incarnation))

    def down(self, slot: int, *, orderly: bool = False, at: str = "") -> list[str]:
        """``at``: the pod in whose step it died."""
        self._up.pop(slot, None)
        self.probing = {uid: probed for uid, probed in self.probing.items() if probed[0] != slot}
        for uid in [uid for uid in self._in_flight if self.slots[uid] == slot]:
            del self._in_flight[uid]
        return self.say(WorkerDown(slot, orderly, pod_digest(at) if at else 0))

    def leave(self, slot: int) -> list[str]:
        """Ask a worker to leave."""
        del self._up[slot]
        return self.say(WorkerLeaving(slot))

    def resize(self, workers: int) -> list[str]:
        """``workers.count`` is another one now."""
        count = msgspec.structs.replace(self.settings.workers, count=workers)
        self.settings = msgspec.structs.replace(self.settings, workers=count)
        return self.say(SettingsChanged(self.settings))

    def tick(self, after_s: float = 0.0) -> list[str]:
        self.mono += after_s
        return self.say(SyncTick())

    def keep_house(self) -> list[str]:
        return self.say(HousekeepingTick())

    def want(self, uid: str, image: str) -> list[str]:
        return self.say(PullRequest(POD_SLOT, PullImage(uid=uid, reference=image)))

    def abandon(self, uid: str, image: str) -> list[str]:
        return self.say(PullRequest(POD_SLOT, AbandonPull(uid=uid, reference=image)))

    def pulled(self, image: str) -> list[str]:
        return self.say(PullEnded(reference=image))

    def verdict(
        self, uid: str, probe: ProbeType, result: ProbeResult, *, id: str = "", name: str = "main"
    ) -> list[str]:
        """Report a probe of its container, as `running` has it."""
        return self.say(
            ProbeResultChanged(uid=uid, name=name, container_id=id or f"c-{uid}", probe=probe, result=result)
        )

    def probing_stopped(self, uid: str) -> list[str]:
        del self.probing[uid]
        return self.say(ProbingStopped(uid=uid))

    def stop_pods(self) -> list[str]:
        return self.say(StopPods())

    def kill(self, name: str, grace_period_s: int) -> list[str]:
        return self.say(KillPod("default", name, grace_period_s))

    def fall_due(self, uid: str) -> None:
        """A periodic sync of the pod is due with the next event that concerns it."""
        state = self.loop.state(uid)
        assert state is not None
        state.lifecycle.resync()

    # --- ways to get somewhere ---

    def start(self, *pods: Pod | str) -> None:
        """The agent is up, its sources are read, and these pods run; nothing is in flight or asked for."""
        self.ready()
        self.add(*pods)
        self.relist()
        uids = [each.metadata.uid if isinstance(each, Pod) else each for each in pods]
        for uid in uids:
            self.done(uid, changed=True)
        for row, uid in enumerate(uids):
            self.fall_due(uid)
            assert self.see(running(uid), row=row) == [f"sync {uid}"]
            assert self.done(uid) == []

    # --- what was said ---

    def is_going_down(self, name: str) -> bool:
        return self.loop.is_going_down("default", name)

    def phase(self, uid: str) -> str:
        return self.told[uid].status.phase

    def _observed(self, statuses: tuple[RuntimePodStatus, ...], row: int, age_s: float) -> tuple[Observation, ...]:
        at = self.mono + 1.0 - age_s
        dated = [msgspec.structs.replace(status, observed_at=at) for status in statuses]
        return tuple(Observation(uid=s.uid, observed_at=at, changed=True, row=row, status=s) for s in dated)

    def _words(self, command: LoopCommand) -> list[str]:
        match command:
            case Log(level=level, text=text):
                self.logs.append(text)
                self.levels.append(level)
                return []
            case PodsStopped():
                return ["pods stopped"]
            case FreezeAnswered(ticket=ticket, message=message):
                return [f"freeze {ticket}: {message or 'done'}"]
            case GarbageCollected(ticket=ticket):
                self.garbage[ticket] = command.report
                return [f"garbage {ticket}"]
            case DeathExplained():
                return ["death explained"]
            case WorkersWanted(count=count, quarantine=quarantine):
                return [f"{count} workers{' and quarantine' if quarantine else ''}"]
            case SlotVacated(slot=slot):
                self._up.pop(slot, None)
                return [f"vacated {slot}"]
            case ShutdownChanged(cause=cause, ended_at=ended_at):
                return [f"{cause or 'shutdown called off'}{' is over' if ended_at else ''}"]
            case UpdateRefused(pod=kept):
                return [f"keep {kept.metadata.uid}"]
            case Send(slot=slot, message=message, rests_on=rests_on):
                assert slot in self._up, f"{message} to slot {slot}, where nobody is"
                if isinstance(message, SyncPod | DeleteVolume):
                    self.rests_on[message.uid if isinstance(message, SyncPod) else message.volume] = rests_on
                return self._message(slot, message)
        raise AssertionError(command)

    def _message(self, slot: int, message: object) -> list[str]:
        match message:
            case SyncPod(uid=uid, kind=kind):
                assert uid not in self._in_flight, f"two syncs of {uid}"
                assert message.incarnation == self._up[slot]
                self.syncs[uid] = self._in_flight[uid] = message
                self.slots[uid] = slot
                return [f"{kind} {uid}"]
            case ObjectsRead(uid=uid, generation=generation, objects=objects):
                assert generation == self._in_flight[uid].generation
                self.syncs[uid] = msgspec.structs.replace(self._in_flight[uid], objects=objects)
                return [f"objects of {uid}"]
            case CancelSync(uid=uid, generation=generation):
                assert generation == self._in_flight[uid].generation
                return [f"cancel {uid}"]
            case ProbePod(uid=uid):
                assert self.probing.get(uid, (slot, None))[0] == slot, f"two workers probe {uid}"
                self.probing[uid] = slot, message
                return [f"probe {uid}{' (terminating)' if message.terminating else ''}"]
            case ContainersChanged(uid=uid):
                assert self.probing[uid][0] == slot
                return [f"containers {uid}"]
            case StopProbing(uid=uid):
                assert self.probing[uid][0] == slot
                return [f"stop probing {uid}"]
            case Track(uid=uid):
                return [f"track {uid}"]
            case Untrack(uid=uid):
                return [f"untrack {uid}"]
            case Observe(uids=uids):
                return [f"observe {' '.join(uids)}"]
            case Relist():
                return ["relist"]
            case ObserveNode(number=number, resource=resource):
                self.asked = number
                return [f"observe node{resource and f' {resource}'}"]
            case StartPull(reference=image):
                return [f"pull {image}"]
            case CancelPull(reference=image):
                return [f"cancel pull {image}"]
            case PullProgress(reference=image) | PullEnded(reference=image):
                return [f"{type(message).__name__} {image}"]
            case CollectLogs(uids=uids):
                self.collected.append(uids)
                return []
            case DeleteVolume(volume=name, path=path):
                return [f"delete volume {name} at {path}"]
            case UpdatePodCgroups():
                self.plans.append(message)
                return []
            case CollectImages():
                self.image_requests.append(message)
                return []
            case PodChanged():
                self.told[message.pod.metadata.uid] = message
                return []
            case PodGone(uid=uid):
                del self.told[uid]
                return []
            case EventChanged(event=event):
                self.events.append(f"{event.reason} {event.involved_object.name}")
                return []
            case PackedEventChanged(event=packed):
                event = msgspec.msgpack.decode(packed, type=Event)
                self.events.append(f"{event.reason} {event.involved_object.name}")
                return []
            case EventGone():
                return []
            case ObjectChanged(summary=summary):
                self.objects[summary.metadata.name] = summary
                return []
            case ObjectGone(name=name):
                del self.objects[name]
                return []
            case FeedSynced():
                return ["feed synced"]
        raise AssertionError(message)
