"""Choice of the PersistentVolume that a claim gets. Pure.

Mirrors k8s.io/component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume, IsVolumeBoundToClaim,
CheckAccessModes), pkg/controller/volume/persistentvolume/index.go (allPossibleMatchingAccessModes) and
pv_controller.go (checkVolumeSatisfyClaim). Volumes are given as they are shown: with the claim that each is bound to,
and its phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.meta import LabelSelector, LabelSelectorRequirement
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim

AVAILABLE: Final = "Available"
_STORAGE: Final = "storage"


def find_matching_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], reachable: Callable[[PersistentVolume], bool]
) -> PersistentVolume | None:
    """The available volume that is pre-bound to the claim, or else the smallest one that fits, first of those with the
    fewest access modes. ``reachable``: whether the volume's node affinity selects this node."""
    fitting = [
        volume
        for volume in volumes
        if volume.status.phase == AVAILABLE
        and _has_modes(claim, volume)
        and _is_large_enough(claim, volume)
        and _has_mode_of_use(claim, volume)
    ]
    for prebound in fitting:
        if is_bound_to(prebound, claim):
            return prebound if reachable(prebound) else None
    free = [volume for volume in fitting if _is_free_for(claim, volume) and reachable(volume)]
    return min(free, key=lambda volume: (len(volume.spec.access_modes), storage(volume.spec.capacity)), default=None)


def volume_problem(claim: PersistentVolumeClaim, volume: PersistentVolume) -> str:
    """Why a volume that the claim names is not for it; empty when it is (checkVolumeSatisfyClaim)."""
    problems = (
        (_is_large_enough(claim, volume), "requested PV is too small"),
        (class_of(claim) == volume.spec.storage_class_name, "storageClassName does not match"),
        (_has_mode_of_use(claim, volume), "incompatible volumeMode"),
        (_has_modes(claim, volume), "incompatible accessMode"),
    )
    return next((words for is_right, words in problems if not is_right), "")


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume belongs to that claim, by itself or by its document (IsVolumeBoundToClaim)."""
    ref, meta = volume.spec.claim_ref, claim.metadata
    return ref is not None and (ref.namespace, ref.name) == (meta.namespace, meta.name) and ref.uid in ("", meta.uid)


def class_of(claim: PersistentVolumeClaim) -> str:
    """Class that the claim asks for; none is as the empty one, as far as matching goes."""
    return claim.spec.storage_class_name or ""


def storage(amounts: ResourceList) -> Fraction:
    """Bytes of storage; 0 where nothing is said."""
    return parse_quantity(amounts.get(_STORAGE, 0))


def _is_free_for(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return (
        volume.spec.claim_ref is None
        and volume.spec.storage_class_name == class_of(claim)
        and (claim.spec.selector is None or selects(claim.spec.selector, volume.metadata.labels))
    )


def _has_modes(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return set(claim.spec.access_modes) <= set(volume.spec.access_modes)


def _is_large_enough(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return storage(volume.spec.capacity) >= storage(claim.spec.resources.requests)


def _has_mode_of_use(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """CheckVolumeModeMismatches, turned round; defaults are filled in."""
    return claim.spec.volume_mode == volume.spec.volume_mode


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether everything that the selector says holds (apimachinery labels.Selector, Matches)."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(requirement, labels) for requirement in selector.match_expressions
    )


def _holds(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    return _OPERATORS[requirement.operator](labels.get(requirement.key), requirement.values)


_OPERATORS: Final[Mapping[str, Callable[[str | None, Sequence[str]], bool]]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
}
