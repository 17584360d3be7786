"""Handlers of PersistentVolumes and PersistentVolumeClaims: what binding them means for pods, the API and the disk.

Bindings themselves are decided in `supervisor.persistentvolume`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant, parse_rfc3339, rfc3339
from ipc.k8s.api.v1.persistent_volume import PersistentVolume
from ipc.k8s.api.v1.scheduling import NodeSelector
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from ipc.k8s.podobjects.pod_claims import PodClaim, claim_name
from ipc.k8s.scheduling.node_affinity import selects_node
from ipc.link.messages import event_reasons
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.node_worker import DeleteVolume, VolumeDeleted
from ipc.link.messages.pod_worker import WorkType
from supervisor.admission.node_labels import node_labels
from supervisor.desired.claim_holders import ClaimHolders
from supervisor.persistentvolume.controller import PersistentVolumeController
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.parts import KnownPods
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.commands import RestsOn
from supervisor.protocol.manifests import created_at
from supervisor.protocol.source_updates import ObjectUpdate
from supervisor.state.volume_bindings import Binding, ClaimKey

ASK_AGAIN_S: Final = 120.0
"""A deletion that is not answered for so long is asked for again, in seconds: the node worker may have died."""
_ONE_POD: Final = ("ReadWriteOncePod",)
_NO_MATCH: Final = "no matching NodeSelectorTerms"
_IN_USE: Final = "volume uses the ReadWriteOncePod access mode and is already in use by another pod"


class VolumeUpdates:
    """Knows which deletions are under way."""

    def __init__(
        self,
        node: ThisNode,
        pod_table: PodTable,
        known: KnownPods,
        holders: ClaimHolders,
        reporter: PodReporter,
        out: CommandBuffer,
    ) -> None:
        self._node = node
        self._pod_table = pod_table
        self._known = known
        self._holders = holders
        self._reporter = reporter
        self._out = out
        self._controller = PersistentVolumeController(self._is_reachable)
        self._asked_at: dict[str, float] = {}
        """Monotonic time of the deletions under way, by volume."""

    @property
    def controller(self) -> PersistentVolumeController:
        """Owner of the bindings, for their checkpoint to read."""
        return self._controller

    def _is_reachable(self, volume: PersistentVolume) -> bool:
        """CheckNodeAffinity."""
        affinity = volume.spec.node_affinity
        return self._selects_us(affinity.required if affinity is not None else None)

    def _selects_us(self, nodes: NodeSelector | None) -> bool:
        settings, node = self._node.view.settings, self._node.view.resources
        return nodes is None or selects_node(nodes, node_labels(settings, node), settings.node_name)

    def restore(self, bindings: Iterable[Binding], now: Instant) -> ObjectUpdate:
        """Bindings of the agent before this one hold from the beginning."""
        self._controller.restore(bindings)
        return self.refresh(now)

    def take(self, update: ObjectUpdate, now: Instant) -> ObjectUpdate:
        """The update with its volumes and claims as they are now, and the others that it has changed."""
        rest = self._controller.take(update)
        if rest == update:
            return rest
        about = self.refresh(now)
        return ObjectUpdate(stated=(*rest.stated, *about.stated), gone=(*rest.gone, *about.gone))

    def expect(self, keys: Collection[ObjectKey], now: Instant) -> ObjectUpdate:
        """Other objects are expected than before."""
        self._controller.expect(keys)
        return self.refresh(now)

    def sources_ready(self, now: Instant) -> ObjectUpdate:
        """Every source was read once: from now on claims are bound and volumes released."""
        self._controller.sources_ready()
        return self.refresh(now)

    def refresh(self, now: Instant) -> ObjectUpdate:
        """Decide anew and tell what has come of it; volumes and claims as they are now."""
        changes = self._controller.refresh(self._used(), rfc3339(now.wall))
        for (namespace, name), why in changes.pending.items():
            about = ObjectKey(ObjectKind.PERSISTENT_VOLUME_CLAIM, namespace, name)
            self._event(about, why.reason, why.message, now)
        for name, message in changes.failed.items():
            self._deletion_failed(name, message, now)
        self._delete(now)
        return changes.update

    def retry_releases(self, now: Instant) -> ObjectUpdate:
        """Look whether pods have let go of claims: of those whose document is gone, and of those for one pod."""
        self._holders.let_go()
        if self._controller.has_leaving_claims:
            return self.refresh(now)
        self._delete(now)
        return ObjectUpdate()

    def on_deleted(self, answer: VolumeDeleted, now: Instant) -> ObjectUpdate:
        """The content of a volume is gone, or could not be removed."""
        self._asked_at.pop(answer.volume, None)
        self._controller.deleted(answer.volume, answer.problem)
        if answer.problem:
            self._deletion_failed(answer.volume, answer.problem, now)
        return self.refresh(now)

    def claims_of(self, state: PodRecord) -> Mapping[str, PodClaim]:
        """Claims of a pod that have documents, by name."""
        if state.pod is None:
            return {}
        namespace = state.pod.metadata.namespace
        found = {
            ref.name: self._claim(state, namespace, ref.name)
            for ref in state.references
            if ref.kind is ObjectKind.PERSISTENT_VOLUME_CLAIM
        }
        return {name: claim for name, claim in found.items() if claim is not None}

    def cluster_values(self, uid: str) -> ClusterValues | None:
        """Values that a cluster gives to a pod, without the volumes that this node or this pod may not have."""
        values, state = self._known.find(uid).cluster_values, self._pod_table.get(uid)
        if values is None or not values.claims or state is None or state.pod is None:
            return values
        names = {volume.name: claim_name(state.pod, volume) for volume in state.pod.spec.volumes}
        claims = {volume: self._of_cluster(state, names[volume], claim) for volume, claim in values.claims.items()}
        return msgspec.structs.replace(values, claims=claims)

    def _of_cluster(self, state: PodRecord, name: str, claim: PodClaim) -> PodClaim:
        assert state.pod is not None
        if claim.problem:
            return claim
        if not self._selects_us(claim.nodes):
            return PodClaim(problem=f'NodeAffinity check failed for volume "{claim.volume}" : {_NO_MATCH}')
        if claim.is_for_one_pod and not self._holders.holds(state, state.pod.metadata.namespace, name):
            return PodClaim(problem=_IN_USE)
        return claim

    def _claim(self, state: PodRecord, namespace: str, name: str) -> PodClaim | None:
        mounted = self._controller.mounted(namespace, name)
        if mounted is None or mounted.problem:
            return mounted
        found = self._controller.claim_of(namespace, name)
        assert found is not None
        assert state.pod is not None
        claim, _ = found
        deleted_at = claim.metadata.deletion_timestamp
        if deleted_at and created_at(state.pod) > parse_rfc3339(deleted_at):
            return PodClaim(problem=f"error processing PVC {namespace}/{name}: PVC is being deleted")
        if claim.status.access_modes == _ONE_POD and not self._holders.holds(state, namespace, name):
            return PodClaim(problem=_IN_USE)
        return mounted

    def _used(self) -> frozenset[ClaimKey]:
        """Claims with a volume that pods use."""
        bound = self._controller.claim_names()
        return frozenset(
            key
            for state in (self._pod_table if bound else ())
            if state.pod is not None and state.lifecycle.phase is not WorkType.TERMINATED
            for ref in state.references
            if ref.kind is ObjectKind.PERSISTENT_VOLUME_CLAIM
            and (key := (state.pod.metadata.namespace, ref.name)) in bound
        )

    def _delete(self, now: Instant) -> None:
        for name, path in self._controller.deletions().items():
            if now.mono - self._asked_at.get(name, -ASK_AGAIN_S) >= ASK_AGAIN_S:
                self._asked_at[name] = now.mono
                released = RestsOn(bindings=self._controller.version)
                self._out.to_node(DeleteVolume(volume=name, path=path), released)

    def _deletion_failed(self, volume: str, message: str, now: Instant) -> None:
        about = ObjectKey(ObjectKind.PERSISTENT_VOLUME, "", volume)
        self._event(about, event_reasons.VOLUME_FAILED_DELETE, message, now)

    def _event(self, about: ObjectKey, reason: EventReason, message: str, now: Instant) -> None:
        item = self._controller.reference(about.kind, about.namespace, about.name)
        report = EventReport(
            uid=item.uid,
            namespace=about.namespace,
            name=about.name,
            kind=about.kind,
            type=reason.type,
            reason=reason.reason,
            message=message,
        )
        self._reporter.event(report, now)
