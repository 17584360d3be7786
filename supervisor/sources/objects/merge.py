"""Several sources, one set of desired pods and objects, and the differences in the order in which to act on them.

Mirrors pkg/kubelet/config/config.go (podStorage.Merge, merge, checkAndUpdatePod). Holds state in memory, no I/O; time
is an argument. On purpose different:

- A name can be claimed by two files and by two sources (see `claims`). Upstream drops duplicates within a source only.
- A snapshot that is not complete removes nothing, and neither does a file with errors.
- RESTORE exists: the checkpointed set is supervised until its source was read, and makes no source ready.
- UPDATE increments ``metadata.generation``; ADD sets ``creationTimestamp``.
- A PriorityClass or RuntimeClass counts for the pods of all sources: a change of one merges them all anew (`priority`,
  `runtime_class`).
- ConfigMaps, Secrets and classes stand beside pods, under the same rules (`merge_objects` has what is their own). They
  come before the pods of the same merge and go after them, so that no pod misses what its own file states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant, rfc3339, rfc3339_micro
from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SEEN
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ObjectKey
from supervisor.protocol.manifests import (
    DesiredObject,
    DesiredPod,
    ExpectedObject,
    ManifestError,
    ManifestErrorKind,
    ManifestPod,
    PodKey,
    SourceSnapshot,
    error_about,
    pod_key,
)
from supervisor.protocol.source_updates import ObjectsExpected, PodOperation, PodsIncomplete, PodUpdate, Update
from supervisor.sources.objects.claims import Conflict, arbitrate, place
from supervisor.sources.objects.identity import LOCAL_ANNOTATIONS
from supervisor.sources.objects.merge_objects import AcceptedObjects, merge_objects, object_updates
from supervisor.sources.objects.priority import PriorityClasses, priority_classes, with_priority
from supervisor.sources.objects.runtime_class import RuntimeClasses, runtime_classes, with_overhead

_BEFORE_READY: Final = (PodOperation.REMOVE, PodOperation.ADD, PodOperation.UPDATE, PodOperation.DELETE)
"""Order of delivery (podStorage.Merge); then an empty ADD if there was nothing to say, then RECONCILE."""


class Classes(msgspec.Struct, frozen=True):
    """Classes that pods name."""

    priority: PriorityClasses
    runtime: RuntimeClasses


_NO_CLASSES: Final = Classes(priority_classes(()), {})
_SAYS_READY: Final = frozenset({PodOperation.ADD, PodOperation.UPDATE, PodOperation.DELETE})

Accepted = Mapping[str, DesiredPod]
"""UID to accepted pod, in the order of acceptance."""

Changes = Mapping[PodOperation, list[Pod]]


class PodConfig:
    """The mux: what is accepted of every source and what waits because another claim came first."""

    def __init__(self, sources: Iterable[str]) -> None:
        self._accepted: dict[str, Accepted] = {source: {} for source in sources}
        self._objects: dict[str, AcceptedObjects] = {source: {} for source in self._accepted}
        self._expected: tuple[ExpectedObject, ...] = ()
        self._desired: dict[str, SourceSnapshot] = {}
        self._conflicts: dict[str, tuple[ManifestError, ...]] = {}
        self._seen: set[str] = set()
        self._incomplete: frozenset[str] = frozenset()

    def restore(self, desired: Iterable[DesiredPod], expected: Iterable[ExpectedObject] = ()) -> tuple[Update, ...]:
        """Take the checkpointed set as accepted, with the claims that its pods held. One RESTORE per source.

        ``expected``: the objects that were there, of which nothing but the names is known. What is of sources that are
        not configured any more is left out. Raises ValueError once any source was merged: what a source states is newer
        than any checkpoint.
        """
        if self._desired:
            raise ValueError("RESTORE after a source was merged")
        for item in desired:
            if item.source in self._accepted:
                self._accepted[item.source] = {**self._accepted[item.source], item.pod.metadata.uid: item}
        self._expected = tuple(item for item in expected if item.source in self._accepted)
        restored = tuple(
            _update(PodOperation.RESTORE, source, (item.pod for item in accepted.values()))
            for source, accepted in self._accepted.items()
            if accepted
        )
        return (self._reported_expected(), *restored) if self._expected else restored

    def merge(self, snapshot: SourceSnapshot, now: Instant) -> tuple[Update, ...]:
        """Updates that follow from the whole set of one source (pkg/kubelet/config/config.go, Merge).
        Raises ValueError for an unknown source.

        Claims of other sources that waited for a name given up here are accepted in the same merge, after the updates
        of the snapshot's own source.
        """
        source = snapshot.source
        if source not in self._accepted:
            raise ValueError(f"unknown source {source!r}")
        is_read = snapshot.complete or (snapshot.absent and self.had_nothing(source))
        first_set = is_read and source not in self._seen
        if is_read:
            self._seen.add(source)
        before, self._desired[source] = self._desired.get(source), snapshot
        objects_before, classes_before = self.objects(), self._classes()
        others = [other for other in self._desired if other != source]
        waiting = [other for other in others if self._conflicts.get(other)]
        updates = self._merge_source(source, now, before, first_set=first_set)
        changed = self._classes() != classes_before
        updates += tuple(
            update for other in (others if changed else waiting) for update in self._merge_source(other, now)
        )
        came, went = object_updates(objects_before, self.objects())
        return (*came, *self._no_longer_expected(snapshot), *self._incomplete_pods(snapshot), *updates, *went)

    def _incomplete_pods(self, snapshot: SourceSnapshot) -> tuple[PodsIncomplete, ...]:
        """Pods that wait for what they refer to, if these are others than before: the cluster's alone."""
        if snapshot.source != API_SOURCE or snapshot.incomplete_pods == self._incomplete:
            return ()
        self._incomplete = snapshot.incomplete_pods
        return (PodsIncomplete(self._incomplete),)

    def names(self) -> tuple[ExpectedObject, ...]:
        """Objects whose names are worth keeping: those that are there, and those that may be."""
        there = (
            ExpectedObject(item.source, item.file, key, item.object.metadata.creation_timestamp or "")
            for key, item in self.objects().items()
        )
        return (*there, *self._expected)

    def had_nothing(self, source: str) -> bool:
        """Whether nothing of that source is known of now or before, so that its absence takes nothing away. Upstream a
        path that is not there counts as read in any case (pkg/kubelet/config/file.go, listConfig)."""
        return not (self._accepted[source] or self._objects[source]) and all(
            item.source != source for item in self._expected
        )

    def _no_longer_expected(self, snapshot: SourceSnapshot) -> tuple[ObjectsExpected, ...]:
        """Objects still expected, if the snapshot has answered for any: it is there, or its file was read and has
        none."""
        before, held, there = self._expected, snapshot.held_files(), self.objects()
        self._expected = tuple(
            item
            for item in before
            if item.key not in there and (item.source != snapshot.source or not snapshot.complete or item.file in held)
        )
        return (self._reported_expected(),) if self._expected != before else ()

    def _reported_expected(self) -> ObjectsExpected:
        return ObjectsExpected(frozenset(item.key for item in self._expected))

    def objects(self) -> dict[ObjectKey, DesiredObject]:
        """Every accepted ConfigMap and Secret."""
        return {key: item for accepted in self._objects.values() for key, item in accepted.items()}

    def desired(self) -> tuple[DesiredPod, ...]:
        """Every accepted pod: what is worth a checkpoint."""
        return tuple(item for accepted in self._accepted.values() for item in accepted.values())

    def holder(self, key: PodKey) -> DesiredPod | None:
        """Pod that holds the claim to a namespace and name."""
        return next((item for item in self.desired() if pod_key(item.pod) == key), None)

    def desired_elsewhere(self, source: str) -> dict[PodKey | ObjectKey, str]:
        """The names that other sources hold, and where, for people."""
        held: dict[PodKey | ObjectKey, str] = {
            item.key: place(item) for item in self.desired() if item.source != source
        }
        return held | {key: place(item) for key, item in self.objects().items() if item.source != source}

    def conflicts(self) -> tuple[ManifestError, ...]:
        """Claims that wait, as of the last merges. A claim that waits still is the same value again."""
        return tuple(error for errors in self._conflicts.values() for error in errors)

    def seen_sources(self) -> frozenset[str]:
        """Sources that were read completely once (upstream: sourcesSeen)."""
        return frozenset(self._seen)

    def looked_at(self) -> frozenset[str]:
        """Sources that were merged once, completely or not."""
        return frozenset(self._desired)

    def all_ready(self) -> bool:
        """Every configured source was read completely once."""
        return self._seen == self._accepted.keys()

    def _classes(self) -> Classes:
        found = [item.object for item in self.objects().values()]
        return Classes(priority_classes(found), runtime_classes(found))

    def _merge_few(
        self, snapshot: SourceSnapshot, before: SourceSnapshot, now: Instant
    ) -> tuple[Accepted, Changes] | None:
        """The merge of a cluster's pods, looking at those alone that are others than before: that source states the
        same value again as long as nothing of a pod has changed, and with each pod of a burst all that there are. None
        where claims have to be arbitrated."""
        source, old = snapshot.source, self._accepted[snapshot.source]
        if source != API_SOURCE or snapshot.objects != before.objects or any(self._conflicts.values()):
            return None
        fresh, gone = _desired_anew(snapshot, before)
        mine = {uid: old[uid] for uid in (item.pod.metadata.uid for item in fresh) if uid in old}
        others = [item for item in self.desired() if item.pod.metadata.uid not in mine]
        held = {claim for item in others for claim in item.claims}
        claims = [DesiredPod(source=source, pod=item.pod) for item in fresh]
        names = {item.key for item in claims}
        if len(names) < len(claims) or any(claim in held for item in claims for claim in item.claims):
            return None
        new, changes = compare(mine, claims, now)
        changes = {
            **changes,
            PodOperation.REMOVE: [old[uid].pod for uid in old if uid in gone] + changes.get(PodOperation.REMOVE, []),
        }
        return {**{uid: item for uid, item in old.items() if uid not in gone}, **new}, changes

    def _merge_source(
        self, source: str, now: Instant, before: SourceSnapshot | None = None, *, first_set: bool = False
    ) -> tuple[PodUpdate, ...]:
        """``before``: what the source has stated last, if it states something else now."""
        if before is not None and (few := self._merge_few(self._desired[source], before, now)) is not None:
            self._accepted[source], changes = few
            return _in_order(source, changes, first_set=first_set)
        snapshot, old = self._desired[source], self._accepted[source]
        held_elsewhere = [item for other in self._objects if other != source for item in self._objects[other].values()]
        ages = {item.key: item.created for item in self._expected if item.source == source}
        self._objects[source], refused = merge_objects(snapshot, self._objects[source], held_elsewhere, now, ages)
        stated = [
            DesiredPod(source=source, pod=item.pod, file=item.file, document=item.document) for item in snapshot.pods
        ]
        others = [item for item in self.desired() if item.source != source]
        claims, conflicts = arbitrate(snapshot, stated, old.values(), others)
        new, changes = compare(old, claims, now, self._classes())
        self._accepted[source] = new
        self._conflicts[source] = (*map(_conflict, conflicts), *refused)
        return _in_order(source, changes, first_set=first_set)


