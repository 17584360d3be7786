"""Owner of the bindings, and of volumes and claims as they are shown. State without I/O; time is an argument.

Mirrors PersistentVolumeController (pkg/controller/volume/persistentvolume/pv_controller.go), decided anew as a whole
after each change. Until every source was read, nothing is bound or released: the bindings of the agent before hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.meta import ObjectReference
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from ipc.k8s.podobjects.pod_claims import PodClaim
from supervisor.persistentvolume.binding import settle
from supervisor.persistentvolume.shown import provisioned_volume, shown_claim, shown_volume
from supervisor.persistentvolume.values import DELETE, Bindings, Documents, Unbound
from supervisor.protocol.manifests import DesiredObject
from supervisor.protocol.source_updates import ObjectUpdate
from supervisor.state.volume_bindings import Binding, ClaimKey, VolumePhase

VOLUME_KINDS: Final = frozenset({ObjectKind.PERSISTENT_VOLUME, ObjectKind.PERSISTENT_VOLUME_CLAIM})
_DELETABLE: Final = "/tmp/"
"""Begin of the paths that the policy Delete may remove (pkg/volume/hostpath/host_path.go, hostPathDeleter.Delete)."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a decision."""

    update: ObjectUpdate = ObjectUpdate()
    """Volumes and claims as they are shown now, where that differs."""
    pending: Mapping[ClaimKey, Unbound] = {}
    """Claims that are not bound for another reason than before."""
    failed: Mapping[str, str] = {}
    """Volumes whose content cannot be deleted, with the reason."""


