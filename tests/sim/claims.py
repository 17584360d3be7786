"""Claims and volumes of the simulation: what is bound stays bound, and nothing goes that somebody uses."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container, VolumeMount
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import (
    HostPathVolumeSource,
    PersistentVolumeAccessMode,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Volume,
    VolumeResourceRequirements,
)
from ipc.k8s.podobjects.config_objects import ObjectKey, object_key
from ipc.link.messages.node_worker import DeleteVolume
from ipc.link.messages.pod_worker import SyncPod, WorkType
from supervisor.persistentvolume.values import DELETE, RETAIN
from supervisor.state.volume_bindings import Binding, VolumePhase
from tests.fakes.podman import FakeContainer
from tests.sim.pressure import simple_pod
from tests.sim.runtime import SimPodman, uid_of
from tests.sim.trace import Trace

SHARED: Final = "shared"
"""A claim of many pods, whose volume is kept."""
ALONE: Final = "alone"
"""A claim of one pod at a time, whose volume is emptied when nobody claims it."""
OF_MANY: Final = "of-many"
"""A claim of the random pods."""
VOLUME_OF: Final[Mapping[str, str]] = {SHARED: "kept", ALONE: "emptied", OF_MANY: "common"}
MOUNTED: Final = "claimed"
CONTENT: Final = "content"
CLAIMING: Final = 0.5
"""Part of the random pods that have a claim, each for as long as it has its UID."""
BOUND_S: Final = 60.0
"""Within which who waits for a claim has it, on a quiet host: what was mounted in vain is tried again that soon."""
Document = PersistentVolume | PersistentVolumeClaim


class SimClaims:
    """Claims as the manifests state them, their meaning on the disk, and the rules."""

    def __init__(self, rng: random.Random, trace: Trace, podman: SimPodman, directory: Path) -> None:
        """``directory`` lies below /tmp, where alone volumes are emptied."""
        self._rng = rng
        self._trace = trace
        self._podman = podman
        self._directory = directory
        self._is_claiming: dict[str, bool] = {}
        self._bound: dict[str, str] = {}
        """Volume by claim, as it was last seen."""
        self.stated: dict[ObjectKey, Document] = {}

    # --- documents ---

    def state(self, *names: str, volumes: Iterable[str] = VOLUME_OF) -> None:
        """State these claims and these claims' volumes, and no others."""
        documents: list[Document] = [self._volume(name) for name in sorted(volumes)]
        documents += [_claim(name) for name in names]
        self.stated = {object_key(document): document for document in documents}

    def change(self) -> None:
        """A claim or a volume comes or goes."""
        name = self._rng.choice(tuple(VOLUME_OF))
        document = self._rng.choice((_claim, _claim, self._volume))(name)
        if self.stated.pop(object_key(document), None) is None:
            self.stated[object_key(document)] = document

    def _volume(self, claim: str) -> PersistentVolume:
        spec = PersistentVolumeSpec(
            capacity={"storage": "1Gi"},
            access_modes=_modes(claim),
            volume_mode="Filesystem",
            host_path=HostPathVolumeSource(path=str(self.path(claim)), type="DirectoryOrCreate"),
            persistent_volume_reclaim_policy=DELETE if claim == ALONE else RETAIN,
            storage_class_name=claim,
        )
        return PersistentVolume(metadata=ObjectMeta(name=VOLUME_OF[claim], uid=f"pv-{claim}"), spec=spec)

    def path(self, claim: str) -> Path:
        """Directory of its volume."""
        return self._directory / VOLUME_OF[claim]

    # --- pods ---

    def refer(self, pod: Pod) -> Pod:
        """Perhaps with a claim."""
        uid = pod.metadata.uid
        if uid not in self._is_claiming:
            self._is_claiming[uid] = self._rng.random() < CLAIMING
        return claiming(pod, OF_MANY) if self._is_claiming[uid] else pod

    def users(self, claim: str) -> set[str]:
        """UIDs of the pods in which its volume is mounted now."""
        running = (c for c in self._podman.containers.values() if c.state == "running" and _mounts(c))
        return {uid for container in running if self._claim_of(uid := uid_of(container)) == claim}

    def _claim_of(self, uid: str) -> str:
        """Claim of a pod that mounts one."""
        return next((claim for claim in (ALONE, SHARED) if uid.endswith(claim)), OF_MANY)

    # --- rules ---

    def look(self, bindings: Iterable[Binding]) -> None:
        """No two claims have a volume, no claim has two, and none gets another while both documents are there."""
        bound = [(held.key[1], held.volume) for held in bindings if held.phase is VolumePhase.BOUND]
        now = dict(bound)
        if len({volume for _, volume in bound}) < len(bound) or len(now) < len(bound):
            self._trace.broke(f"bound more than once: {bound}")
        for claim, volume in self._bound.items():
            is_stated = {object_key(_claim(claim)), object_key(self._volume(claim))} <= self.stated.keys()
            if is_stated and now.get(claim, volume) != volume:
                self._trace.broke(f"claim {claim} was bound to {volume}, and is to {now[claim]}")
        self._bound = now

    def deletes(self, request: DeleteVolume) -> None:
        """Only what is to be emptied is, and only when nobody uses it."""
        self._trace.note(f"volume {request.volume} is emptied")
        if request.path != str(self.path(ALONE)):
            self._trace.broke(f"{request.path} is emptied, and was to be kept")
        if users := self.users(ALONE):
            self._trace.broke(f"{request.path} is emptied while {sorted(users)} use it")

    def sync(self, sync: SyncPod, bindings: Iterable[Binding]) -> None:
        """A pod is given for a claim what that is bound to."""
        if sync.kind is not WorkType.SYNC:
            return
        bound = {held.key[1]: held.volume for held in bindings if held.phase is VolumePhase.BOUND}
        for name, given in sync.objects.claims.items():
            if not given.problem and bound.get(name) != given.volume:
                self._trace.broke(f"{sync.uid[:8]} is given {given.volume} for claim {name}: {bound.get(name)} is its")

    def check_alone(self) -> None:
        """One pod at a time."""
        if len(users := self.users(ALONE)) > 1:
            self._trace.broke(f"pods have a claim that is for one alone: {sorted(users)}")