def _desired_anew(snapshot: SourceSnapshot, before: SourceSnapshot) -> tuple[list[ManifestPod], set[str]]:
    """Pods that are other values than before, and UIDs of those that are not there any more."""
    known = {item.pod.metadata.uid: item.pod for item in before.pods}
    fresh = [item for item in snapshot.pods if known.pop(item.pod.metadata.uid, None) is not item.pod]
    return fresh, set(known)


def compare(
    old: Accepted, claims: Iterable[DesiredPod], now: Instant, classes: Classes = _NO_CLASSES
) -> tuple[Accepted, Changes]:
    """The new accepted set and, per operation, the pods that differ from the old one."""
    new: dict[str, DesiredPod] = {}
    changes: dict[PodOperation, list[Pod]] = {}
    for claim in claims:
        uid = claim.pod.metadata.uid
        existing = old.get(uid)
        before = existing.pod if existing is not None and pod_key(existing.pod) == pod_key(claim.pod) else None
        stated = claim.pod
        if claim.source != API_SOURCE:  # else the server has done that when the pod was made
            stated = with_overhead(with_priority(stated, before, classes.priority), before, classes.runtime)
        op, pod = _changed(before, stated) if before is not None else _added(stated, now)
        new[uid] = msgspec.structs.replace(claim, pod=pod)
        if op is not None:
            changes.setdefault(op, []).append(pod)
    changes[PodOperation.REMOVE] = [
        item.pod for uid, item in old.items() if uid not in new or pod_key(new[uid].pod) != pod_key(item.pod)
    ]
    return new, changes


