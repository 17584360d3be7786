"""Bindings by the documents that there are and the bindings that there were."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from ipc.k8s.api.v1.meta import LabelSelector
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from supervisor.persistentvolume.binding import settle
from supervisor.persistentvolume.shown import provisioned_volume, shown_claim, shown_volume
from supervisor.persistentvolume.values import Documents
from supervisor.state.volume_bindings import Binding, ClaimKey, VolumePhase, claim_key
from tests.unit.supervisor.persistentvolume.test_matching import claim, reference, volume

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:01:00Z"


def documents(*stated: PersistentVolume | PersistentVolumeClaim, **fields: Any) -> Documents:
    return Documents(
        volumes={found.metadata.name: found for found in stated if isinstance(found, PersistentVolume)},
        claims={claim_key(found): found for found in stated if isinstance(found, PersistentVolumeClaim)},
        **fields,
    )


def bound(
    stated: Documents, before: Mapping[str, Binding] | None = None, now: str = NOW
) -> tuple[Mapping[str, Binding], dict[ClaimKey, str]]:
    """Bindings, and the words about the claims that have none."""
    bindings, unbound = settle(stated, before or {}, lambda _: True, now)
    return bindings, {key: f"{why.reason.type} {why.reason}: {why.message}" for key, why in unbound.items()}


def phases(bindings: Mapping[str, Binding]) -> dict[str, str]:
    return {name: f"{binding.phase} {'/'.join(binding.key)}" for name, binding in bindings.items()}


def test_each_volume_has_one_claim() -> None:
    bindings, unbound = bound(
        documents(volume("a"), volume("b"), claim("x"), claim("y"), claim("z", storage_class_name=""))
    )
    assert phases(bindings) == {"a": "Bound ns/x", "b": "Bound ns/y"}
    assert unbound == {
        ("ns", "z"): "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"
    }


def test_what_is_bound_stays_bound_whatever_comes() -> None:
    before, _ = bound(documents(volume("a", "9Gi"), claim()))
    after, _ = bound(documents(volume("a", "9Gi"), volume("b", "1Gi"), claim()), before)
    assert after == before


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (documents(claim(volume_name="v")), 'Normal FailedBinding: volume "v" does not exist'),
        (
            documents(volume("v"), claim(size="2Gi", volume_name="v")),
            'Warning VolumeMismatch: Cannot bind to requested volume "v": requested PV is too small',
        ),
        (
            documents(volume("v", claim_ref=reference("other")), claim(volume_name="v")),
            'Warning FailedBinding: volume "v" already bound to a different claim.',
        ),
        (
            documents(claim(storage_class_name="fast")),
            'Warning ProvisioningFailed: storageclass.storage.k8s.io "fast" not found',
        ),
        (
            documents(claim(selector=LabelSelector(match_labels={"a": "b"}))),
            "Normal FailedBinding: no persistent volumes available for this claim, and a claim with a selector is given"
            " no volume in Podman",
        ),
    ],
)
def test_why_a_claim_is_pending(stated: Documents, words: str) -> None:
    assert bound(stated) == ({}, {("ns", "c"): words})


def test_a_claim_that_names_a_volume_comes_first() -> None:
    bindings, _ = bound(documents(volume("v"), claim("first"), claim("second", volume_name="v")))
    assert phases(bindings)["v"] == "Bound ns/second"


@pytest.mark.parametrize("spec", [{}, {"storage_class_name": "podman"}])
def test_a_claim_that_nothing_fits_is_given_a_volume_in_podman(spec: dict[str, str]) -> None:
    wanted = claim(size="5Gi", **spec)
    bindings, unbound = bound(documents(volume("a"), wanted))
    assert unbound == {}
    (binding,) = bindings.values()
    made = shown_volume(provisioned_volume(binding), binding)
    assert made.spec.csi is not None
    assert (made.metadata.name, made.spec.csi.volume_handle, made.status.phase) == ("pvc-uid-c", "c", "Bound")
    shown = shown_claim(wanted, binding, made)
    assert (shown.status.phase, shown.spec.volume_name, shown.status.capacity) == (
        "Bound",
        "pvc-uid-c",
        {"storage": "5Gi"},
    )
    assert bound(documents(volume("a")), bindings) == ({}, {})


def test_podman_has_one_volume_of_a_name() -> None:
    bindings, unbound = bound(documents(claim(), claim(namespace="other")))
    assert len(bindings) == 1
    assert unbound == {
        (
            "other",
            "c",
        ): 'Warning ProvisioningFailed: volume "c" in Podman belongs to claim "ns/c": Podman knows no namespaces'
    }


def test_a_volume_is_released_for_good_when_its_claim_is_gone() -> None:
    """One of the same name later is another claim."""
    before, _ = bound(documents(volume("a"), claim(storage_class_name="")))
    released, _ = bound(documents(volume("a")), before)
    assert phases(released) == {"a": "Released ns/c"}
    again, unbound = bound(documents(volume("a"), claim(storage_class_name="")), released)
    assert (again, list(unbound)) == (released, [("ns", "c")])
    named, words = bound(documents(volume("a"), claim(volume_name="a")), released)
    assert (named, list(words)) == (released, [("ns", "c")])
    assert bound(documents(), released) == ({}, {})


def used(*keys: ClaimKey) -> dict[str, Collection[ClaimKey]]:
    return {"used_claims": frozenset(keys)}


def test_a_claim_stays_while_a_pod_uses_it() -> None:
    before, _ = bound(documents(volume("a"), claim()))
    kept, _ = bound(documents(volume("a"), **used(("ns", "c"))), before)
    assert kept["a"].deleted_at == NOW
    assert shown_claim(kept["a"].claim, kept["a"], volume("a")).metadata.deletion_timestamp == NOW
    later, _ = bound(documents(volume("a"), **used(("ns", "c"))), kept, now=LATER)
    assert later == kept
    stated_again, _ = bound(documents(volume("a"), claim()), kept)
    assert stated_again == before
    assert phases(bound(documents(volume("a")), kept)[0]) == {"a": "Released ns/c"}


def test_what_cannot_be_read_now_is_not_gone() -> None:
    before, _ = bound(documents(volume("a"), claim()))
    assert bound(documents(volume("a"), unknown_claims={("ns", "c")}), before)[0] == before
    assert bound(documents(claim(), unknown_volumes={"a"}), before)[0] == before
    released, _ = bound(documents(volume("a")), before)
    assert bound(documents(unknown_volumes={"a"}), released)[0] == released


def test_a_claim_without_its_volume_is_lost_and_finds_it_again() -> None:
    before, _ = bound(documents(volume("a"), claim()))
    lost, _ = bound(documents(claim()), before)
    assert lost == before
    assert shown_claim(claim(), lost["a"], None, is_lost=True).status.phase == "Lost"
    assert bound(documents(volume("a"), claim()), lost)[0] == before


@pytest.mark.parametrize("phase", list(VolumePhase))
def test_a_volume_shows_its_claim_and_its_phase(phase: VolumePhase) -> None:
    shown = shown_volume(volume("a"), Binding(volume="a", claim=claim(), phase=phase, message="why"))
    assert shown.spec.claim_ref is not None
    assert (shown.status.phase, shown.status.message, shown.spec.claim_ref.uid) == (phase, "why", "uid-c")