class PersistentVolumeController:
    """Decides by `refresh`; everything else notes or tells."""

    def __init__(self, reachable: Callable[[PersistentVolume], bool]) -> None:
        """``reachable``: whether a volume's node affinity selects this node."""
        self._reachable = reachable
        self._is_complete = False
        self._desired: dict[ObjectKey, DesiredObject] = {}
        self._expected: frozenset[ObjectKey] = frozenset()
        self._bindings: Bindings = {}
        self._unbound: Mapping[ClaimKey, Unbound] = {}
        self._shown: dict[ObjectKey, DesiredObject] = {}
        self.version = 0
        """Rises with every change of the bindings."""

    # --- what is known ---

    def restore(self, bindings: Iterable[Binding]) -> None:
        """Bindings of the agent before this one."""
        self._bindings = {binding.volume: binding for binding in bindings}

    def sources_ready(self) -> None:
        """Every source was read completely once: what is not here does not exist, unless it is expected."""
        self._is_complete = True

    def expect(self, keys: Collection[ObjectKey]) -> None:
        """Replace the keys of objects that were there before a restart and may still be."""
        self._expected = frozenset(key for key in keys if key.kind in VOLUME_KINDS)

    def take(self, update: ObjectUpdate) -> ObjectUpdate:
        """Note the volumes and claims in it; the rest of it."""
        for key in update.gone:
            self._desired.pop(key, None)
        self._desired.update({item.key: item for item in update.stated if item.key.kind in VOLUME_KINDS})
        return ObjectUpdate(
            stated=tuple(item for item in update.stated if item.key.kind not in VOLUME_KINDS),
            gone=tuple(key for key in update.gone if key.kind not in VOLUME_KINDS),
        )

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """Every binding there is: what is kept on disk."""
        return tuple(self._bindings.values())

    @property
    def has_leaving_claims(self) -> bool:
        """Whether a claim without a document waits for its pods to end."""
        return any(binding.deleted_at for binding in self._bindings.values())

    def claim_names(self) -> frozenset[ClaimKey]:
        """Claims that have a volume."""
        return frozenset(held.key for held in self._bindings.values() if held.phase is VolumePhase.BOUND)

    # --- decisions ---

    def refresh(self, used: Collection[ClaimKey], now: str) -> Changes:
        """Decide anew. ``used``: claims of pods that may run; ``now``: RFC 3339."""
        before, failed = self._unbound, {}
        if self._is_complete:
            settled, self._unbound = settle(self._documents(used), self._bindings, self._reachable, now)
            failed = self._undeletable(settled)
            self._keep({**settled, **{name: _failed(settled[name], why) for name, why in failed.items()}})
        pending = {key: why for key, why in self._unbound.items() if before.get(key) != why}
        return Changes(update=self._show(), pending=pending, failed=failed)

    def deletions(self) -> dict[str, str]:
        """Paths to be removed, by volume: its claim is gone, and its policy is Delete."""
        return {
            name: volume.spec.host_path.path
            for name, volume in self._to_delete(self._bindings).items()
            if volume.spec.host_path is not None
        }

    def deleted(self, volume: str, problem: str) -> None:
        """The content of a volume was removed, and it is there for the next claim; or why it was not."""
        binding = self._bindings.get(volume)
        if binding is None or binding.phase is not VolumePhase.RELEASED:
            return
        others = {name: held for name, held in self._bindings.items() if name != volume}
        self._keep({**others, volume: _failed(binding, problem)} if problem else others)

    def _keep(self, bindings: Bindings) -> None:
        if bindings != self._bindings:
            self._bindings = bindings
            self.version += 1

    def _to_delete(self, bindings: Bindings) -> dict[str, PersistentVolume]:
        released = [name for name, held in bindings.items() if held.phase is VolumePhase.RELEASED]
        volumes = self._volumes() if released else {}
        found = {name: volumes[name] for name in released if name in volumes}
        return {
            name: volume for name, volume in found.items() if volume.spec.persistent_volume_reclaim_policy == DELETE
        }

    def _undeletable(self, bindings: Bindings) -> dict[str, str]:
        found = {name: _undeletable(volume) for name, volume in self._to_delete(bindings).items()}
        return {name: why for name, why in found.items() if why}

    def _volumes(self) -> dict[str, PersistentVolume]:
        found = (item.object for item in self._desired.values())
        return {volume.metadata.name: volume for volume in found if isinstance(volume, PersistentVolume)}

    def _documents(self, used: Collection[ClaimKey]) -> Documents:
        claims = (item.object for item in self._desired.values() if isinstance(item.object, PersistentVolumeClaim))
        unknown = [key for key in self._expected if key not in self._desired]
        of_claims = ObjectKind.PERSISTENT_VOLUME_CLAIM
        return Documents(
            volumes=self._volumes(),
            claims={(claim.metadata.namespace, claim.metadata.name): claim for claim in claims},
            unknown_volumes=frozenset(key.name for key in unknown if key.kind is ObjectKind.PERSISTENT_VOLUME),
            unknown_claims=frozenset((key.namespace, key.name) for key in unknown if key.kind is of_claims),
            used_claims=used,
        )

    # --- what is told ---

    def claim_of(self, namespace: str, name: str) -> tuple[PersistentVolumeClaim, Unbound | None] | None:
        """The claim as it is shown, and why it is pending; None of one without a document."""
        item = self._shown.get(_claim_object(namespace, name))
        if item is None or not isinstance(item.object, PersistentVolumeClaim):
            return None
        return item.object, self._unbound.get((namespace, name))

    def mounted(self, namespace: str, name: str) -> PodClaim | None:
        """Volume that a pod is given for a claim; None of a claim without a document (getPVCExtractPV,
        pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go)."""
        found = self.claim_of(namespace, name)
        if found is None:
            return None
        claim, why = found
        phase, about = claim.status.phase, f"error processing PVC {namespace}/{name}"
        if phase == "Lost":
            return PodClaim(problem=f'{about}: its PersistentVolume "{claim.spec.volume_name}" is gone')
        if phase != "Bound":
            return PodClaim(problem=f"{about}: PVC is not bound{f': {why.message}' if why else ''}")
        item = self._shown.get(_volume_object(claim.spec.volume_name))
        if item is None or not isinstance(item.object, PersistentVolume):
            return PodClaim(problem=f'{about}: PersistentVolume "{claim.spec.volume_name}" is not known yet')
        return _pod_claim(item.object)

    def reference(self, kind: ObjectKind, namespace: str, name: str) -> ObjectReference:
        """A volume or claim as events name it."""
        item = self._shown.get(ObjectKey(kind, namespace, name))
        uid = item.object.metadata.uid if item is not None else ""
        return ObjectReference(kind=kind, namespace=namespace, name=name, uid=uid)

    def _show(self) -> ObjectUpdate:
        shown = self._all_shown()
        came = tuple(item for key, item in shown.items() if self._shown.get(key) != item)
        went = tuple(key for key in self._shown if key not in shown)
        self._shown = shown
        return ObjectUpdate(stated=came, gone=went)

    def _all_shown(self) -> dict[ObjectKey, DesiredObject]:
        volumes = [
            _with(item, shown_volume(item.object, self._bindings.get(item.object.metadata.name)))
            for item in self._desired.values()
            if isinstance(item.object, PersistentVolume)
        ]
        by_claim = {held.key: held for held in self._bindings.values() if held.phase is VolumePhase.BOUND}
        volumes += [
            _with(self._claim_item(held), shown_volume(provisioned_volume(held), held))
            for held in by_claim.values()
            if held.provisioned
        ]
        by_name = {item.object.metadata.name: item.object for item in volumes}
        items = {item.key: item for item in self._desired.values() if isinstance(item.object, PersistentVolumeClaim)}
        items |= {_claim_object(*held.key): self._claim_item(held) for held in by_claim.values() if held.deleted_at}
        claims = []
        for key, item in items.items():
            held = by_claim.get((key.namespace, key.name))
            volume = by_name.get(held.volume) if held is not None else None
            assert isinstance(item.object, PersistentVolumeClaim)
            assert volume is None or isinstance(volume, PersistentVolume)
            is_lost = held is not None and self._is_gone(held.volume)
            claims.append(_with(item, shown_claim(item.object, held, volume, is_lost=is_lost)))
        return {item.key: item for item in (*volumes, *claims)}

    def _is_gone(self, volume: str) -> bool:
        """Whether a volume that is not stated never will be, as far as is known."""
        return self._is_complete and _volume_object(volume) not in self._expected

    def _claim_item(self, held: Binding) -> DesiredObject:
        """The claim's document, or what a binding knows of it when that is gone or was not read yet."""
        key = _claim_object(*held.key)
        return self._desired.get(key) or self._shown.get(key) or DesiredObject(source="", object=held.claim)