def _added(pod: Pod, now: Instant) -> tuple[PodOperation, Pod]:
    """A pod that is new here gets its first-seen time (recordFirstSeenTime) and what an API server would set."""
    metadata = pod.metadata
    return PodOperation.ADD, msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(
            metadata,
            annotations={**metadata.annotations, CONFIG_SEEN: rfc3339_micro(now.wall)},
            creation_timestamp=metadata.creation_timestamp or rfc3339(now.wall),
            generation=metadata.generation or 1,
        ),
    )


def _changed(existing: Pod, stated: Pod) -> tuple[PodOperation | None, Pod]:
    """Operation that turns a pod into the stated one, and the pod as it is now (checkAndUpdatePod)."""
    if not pods_differ_semantically(existing, stated):
        if existing.status == stated.status:
            return None, existing
        return PodOperation.RECONCILE, msgspec.structs.replace(existing, status=stated.status)
    local = {key: value for key, value in existing.metadata.annotations.items() if key in LOCAL_ANNOTATIONS}
    metadata = msgspec.structs.replace(
        stated.metadata,
        annotations={**stated.metadata.annotations, **local},
        creation_timestamp=stated.metadata.creation_timestamp or existing.metadata.creation_timestamp,
        generation=stated.metadata.generation or existing.metadata.generation + 1,
    )
    op = PodOperation.UPDATE if metadata.deletion_timestamp is None else PodOperation.DELETE
    return op, msgspec.structs.replace(stated, metadata=metadata)


