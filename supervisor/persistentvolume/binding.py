"""The bindings of claims to volumes, as they follow from the documents and from the bindings that there were. Pure.

Mirrors pkg/controller/volume/persistentvolume/pv_controller.go (syncUnboundClaim, syncBoundClaim, syncVolume).
Different on purpose: volumes and claims are documents, which the agent cannot change or delete, so a binding is a value
beside them. A claim that names no class, or PODMAN_CLASS, and that no volume fits, is given a volume in Podman of its
own name: there are no other provisioners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from ipc.k8s.api.podman_annotations import of_its_volume
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.link.messages import event_reasons
from supervisor.persistentvolume.matching import AVAILABLE, find_matching_volume, is_bound_to, volume_problem
from supervisor.persistentvolume.shown import shown_volume
from supervisor.persistentvolume.values import PODMAN_CLASS, Bindings, Documents, Unbound
from supervisor.state.volume_bindings import Binding, ClaimKey, VolumePhase, claim_key


def settle(
    documents: Documents, before: Bindings, reachable: Callable[[PersistentVolume], bool], now: str
) -> tuple[Bindings, Mapping[ClaimKey, Unbound]]:
    """The bindings that hold from ``now`` (RFC 3339) on, and why the other claims have none."""
    kept = {binding.volume: binding for binding in _kept(documents, before.values(), now)}
    bound = {binding.key for binding in kept.values() if binding.phase is VolumePhase.BOUND}
    shown = {name: shown_volume(volume, kept.get(name)) for name, volume in documents.volumes.items()}
    unbound: dict[ClaimKey, Unbound] = {}
    for claim in _in_order(claim for key, claim in documents.claims.items() if key not in bound):
        found = _bind(claim, shown, kept, reachable)
        if isinstance(found, Unbound):
            unbound[claim_key(claim)] = found
            continue
        kept[found.volume] = found
        if found.volume in shown:
            shown[found.volume] = shown_volume(documents.volumes[found.volume], found)
    return kept, unbound


def _in_order(claims: Iterable[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Claims that name a volume come first, so that nobody else is given it."""
    return sorted(claims, key=lambda claim: not claim.spec.volume_name)


def _kept(documents: Documents, bindings: Iterable[Binding], now: str) -> Iterator[Binding]:
    for binding in bindings:
        is_there = binding.provisioned or binding.volume in documents.volumes
        has_claim = binding.key in documents.claims or binding.key in documents.unknown_claims
        if binding.phase is not VolumePhase.BOUND:
            if is_there or binding.volume in documents.unknown_volumes:
                yield binding
        elif has_claim:
            claim = documents.claims.get(binding.key, binding.claim)
            yield msgspec.structs.replace(binding, claim=_recorded(claim), deleted_at=None)
        elif binding.key in documents.used_claims:
            yield msgspec.structs.replace(binding, deleted_at=binding.deleted_at or now)
        elif not binding.provisioned and (is_there or binding.volume in documents.unknown_volumes):
            yield msgspec.structs.replace(binding, phase=VolumePhase.RELEASED, deleted_at=None)


def _bind(
    claim: PersistentVolumeClaim,
    shown: Mapping[str, PersistentVolume],
    kept: Bindings,
    reachable: Callable[[PersistentVolume], bool],
) -> Binding | Unbound:
    if claim.spec.volume_name:
        return _bind_named(claim, shown)
    found = find_matching_volume(claim, shown.values(), reachable)
    if found is not None:
        return Binding(volume=found.metadata.name, claim=_recorded(claim))
    return _provision(claim, kept)


def _bind_named(claim: PersistentVolumeClaim, shown: Mapping[str, PersistentVolume]) -> Binding | Unbound:
    """The volume that the claim names, or nothing."""
    name = claim.spec.volume_name
    volume = shown.get(name)
    if volume is None:
        return Unbound(event_reasons.FAILED_BINDING, f'volume "{name}" does not exist')
    if volume.spec.claim_ref is not None and not (is_bound_to(volume, claim) and volume.status.phase == AVAILABLE):
        return Unbound(event_reasons.VOLUME_TAKEN, f'volume "{name}" already bound to a different claim.')
    if problem := volume_problem(claim, volume):
        return Unbound(event_reasons.VOLUME_MISMATCH, f'Cannot bind to requested volume "{name}": {problem}')
    return Binding(volume=name, claim=_recorded(claim))


def _provision(claim: PersistentVolumeClaim, kept: Bindings) -> Binding | Unbound:
    storage_class = claim.spec.storage_class_name
    if storage_class not in (None, PODMAN_CLASS):
        if storage_class:
            words = f'storageclass.storage.k8s.io "{storage_class}" not found'
            return Unbound(event_reasons.PROVISIONING_FAILED, words)
        words = "no persistent volumes available for this claim and no storage class is set"
        return Unbound(event_reasons.FAILED_BINDING, words)
    if claim.spec.selector is not None:
        words = (
            "no persistent volumes available for this claim, and a claim with a selector is given no volume in Podman"
        )
        return Unbound(event_reasons.FAILED_BINDING, words)
    name = claim.metadata.name
    holders = (held for held in kept.values() if held.provisioned and held.claim.metadata.name == name)
    if (holder := next(holders, None)) is not None:
        words = f'volume "{name}" in Podman belongs to claim "{"/".join(holder.key)}": Podman knows no namespaces'
        return Unbound(event_reasons.PROVISIONING_FAILED, words)
    return Binding(volume=f"pvc-{claim.metadata.uid}", claim=_recorded(claim), provisioned=True)


def _recorded(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """The claim, without all that a binding does not need."""
    meta = claim.metadata
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            creation_timestamp=meta.creation_timestamp,
            annotations=of_its_volume(meta.annotations),
        ),
        spec=claim.spec,
    )