def _with(item: DesiredObject, shown: PersistentVolume | PersistentVolumeClaim) -> DesiredObject:
    return msgspec.structs.replace(item, object=shown)


def _claim_object(namespace: str, name: str) -> ObjectKey:
    return ObjectKey(ObjectKind.PERSISTENT_VOLUME_CLAIM, namespace, name)


def _volume_object(name: str) -> ObjectKey:
    return ObjectKey(ObjectKind.PERSISTENT_VOLUME, "", name)


def _pod_claim(volume: PersistentVolume) -> PodClaim:
    spec = volume.spec
    return PodClaim(
        volume=volume.metadata.name,
        host_path=spec.host_path,
        local_path=spec.local.path if spec.local is not None else "",
        podman_volume=spec.csi.volume_handle if spec.csi is not None else "",
        podman_options=spec.csi.volume_attributes if spec.csi is not None else {},
    )


def _failed(binding: Binding, why: str) -> Binding:
    return msgspec.structs.replace(binding, phase=VolumePhase.FAILED, message=why)


def _undeletable(volume: PersistentVolume) -> str:
    """Why nobody may delete the volume's content; empty when somebody may."""
    source = volume.spec.host_path
    if source is None:
        name = volume.metadata.name
        return f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
    if not source.path.removeprefix(_DELETABLE).strip("/") or not source.path.startswith(_DELETABLE):
        return f"host_path deleter only supports /tmp/.+ but received provided {source.path}"
    return ""