def _modes(claim: str) -> tuple[PersistentVolumeAccessMode, ...]:
    return ("ReadWriteOncePod",) if claim == ALONE else ("ReadWriteOnce",)


def _claim(name: str) -> PersistentVolumeClaim:
    spec = PersistentVolumeClaimSpec(
        access_modes=_modes(name),
        resources=VolumeResourceRequirements(requests={"storage": "1Gi"}),
        volume_mode="Filesystem",
        storage_class_name=name,
    )
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="default", uid=f"pvc-{name}"), spec=spec)


def claiming(pod: Pod, claim: str) -> Pod:
    """The pod, with that claim mounted in all its regular containers."""
    source = PersistentVolumeClaimVolumeSource(claim_name=claim)
    spec = msgspec.structs.replace(
        pod.spec,
        volumes=(*pod.spec.volumes, Volume(name=MOUNTED, persistent_volume_claim=source)),
        containers=tuple(map(_mounting, pod.spec.containers)),
    )
    return msgspec.structs.replace(pod, spec=spec)


def claiming_pods(claim: str, *numbers: int) -> dict[str, Pod]:
    """Pods that run for ever and have that claim, by UID."""
    made = (claiming(simple_pod(f"0000{number:04x}-{claim}"), claim) for number in numbers)
    return {pod.metadata.uid: pod for pod in made}


def _mounting(container: Container) -> Container:
    mount = VolumeMount(name=MOUNTED, mount_path="/claimed")
    return msgspec.structs.replace(container, volume_mounts=(*container.volume_mounts, mount))


def _mounts(container: FakeContainer) -> bool:
    return any(f"/{MOUNTED}/" in source for source in container.sources)