def pods_differ_semantically(existing: Pod, stated: Pod) -> bool:
    """Whether anything differs that a user can mean (podsDifferSemantically): not status, not what this host adds."""
    return existing.spec != stated.spec or _meant(existing.metadata) != _meant(stated.metadata)


def _meant(metadata: ObjectMeta) -> tuple[object, ...]:
    annotations = {key: value for key, value in metadata.annotations.items() if key not in LOCAL_ANNOTATIONS}
    return metadata.labels, annotations, metadata.deletion_timestamp, metadata.deletion_grace_period_seconds


def _conflict(conflict: Conflict[DesiredPod]) -> ManifestError:
    """As upstream's event FailedValidation, with who came first (filterInvalidPods)."""
    item, holder = conflict.item, conflict.holder
    is_name = item.key == holder.key
    claimed = item.title if is_name else f"UID {item.pod.metadata.uid}"
    why = f"{claimed} already comes from {place(holder)}, which keeps it"
    return error_about(item, ManifestErrorKind.CONFLICT, "metadata.name" if is_name else "metadata.uid", why)


def _update(op: PodOperation, source: str, pods: Iterable[Pod]) -> PodUpdate:
    return PodUpdate(op=op, source=source, pods=tuple(pods))


def _in_order(source: str, changes: Changes, *, first_set: bool) -> tuple[PodUpdate, ...]:
    """podStorage.Merge: an empty ADD says that a source is ready which has nothing else to say."""
    updates = [_update(op, source, changes[op]) for op in _BEFORE_READY if changes.get(op)]
    if first_set and not any(changes.get(op) for op in _SAYS_READY):
        updates.append(_update(PodOperation.ADD, source, ()))
    if reconciled := changes.get(PodOperation.RECONCILE):
        updates.append(_update(PodOperation.RECONCILE, source, reconciled))
    return tuple(updates)
